"""The command line: the verbs of the library, on the nets of the papers and on your own.

Every verb is one file with its arguments and its action.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.progress import drop_output, say

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as a shell reports it: 128 + SIGINT."""


def main(arguments: list[str] | None = None) -> int:
    """Run the words of a command line, those of the process by default; return the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w")  # noqa: SIM115
        setattr(sys, name, stream)  # closed ones, as cron jobs and services have them
        if hasattr(stream, "reconfigure"):  # names of files need not be UTF-8
            stream.reconfigure(errors="backslashreplace")
    with _end_quietly_on_interrupt():
        from ..errors import ArgumentError, NetmarginError
        from .parser import make_parser
        from .printing import in_shell_words

        parser = make_parser()
    shown = warnings.showwarning
    try:
        words = sys.argv[1:] if arguments is None else arguments
        options = parser.parse_args(words)
        options.words = words  # as they were typed: a page says how it was made
        # A warning is advice to whoever types: one line, without the place in our code.
        warnings.showwarning = lambda message, *_, **__: say(
            f"note: {in_shell_words(str(message))}"
        )
        code = options.run(options) or 0
        sys.stdout.flush()  # here, where a full disk can still be reported
        return code
    except ArgumentError as error:
        say(f"netmargin: {in_shell_words(str(error))}")
        return 2
    except NetmarginError as error:
        say(f"netmargin: {in_shell_words(str(error))}")
        return 1
    except KeyboardInterrupt as error:
        said = str(error) or "interrupted; what was written before is intact"
        say(f"netmargin: {said}")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        drop_output(sys.stdout)
        return 0
    except OSError as error:
        drop_output(sys.stdout)
        where = f" {error.filename}" if error.filename else " the output"
        say(f"netmargin: Cannot read or write{where}: {error.strerror}. Choose another place.")
        return 1
    finally:
        warnings.showwarning = shown


@contextmanager
def _end_quietly_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the process at once while libraries are imported, which takes seconds."""
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
