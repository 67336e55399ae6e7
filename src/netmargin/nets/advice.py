"""What to say of a forward pass that fails, or of data that are none."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..core.memory import describe_shortage, is_of_memory
from ..errors import DataError, ModelError, NetmarginError

_FAULTS_OF_DATA = {
    r"indices.*scalar types|for embedding": (
        "Embeddings take whole numbers: give the tokens as integers, X.long()."
    ),
    r"index out of range in self|index .* out of bounds": (
        "A table lacks the entry: compare the largest input with num_embeddings."
    ),
}
"""What to do, by patterns of torch's and Python's messages, looked for before ..."""
_FAULTS_OF_MODELS = {
    r"numpy|doesn't have storage|\.tolist\(\)": (
        "Its forward leaves torch for numpy or Python numbers. Write it with torch alone."
    ),
    r"derivative for .* is not implemented|inference tensor": (
        "The scores carry no gradient in its inputs: take operations with a derivative, and leave"
        " torch.inference_mode()."
    ),
    r"missing \d+ required|takes \d+ positional|unexpected keyword|string indices"
    r"|indices must be integers|only integers, slices|too many indices|not a mapping"
    r"|new\(\): invalid data type 'str'": (
        "Its forward may expect a dict or several inputs; netmargin calls model(x) with one tensor."
        " Wrap it: class OneInput(torch.nn.Module), whose forward(self, x) calls the net with the"
        ' others, or give all inputs by name, X = {"x": ..., "mask": ...}.'
    ),
    r"got:? (float|double|c10::\w+|Half|BFloat16) (!=|and) (float|double|c10::\w+|Half)": (
        "It mixes floating types. Convert all of it, model.float() or model.bfloat16(), or let its"
        " forward cast in between."
    ),
    r"same device|on cpu.*cuda|cuda.*cpu": (
        "Part of it is on another device: register tensors as buffers, and call model.to(device)."
    ),
    r"stateless API": (
        "A module inside is scripted or parallel. Put the Python module in its place."
    ),
    r"use_reentrant": "Pass use_reentrant=False to torch.utils.checkpoint.checkpoint.",
    r"SyncBatchNorm expected": (
        "On a CPU call model.eval(), or put nn.BatchNorm1d or 2d in its place."
    ),
    r"more than 1 value per channel": (
        "A normalization inside is in training mode. Call model.eval()."
    ),
}
"""... these, the more telling ones first."""

_ROUNDED_SUM = 1e-2
"""Probabilities that were rounded, also to bfloat16, sum to 1 up to this."""

STREAM_HINT = "Pass a pair (X, y), or an iterable of (x, y) batches such as a DataLoader."


@contextmanager
def explain_forward_errors(x: Any) -> Iterator[None]:
    """Turn what a forward pass on x raises into an error of ours that says what to do."""
    try:
        yield
    except NetmarginError:
        raise
    except Exception as error:  # forward is the caller's code, and may raise anything
        # Chained, so that the caller's own traceback is shown above the explanation.
        raise _explain(error, x) from error


def _explain(error: Exception, x: Any) -> NetmarginError:
    """The error to raise for an exception of a forward pass on x."""
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if is_of_memory(error):
        return describe_shortage(error, len(x[0] if isinstance(x, (tuple, list)) else x))
    what = f"type {type(x).__name__}" if shape is None else f"shape {tuple(shape)} and type {dtype}"
    text = str(error).strip().rstrip(".")
    if parts := list(getattr(x, "parts", ())):  # inputs by name
        what = f"the inputs {', '.join(map(repr, parts))}"
        if re.search(r"not dict|\(dict|'dict' object", text):
            return DataError(
                f"The model takes one tensor, and the data hold {what}. Leave out what it does not"
                " take, or give pairs (x, y)."
            )
    if not (isinstance(error, (RuntimeError, TypeError, ValueError)) and text):
        text = f"{type(error).__name__} {text}".strip()
    said = f"The model could not process a batch of {what}: {text}."
    if told := re.search(r"expected input.* to have (\d+) channels", text):
        if x.ndim == 4 and x.shape[3] == int(told[1]):
            return DataError(f"{said} The channels are last: give X.permute(0, 3, 1, 2).")
        if x.ndim == 3 and told[1] == "1":
            return DataError(f"{said} There is no axis of channels: give X[:, None].")
    if shape is not None and len(shape) == 2 and re.search(r"3D .*or 4D .*conv2d", text):
        return DataError(f"{said} Give images, X.reshape(-1, channels, height, width).")
    for blamed, faults in ((DataError, _FAULTS_OF_DATA), (ModelError, _FAULTS_OF_MODELS)):
        for pattern, advice in faults.items():
            if re.search(pattern, str(error), re.IGNORECASE | re.DOTALL):
                return blamed(f"{said} {advice}")
    # Torch raises these for inputs of a wrong shape or dtype, by far the most frequent cause.
    if not isinstance(error, (RuntimeError, IndexError, TypeError, ValueError)):
        return ModelError(f"{said} Its own forward raised that: try model(x) on one batch.")
    if dtype is not None and not dtype.is_floating_point:
        return DataError(
            f"{said} Integers stay such, as tokens do: give X.float() (X.float() / 255 for images,"
            " as ToTensor() does)."
        )
    return DataError(f"{said} Give inputs of the shape that its first layer expects.")


def why_no_data(data: Any) -> str:
    """A sentence on why something iterable is no data set, or ''."""
    kind = type(data).__name__
    if isinstance(data, bool):
        return "Where data are taken, heldout= is data as well, and no flag: heldout=(X, y)."
    if isinstance(data, nn.Module) or (isinstance(data, type) and issubclass(data, nn.Module)):
        return f"The data are a model ({kind}): the model comes first and the data second."
    if isinstance(data, (str, bytes, Path)):
        return (
            f"The data are text, {data!r}. Named data sets are functions, nm.datasets.digits();"
            " numpy.load and pandas.read_csv read files."
        )
    if isinstance(data, Mapping):
        keys = ", ".join(map(repr, list(data)[:6]))
        return f"The data are a {kind} with the keys {keys}. Take inputs and labels out of it."
    if hasattr(data, "columns"):  # of pandas
        return f"The data are a {kind}, of which X = df[features] and y = df[label] are columns."
    if hasattr(data, "shape"):
        return f"The data are one {kind} of shape {tuple(data.shape)}, without labels."
    if isinstance(data, tuple) and data and all(hasattr(part, "shape") for part in data):
        return f"The data are {len(data)} arrays. The first two of them would be data[:2]."
    return ""


def how_to_pair(batch: Any) -> str:
    """A description of a batch that is no pair, and what makes pairs of it."""
    kind = type(batch).__name__
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        return f"{kind}. {STREAM_HINT}"
    # Labels have one number for each sample; several inputs may stand before them.
    labels = next((i for i, part in enumerate(batch) if i and getattr(part, "ndim", 0) == 1), 1)
    if labels > 1:
        return (
            f"{kind} of {len(batch)}. Give several inputs by the names of forward,"
            f' [{{"x": b[0], "mask": b[1], "labels": b[{labels}]}} for b in loader].'
        )
    return (
        f"{kind} of {len(batch)}. Give pairs, [(b[0], b[1]) for b in loader], or a loader whose"
        " collate_fn returns two."
    )


def describe_several_labels(y: Tensor) -> str:
    """A sentence about labels of which a sample has several, and what makes them fit."""
    # A row with a single 1, or of probabilities, is one label, written otherwise.
    if y.ndim == 2 and bool((y >= 0).all() and ((y.sum(1) - 1).abs() < _ROUNDED_SUM).all()):
        return "one label per sample, spread over columns. Give class numbers, y.argmax(1)."
    places = ", 0" * (y.ndim - 1)
    taken = "[:, 0]" if y.ndim == 2 else f"[:, :{places}]"
    return (
        "several labels per sample, and a margin is about one. Choose one of them, here the first:"
        f" (X, y[:{places}]), with scores=lambda out: out{taken}"
    )
