"""Records as files: plain containers, numbers and tensors, as torch saves them. torch reads them
without running code (`weights_only`), whoever wrote the file.
"""

import dataclasses
import importlib
import io
import zipfile
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, CheckpointError
from .arguments import check_path
from .files import explain_unreadable, write_atomically
from .records import Row, Shown, Table

_FORMAT = 2
"""Version of the format; a file of a later one is refused."""
_PACKAGE = __name__.partition(".")[0]
_KIND = "\0kind"
"""The key by which a dict stands for an object of another type: no record has such a key."""
_KINDS_OF_NUMBERS = "biufcSU"
"""Kinds of numpy's types that are plain bytes, and no objects."""
_READERS = {
    ".npy": "arrays of numpy. numpy.load reads them: data are pairs (X, y) of such",
    ".csv": "a table. pandas.read_csv reads it: data are pairs (X, y) of its columns",
    ".jsonl": "a history of JSON lines. netmargin.History.load reads it",
    ".safetensors": "weights. netmargin.load_weights(model, path) reads them",
}
"""What files hold that are no records, by the ends of their names, and what reads them."""
_UNKNOWN = "which this version of netmargin does not know. Update netmargin."

_records: dict[str, type] = {}
"""Every class of records by its package and name."""
_named: dict[str, tuple[Any, Callable[[str], Any]]] = {}
"""Classes whose objects are saved by their attribute `name`, and what finds an object by it."""


class Record(Shown):
    """A base of dataclasses that can be saved as a file, and loaded by `netmargin.load`."""

    scores_from = ""
    """Which output of the net was read, where there were several, or how; "" for others."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{_PACKAGE}."):
            _records[_key_of(cls)] = cls

    def __str__(self) -> str:
        return self.summary()

    def summary(self, *, full: bool = False) -> str:
        """Describe the record in text, as `print` does; `repr` is one line. `full` adds what does
        not fit on a screen, where there is more.
        """
        return self._told(self._table()).text()

    def say_scores(self, text: str) -> None:
        """Keep which output of the net was read."""
        object.__setattr__(self, "scores_from", text)

    def _repr_html_(self) -> str:
        return self._told(self._table()).html()

    def _told(self, table: Table) -> Table:
        """A table with a first row about the output that was read, where there is something."""
        told: list[Row] = [("scores", self.scores_from)] if self.scores_from else []
        return dataclasses.replace(table, rows=[*told, *table.rows])

    def save(self, path: str | Path) -> Path:
        """Write this record to a file, which `netmargin.load` reads; return its path.

        The file at `path` is replaced whole or not at all, and folders are made as needed. Raises
        ArgumentError for what no file can hold, such as a loss of your own, else CheckpointError.
        """
        file = check_path("path", path)
        buffer = io.BytesIO()
        torch.save({"format": _FORMAT, "record": _encode(self, type(self).__name__)}, buffer)
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
    ...     again = nm.load(report.save(f"{folder}/report.pt"))
    >>> again.normalized_margin == report.normalized_margin
    True

    Beyond the papers.
    """
    file = check_path("path", path)
    # Whatever is wrong with a file, in zipfile, torch, numpy or below.
    with explain_unreadable(file, "no record of netmargin", Exception):
        content = file.read_bytes()
        if held := _find_other(file, content):
            raise CheckpointError(f"{path} is no record of netmargin, but {held}.")
        _check_members(content)
        contents = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if isinstance(contents, dict) and "format" not in contents:
            raise CheckpointError(
                f"{path} is no record of netmargin. netmargin.load_weights(model, path) reads the"
                " weights of a net."
            )
        version = contents["format"]
        if isinstance(version, int) and version > _FORMAT:
            raise CheckpointError(
                f"{path} was written by a later version of netmargin (format {version}; this one"
                f" reads {_FORMAT}). Update netmargin."
            )
        found = _decode(contents["record"])
    if not isinstance(found, Record):
        raise CheckpointError(f"{path} holds no record, but {type(found).__name__}.")
    return found


def save_by_name(kind: Any, find: Callable[[str], Any]) -> None:
    """Let objects of a class be saved by their `name`; `find` returns one by it, or None."""
    _named[_key_of(kind)] = (kind, find)


def _key_of(kind: type) -> str:
    """The name of a class in files: its package and its own name, so that files can move in it."""
    return f"{kind.__module__.split('.')[1]}.{kind.__qualname__}"


def _find_other(file: Path, content: bytes) -> str:
    """What a file holds, and what reads it, where it or its parts are called so; "" for others."""
    names = [file.name]
    if zipfile.is_zipfile(io.BytesIO(content)):  # as records are, under any name
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    return next((_READERS[end] for n in names for end in _READERS if n.endswith(end)), "")


