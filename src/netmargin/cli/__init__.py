"""The command line: the verbs of the library, on the nets of the papers and on your own. One file
per verb: its arguments and its action.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130
"""128 + SIGINT: what a shell reports of a program that Ctrl-C ended."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : those of the process by default.

    Returns
    -------
    The exit code: 0 done, 1 the work failed (said why), 2 wrong usage, 130 interrupted by Ctrl-C.
    """
    with _quiet_start():
        from ..errors import ArgumentError, NetmarginError
        from .parser import make_parser

        parser = make_parser()
    shown = warnings.showwarning
    try:
        options = parser.parse_args(arguments)
        warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
        code = options.run(options) or 0
        sys.stdout.flush()  # here, where a full disk can still be reported
        return code
    except ArgumentError as error:
        print(f"netmargin: {error}", file=sys.stderr)
        return 2
    except NetmarginError as error:
        print(f"netmargin: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        said = str(error) or "interrupted; what was written before is intact"
        print(f"netmargin: {said}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        where = f" {error.filename}" if error.filename else " the output"
        print(
            f"netmargin: Cannot read or write{where}: {error.strerror}. Free some space, or choose"
            " another place.",
            file=sys.stderr,
        )
        return 1
    finally:
        warnings.showwarning = shown


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Inside, Ctrl-C ends the process at once: torch takes seconds to import, and nothing is lost
    by then.
    """
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return

    def leave(number: int, frame: object) -> None:
        os.write(2, b"netmargin: interrupted before it began\n")
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _drop_output() -> None:
    """What is still in the buffer cannot be written: without this, the interpreter would try once
    more at its end.
    """
    with suppress(OSError, ValueError):  # stdout of a test has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
