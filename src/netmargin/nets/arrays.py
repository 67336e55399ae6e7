"""A whole data set in memory: tensors read from whatever holds numbers, and checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import how_to_number, require_numbers
from ..core.records import Shown
from ..errors import DataError
from .advice import describe_several_labels
from .named_inputs import NamedInputs, require_one_shape
from .whole_tensors import are_finite


@dataclass(frozen=True)
class Arrays(Shown):
    """A whole data set, checked: X (N, ...) or `NamedInputs`, as it was given, and y (N,)."""

    X: Any
    y: Tensor

    def __len__(self) -> int:
        return len(self.X)


def as_inputs(values: Any, name: str = "X") -> Any:
    """Inputs without labels as a tensor of at least one sample, all finite. Raises DataError."""
    X = values if isinstance(values, NamedInputs) else read_tensor(values, name)
    _check_inputs(X, name, "")
    return X


def read_tensor(values: Any, name: str) -> Tensor:
    """Arrays, nested lists and tensors as an ordinary real tensor, detached. Raises DataError."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        try:
            tensor = torch.from_numpy(_as_numpy(values, name))
        except DataError:
            raise
        except (TypeError, ValueError) as error:
            require_one_shape(f"{name} holds samples", _shapes_of(values))
            raise DataError(f"{name} cannot be read as an array of numbers: {error}") from error
    if tensor.is_complex():
        raise DataError(
            f"{name} holds complex numbers. Pass its real part, or both parts side by side."
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise DataError(
            f"{name} is a sparse or quantized tensor. Pass {name}.to_dense() or .dequantize()."
        )
    # Few operations of torch take unsigned integers of more than a byte.
    return tensor.long() if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64) else tensor


def _shapes_of(values: Any) -> set[tuple[int, ...]]:
    """The shapes of the samples in a list; nothing where they have none."""
    try:
        return {tuple(np.shape(sample)) for sample in values}
    except (TypeError, ValueError):
        return set()


def _as_numpy(values: Any, name: str) -> Any:
    """An array of numbers. Raises TypeError or ValueError, DataError for columns of text."""
    array = np.ascontiguousarray(values)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # torch reads no other order
    if not hasattr(values, "to_numpy"):
        array = require_numbers(array, name)
    if array.dtype != object:
        # Torch warns of arrays that must not be written to, as those of pandas are.
        return array if array.flags.writeable else array.copy()
    if array.ndim == 1:
        require_values(array, name)
    if not hasattr(values, "to_numpy"):
        return array.astype(np.float64)
    # What pandas holds in mixed types, in types of its own or with gaps is objects to numpy.
    try:
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError, NotImplementedError):
        title = getattr(values, "name", None) or name  # its arrays have none, nor have all series
        kinds = values.dtypes.items() if values.ndim == 2 else [(title, "object")]
        text = [str(c) for c, kind in kinds if str(kind) in ("object", "str", "string", "category")]
        raise DataError(
            f"{name} holds text in {', '.join(map(repr, text[:6]))}. {how_to_number(name)}."
        ) from None


def require_values(values: Any, name: str) -> None:
    """Raise DataError where single samples have no value: None, or NaN among text."""
    import pandas  # late: it takes half a second to load

    empty = np.flatnonzero(pandas.isna(values))
    if len(empty):
        raise DataError(_describe_missing(name, values[empty[0]], len(empty), empty[0]))


def check_batch(X: Any, y: Tensor, where: str) -> None:
    """Raise DataError for inputs or labels that cannot be used, or do not match in number."""
    _check_inputs(X, "X", f"{where}: ")
    dimensions = 2 if isinstance(X, NamedInputs) else X.ndim
    if dimensions > 1 and y.ndim > 1 and len(y) == len(X) and y.numel() > len(X):
        raise DataError(f"{where}: y has shape {tuple(y.shape)}: {describe_several_labels(y)}")
    if y.numel() != len(X) or (y.ndim > 1 and y.shape[0] != len(X)):
        likely = dimensions == 1 and y.ndim > 1
        hint = " Are they swapped? The inputs come first." if likely else ""
        if y.numel() == 1:
            hint = " For single samples (x, label): DataLoader(samples, batch_size=1000)."
        raise DataError(
            f"{where}: X has {len(X)} samples but y has shape {tuple(y.shape)}. Pass one label per"
            f" sample.{hint}"
        )
    if y.is_meta:
        raise DataError(
            f"{where}: the labels live on the 'meta' device. Load them onto a real device."
        )
    # As torch marks them, and scikit-learn: -1 is no sign beside classes from 2 on.
    marks = y.min() >= -1 and y.max() > 1
    # Bytes have no -100: torch takes it for 156.
    missing = y.isnan() | ((y < 0) & ((y == -100) | ((y == -1) & marks)))
    if missing.any():
        first = int(missing.reshape(-1).nonzero()[0])
        mark = f"{y.reshape(-1)[first].item():g}"
        raise DataError(f"{where}: {_describe_missing('y', mark, int(missing.sum()), first)}")
    if y.is_floating_point() and not bool((y == y.round()).all()):
        raise DataError(
            f"{where}: labels must be whole numbers (signs or class indices); y holds"
            " fractions, such as targets of a regression."
        )


def _describe_missing(name: str, mark: Any, count: int, first: int) -> str:
    """A sentence about samples without a value, and what to do with them."""
    return (
        f"{name} holds {mark} in place of a value for sample {first}, {count} in all. Leave such"
        " samples out."
    )


def _check_inputs(X: Any, name: str, where: str) -> None:
    """Raise DataError for inputs that are empty, on the 'meta' device or not finite."""
    if isinstance(X, NamedInputs):
        for key, part in X.parts.items():
            _check_inputs(part, repr(key), where)
            if len(part) != len(X):
                raise DataError(
                    f"{where}{key!r} has {len(part)} rows, and {next(iter(X.parts))!r} {len(X)}."
                    " Every input has a row for each sample, padded where lengths differ."
                )
        return
    if X.ndim == 0 or len(X) == 0:
        raise DataError(
            f"{where}{name} holds no samples (shape {tuple(X.shape)}). Pass at least one sample."
        )
    if X.is_meta:
        raise DataError(f"{where}{name} lives on the 'meta' device. Load it onto a real device.")
    if X.is_floating_point() and not are_finite(X):
        bad = torch.nonzero(~torch.isfinite(X.reshape(len(X), -1)).all(1))[:, 0]
        raise DataError(
            f"{where}{name} holds NaN or infinite values in {len(bad)} of {len(X)} samples,"
            f" first sample {bad[0].item()}. Drop or impute them."
        )