def _check_members(content: bytes) -> None:
    """Raise ValueError for a file that is larger than it looks, or holds a flipped bit."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > len(content):
            raise ValueError("its members are compressed or overlap")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"the check sum of {damaged} is wrong")


def _encode(value: Any, where: str) -> Any:
    """A value in types that torch loads without code; `where` is its place, for an error."""
    if value is None or type(value) in (bool, str, int, float):
        return value
    if type(value) in (list, tuple):
        return type(value)(_encode(item, f"{where}[{i}]") for i, item in enumerate(value))
    if type(value) is dict:
        items = [
            (_encode(key, where), _encode(item, f"{where}[{key!r}]")) for key, item in value.items()
        ]
        return {_KIND: "dict", "items": items}
    if isinstance(value, Tensor):
        # A copy, as torch saves the whole storage of a view.
        plain = value.detach().cpu().resolve_conj().resolve_neg()
        return plain.clone(memory_format=torch.contiguous_format)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _KINDS_OF_NUMBERS:
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        bits = torch.from_numpy(np.array(value).reshape(-1).view(np.uint8))
        return {_KIND: kind, "type": value.dtype.str, "shape": list(value.shape), "bits": bits}
    if isinstance(value, Fraction):
        return {_KIND: "fraction", "terms": [value.numerator, value.denominator]}
    if isinstance(value, Path):
        return {_KIND: "path", "path": str(value)}
    if isinstance(value, Enum):
        return {_KIND: "enum", "of": _key_of(type(value)), "name": value.name}
    if type(value) in _records.values():
        value.__getstate__()  # what a record computes before it is pickled
        fields = {
            field.name: _encode(getattr(value, field.name), f"{where}.{field.name}")
            for field in dataclasses.fields(value)
        }
        told = {"scores_from": value.scores_from} if value.scores_from else {}
        return {_KIND: "record", "of": _key_of(type(value)), "fields": fields | told}
    for key, (kind, find) in _named.items():
        # Another object of the same name may hold other functions: the class must agree, too.
        if isinstance(value, kind) and type(find(value.name)) is type(value):
            return {_KIND: "named", "of": key, "name": value.name}
    raise ArgumentError(
        f"{where} is of type {type(value).__name__}, which a file cannot hold."
        " Save a record without it, such as one with a loss of netmargin.losses.BY_NAME."
    )


def _decode(value: Any) -> Any:
    """The value that `_encode` encoded. Raises whatever a wrong file makes it raise."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_decode, value))
    if not isinstance(value, dict):
        return value
    match value[_KIND]:
        case "dict":
            return {_decode(key): _decode(item) for key, item in value["items"]}
        case "array" | "scalar":
            dtype = np.dtype(value["type"])
            if dtype.kind not in _KINDS_OF_NUMBERS:
                raise ValueError(f"an array of type {dtype}")
            array = value["bits"].numpy().view(dtype).reshape(value["shape"])
            return array if value[_KIND] == "array" else array[()]
        case "fraction":
            return Fraction(*value["terms"])
        case "path":
            return Path(value["path"])
        case "enum":
            kind = getattr(_import_package(value["of"]), value["of"].partition(".")[2])
            if not (isinstance(kind, type) and issubclass(kind, Enum)):
                raise ValueError(f"{value['of']} is no enumeration")
            return kind[value["name"]]
        case "named":
            _import_package(value["of"])
            return _named[value["of"]][1](value["name"])
        case "record":
            return _decode_record(value["of"], value["fields"])
    raise ValueError(f"it holds the unknown kind {value[_KIND]!r}")


def _decode_record(key: str, held: dict[str, Any]) -> Any:
    """A record with these fields; fields that are newer than the file have their defaults."""
    _import_package(key)
    if key not in _records:
        raise CheckpointError(f"The file holds a record {key}, {_UNKNOWN}")
    kind: Any = _records[key]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    told = held.pop("scores_from", "")
    if unknown := [name for name in held if name not in fields]:
        raise CheckpointError(
            f"The file holds a record {key} with the field {unknown[0]!r}, {_UNKNOWN}"
        )
    # Past __init__: its checks need not hold for what is computed, and its arguments may differ.
    record = object.__new__(kind)
    for name, field in fields.items():
        if name in held:
            item = _decode(held[name])
        elif field.default is not dataclasses.MISSING:
            item = field.default
        elif field.default_factory is not dataclasses.MISSING:
            item = field.default_factory()
        else:
            raise ValueError(f"the field {name!r} of {key} is missing")
        object.__setattr__(record, name, item)
    if told:
        record.say_scores(_decode(told))
    return record


def _import_package(key: str) -> Any:
    """Import the package of a class, one of netmargin, which registers its records."""
    package = key.partition(".")[0]
    if not package.isidentifier() or package.startswith("_"):
        raise ValueError(f"{key!r} is no class of {_PACKAGE}")
    try:
        return importlib.import_module(f"{_PACKAGE}.{package}")
    except ModuleNotFoundError as error:
        raise CheckpointError(f"The file holds {key!r}, {_UNKNOWN}") from error
