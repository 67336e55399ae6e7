"""Records as files: one zip of JSON and of arrays in numpy's format, from which no code can run.

`record.json` holds the fields by name, as `record_codec` writes them, and arrays lie beside it.
Members are not compressed, so that a file cannot be larger than it looks.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError
from .arguments import check_path
from .files import write_atomically
from .notebook_tables import describe_in_notebook
from .record_codec import PACKAGE, decode, encode, register_record

_FORMAT = 1
"""Version of the format; a file of a later one is refused."""
_CONTENTS = "record.json"


class Record:
    """A base of dataclasses that can be saved as a file, and loaded by `netmargin.load`.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> history = nm.History([{"epoch": 0, "q_min": 0.1 + 0.2}], "ran 1 epoch")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nm.load(history.save(f"{folder}/history.zip")) == history
    True
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{PACKAGE}."):
            register_record(cls)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: a small table, or the line of `repr` where there is none."""
        table = describe_in_notebook(self)
        return None if table is None else table.html()

    def save(self, path: str | Path) -> Path:
        """Write this record to a file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file to write; folders are made as needed, an older file is replaced.

        Returns
        -------
        Path
            The file, for `netmargin.load`.

        Raises
        ------
        ArgumentError
            It holds something that no file can hold, such as a loss of your own.
        CheckpointError
            The file cannot be written.
        """
        file: Path = check_path("path", path)
        arrays: dict[str, np.ndarray] = {}
        contents = {"format": _FORMAT, "record": encode(self, arrays, type(self).__name__)}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            # NaN and infinities are encoded by us: JSON has no words for them.
            archive.writestr(zipfile.ZipInfo(_CONTENTS), json.dumps(contents, allow_nan=False))
            for name, array in arrays.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(name), member.getvalue())
        write_atomically(file, buffer.getvalue())
        return file


def load(path: str | Path) -> Any:
    """Read a record that its method `save` wrote: a report, a certificate, a history, a solution.

    Nothing in the file is run, whoever wrote it.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        The record, with every number as it was, bit for bit; tensors are on the CPU.

    Raises
    ------
    CheckpointError
        The file cannot be read, is damaged or no record, or was written by a later version.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> report = nm.measure(net, ([[1.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = nm.load(report.save(f"{folder}/report.zip"))
    >>> again.normalized_margin == report.normalized_margin
    True

    Beyond the papers.
    """
    file: Path = check_path("path", path)
    try:
        members = _read_members(file.read_bytes())
        contents = json.loads(members.pop(_CONTENTS))
        version = contents["format"]
        if isinstance(version, int) and version > _FORMAT:
            raise CheckpointError(
                f"{path} was written by a later version of netmargin (format {version}; this one"
                f" reads {_FORMAT}). Update netmargin."
            )
        found = decode(contents["record"], members)
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}. Check the path.") from error
    except CheckpointError:
        raise
    # Whatever is wrong with a file shows as one of these, in zipfile, json, numpy or below.
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        zipfile.BadZipFile,
        EOFError,
        NotImplementedError,
        RecursionError,
        ArithmeticError,
        RuntimeError,
        SyntaxError,
    ) as error:
        raise CheckpointError(
            f"{path} is no record of netmargin, or damaged: {type(error).__name__}: {error}."
            " Restore the file, or compute and save anew."
        ) from error
    if not isinstance(found, Record):
        raise CheckpointError(f"{path} holds no record, but {type(found).__name__}.")
    return found


def _read_members(content: bytes) -> dict[str, bytes]:
    """The members of a file by name. Raises ValueError for one that is larger than it looks."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > len(content):
            raise ValueError("its members are compressed or overlap")
        # Reading compares check sums, so that a flipped bit is an error.
        return {member.filename: archive.read(member) for member in members}
