"""Values of records as JSON and arrays, and back, driven by the fields of dataclasses.

What JSON cannot say is an object with one key, its kind: {"tuple": [...]}, {"fraction": ["1",
"2"]}, {"array": "arrays/0.npy"}. Decoding makes numbers, containers, and objects of the classes
that registered here: whoever wrote the file, no code of it runs.
"""

import dataclasses
import importlib
import io
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, CheckpointError

PACKAGE = __name__.partition(".")[0]
"""The package whose records can be saved; a file names them by their place in it."""
_KINDS_OF_NUMBERS = "biufcSU"
"""Kinds of numpy's types that are plain bytes: no objects, which would be pickled."""

_UNKNOWN = "which this version of netmargin does not know. Update netmargin."

_records: dict[str, type] = {}
"""Every class of records by its room and name."""
_named: dict[str, tuple[Any, Callable[[str], Any]]] = {}
"""Classes whose objects are saved by their attribute `name`, and what finds an object by it."""


def register_record(kind: type) -> None:
    """Let the objects of a dataclass be saved and loaded, field by field."""
    _records[_key_of(kind)] = kind


def save_by_name(kind: Any, find: Callable[[str], Any]) -> None:
    """Let the objects of a class, which hold functions, be saved by their `name`.

    `find` returns the object of a name, or None where no name tells the whole object.
    """
    _named[_key_of(kind)] = (kind, find)


def _key_of(kind: type) -> str:
    """The name of a class in files: its room and its own name, so that files can move in a room."""
    return f"{kind.__module__.split('.')[1]}.{kind.__qualname__}"


def encode(value: Any, arrays: dict[str, np.ndarray], where: str) -> Any:
    """A value as JSON; its arrays are put into `arrays`. `where` is its place, for an error."""
    if value is None or type(value) in (bool, str):
        return value
    if type(value) in (int, float):
        return value if abs(value) < float("inf") else {"float": str(value)}
    if isinstance(value, (list, tuple)):
        items = [encode(item, arrays, f"{where}[{index}]") for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    encoded = _encode_object(value, arrays, where)
    if encoded is None:
        raise ArgumentError(
            f"{where} is of type {type(value).__name__}, which a file cannot hold."
            " Save a record without it, such as one with a loss of netmargin.losses.BY_NAME."
        )
    return encoded


def _encode_object(value: Any, arrays: dict[str, np.ndarray], where: str) -> dict | None:
    """A value that JSON does not know as an object with one key; None for one that has no kind."""
    if isinstance(value, dict):
        pairs = [
            [encode(key, arrays, where), encode(item, arrays, f"{where}[{key!r}]")]
            for key, item in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, Fraction):
        return {"fraction": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, Enum):
        return {"enum": [_key_of(type(value)), value.name]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, Tensor):
        return _encode_tensor(value, arrays)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _KINDS_OF_NUMBERS:
        return {
            "array" if isinstance(value, np.ndarray) else "scalar": _store(
                np.asarray(value), arrays
            )
        }
    if type(value) in _records.values():
        value.__getstate__()  # what a record computes before it is pickled
        fields = {
            field.name: encode(getattr(value, field.name), arrays, f"{where}.{field.name}")
            for field in dataclasses.fields(value)
        }
        return {"record": [_key_of(type(value)), fields]}
    for key, (kind, find) in _named.items():
        # Another object of the same name may hold other functions: the class must agree, too.
        if isinstance(value, kind) and type(find(value.name)) is type(value):
            return {"named": [key, value.name]}
    return None


def _encode_tensor(value: Tensor, arrays: dict[str, np.ndarray]) -> dict:
    """A tensor as an array, with its type: numpy has no bfloat16, which is kept as its bits."""
    dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if dense.dtype is torch.bfloat16:
        return {"tensor": ["bfloat16", _store(dense.view(torch.int16).numpy(), arrays)]}
    return {"tensor": ["", _store(dense.numpy(), arrays)]}


def _store(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """The member of the file that will hold an array."""
    name = f"arrays/{len(arrays)}.npy"
    arrays[name] = array
    return name


def decode(value: Any, members: dict[str, bytes]) -> Any:
    """The value that `encode` encoded. Raises whatever a wrong file makes it raise."""
    if isinstance(value, list):
        return [decode(item, members) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    match kind:
        case "float":
            return float(held)
        case "tuple":
            return tuple(decode(item, members) for item in held)
        case "dict":
            return {decode(key, members): decode(item, members) for key, item in held}
        case "fraction":
            return Fraction(int(held[0]), int(held[1]))
        case "path":
            return Path(held)
        case "array":
            return _read_array(members[held])
        case "scalar":
            return _read_array(members[held])[()]
        case "tensor":
            tensor = torch.from_numpy(_read_array(members[held[1]]))
            return tensor.view(torch.bfloat16) if held[0] == "bfloat16" else tensor
        case "enum":
            return _find_enum(held[0])[held[1]]
        case "named":
            _import_room(held[0])
            return _find_named(held[0], held[1])
        case "record":
            return _decode_record(held[0], held[1], members)
    raise ValueError(f"it holds the unknown kind {kind!r}")


def _decode_record(key: str, held: dict[str, Any], members: dict[str, bytes]) -> Any:
    """A record with these fields; fields that are newer than the file have their defaults."""
    _import_room(key)
    if key not in _records:
        raise CheckpointError(f"The file holds a record {key}, {_UNKNOWN}")
    kind: Any = _records[key]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := [name for name in held if name not in fields]:
        raise CheckpointError(
            f"The file holds a record {key} with the field {unknown[0]!r}, {_UNKNOWN}"
        )
    # Past __init__: its checks need not hold for what is computed, and its arguments may differ.
    record = object.__new__(kind)
    for name, field in fields.items():
        if name in held:
            item = decode(held[name], members)
        elif field.default is not dataclasses.MISSING:
            item = field.default
        elif field.default_factory is not dataclasses.MISSING:
            item = field.default_factory()
        else:
            raise ValueError(f"the field {name!r} of {key} is missing")
        object.__setattr__(record, name, item)
    return record


def _find_named(key: str, name: str) -> Any:
    """An object that is saved by its name."""
    _import_room(key)
    found = _named[key][1](name)
    if found is None:
        raise ValueError(f"there is no {key} of the name {name!r}")
    return found


def _find_enum(key: str) -> type[Enum]:
    """An enumeration of this package by its room and name."""
    found = getattr(_import_room(key), key.partition(".")[2])
    if not (isinstance(found, type) and issubclass(found, Enum)):
        raise ValueError(f"{key} is no enumeration")
    return found


def _import_room(key: str) -> Any:
    """The room that a class lies in, whose import registers its records.

    Of a file's word only the name of a room of this package is ever imported.
    """
    room = key.partition(".")[0]
    if not room.isidentifier() or room.startswith("_"):
        raise ValueError(f"{key!r} is no class of {PACKAGE}")
    try:
        return importlib.import_module(f"{PACKAGE}.{room}")
    except ModuleNotFoundError as error:
        raise CheckpointError(f"The file holds {key!r}, {_UNKNOWN}") from error


def _read_array(content: bytes) -> np.ndarray:
    """The array of a member. Raises ValueError for objects, and for another size than it has."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read_header(file)
    if dtype.hasobject or dtype.kind not in _KINDS_OF_NUMBERS:
        raise ValueError(f"an array of type {dtype}")
    # Not by numpy's own reader, which believes any shape and asks for its memory first.
    flat = np.frombuffer(content[file.tell() :], dtype) if 0 not in shape else np.zeros(0, dtype)
    return flat.reshape(shape, order="F" if by_columns else "C").copy(order="K")
