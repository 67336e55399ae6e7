"""One data set in every form that people have it in, and what each public function makes of it."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import netmargin as nm
from netmargin.flow import gradient_descent


@dataclass(frozen=True)
class Samples:
    """A net with rows of inputs X (n, d) and labels y (n,) that it may be given in any form."""

    net: nn.Module
    X: Tensor
    y: Tensor


class Named(nn.Module):
    """The net of the samples, with its input by a name of its own."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, rows: Tensor) -> Tensor:
        """Scores of rows (n, d)."""
        return self.net(rows)


class Overwriting(nn.Module):
    """The net of the samples at half its input, which it changes in place."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        """Scores of x (n, d)."""
        return self.net(x.mul_(0.5))


def draw_samples(seed: int, *, overwriting: bool = False) -> Samples:
    """Draw 6 to 12 samples in 2 to 4 dimensions, 2 or 3 classes, that a small net labels rightly.

    With `overwriting` the net changes its input in place.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        while True:
            n, d, outputs = (
                int(torch.randint(*ends, (1,), generator=generator)) for ends in RANGES
            )
            net: nn.Module = nm.models.mlp([d, 12, 1 if outputs == 2 else outputs], bias="none")
            X = torch.randn(n, d, generator=generator)
            net = Overwriting(net) if overwriting else net
            with torch.no_grad():
                scores = net(X.clone())
            y = (scores[:, 0] > 0).long() if outputs == 2 else scores.argmax(1)
            if len(torch.unique(y)) == outputs:
                return Samples(net, X, y)


RANGES = ((6, 13), (2, 5), (2, 4))
"""Ends of the numbers of samples, dimensions and classes that are drawn."""

FORMS: dict[str, Callable[[Samples], Any]] = {
    "a list, not a tuple": lambda s: [s.X.clone(), s.y.clone()],
    "arrays": lambda s: (s.X.numpy().copy(), s.y.numpy().copy()),
    "an array in Fortran's order": lambda s: (np.asfortranarray(s.X.numpy()), s.y.numpy()),
    "an array seen backwards": lambda s: (s.X.numpy()[::-1].copy()[::-1], s.y.numpy()),
    "an array that must not be written to": lambda s: (_read_only(s.X.numpy()), s.y.numpy()),
    "nested lists": lambda s: (s.X.tolist(), s.y.tolist()),
    "a frame and a series": lambda s: (pd.DataFrame(s.X.numpy()), pd.Series(s.y.numpy())),
    "labels as a column": lambda s: (s.X, s.y[:, None]),
    "labels as floats": lambda s: (s.X, s.y.double()),
    "labels of one byte": lambda s: (s.X, s.y.to(torch.uint8)),
    "labels as text": lambda s: (s.X, [f"class {label}" for label in s.y.tolist()]),
    "labels as categories": lambda s: (s.X.numpy(), pd.Series(s.y.numpy()).astype("category")),
    "truth values": lambda s: (s.X, s.y.bool() if s.y.max() == 1 else s.y),
    "signs": lambda s: (s.X, 2 * s.y - 1 if s.y.max() == 1 else s.y),
    "a list of batches": lambda s: list(_batches(s)),
    "a generator": lambda s: _batches(s),
    "a loader in order": lambda s: DataLoader(TensorDataset(s.X, s.y), batch_size=4),
    "a shuffled loader": lambda s: DataLoader(TensorDataset(s.X, s.y), batch_size=4, shuffle=True),
    "a data set": lambda s: TensorDataset(s.X, s.y),
    "a dict": lambda s: {"rows": s.X, "labels": s.y},
    "a dict and labels": lambda s: ({"rows": s.X}, s.y),
    "dicts": lambda s: [{"rows": x, "labels": y} for x, y in _batches(s)],
}
"""Forms by name."""


def _batches(samples: Samples) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of four."""
    for start in range(0, len(samples.X), 4):
        yield samples.X[start : start + 4].clone(), samples.y[start : start + 4].clone()


def _read_only(array: np.ndarray) -> np.ndarray:
    """A copy that refuses to be written to."""
    copied = array.copy()
    copied.flags.writeable = False
    return copied


def _train(net: nn.Module, data: Any) -> list:
    """Full batches, so that the order of samples does not count."""
    history = nm.train(
        net,
        data,
        until=nm.Epochs(3),
        lr=nm.ConstantLR(0.1),
        batch_size=100,
        progress=False,
    )
    return [history.rows[0]["log_loss"], len(history.rows)]


NUMBERS: dict[str, Callable[[nn.Module, Any], list]] = {
    "analyse": lambda net, data: [nm.analyse(net, data).order],
    "measure": lambda net, data: [nm.measure(net, data).q],
    "input_margins": lambda net, data: [nm.input_margins(net, data, progress=False).distances],
    "compare": lambda net, data: [
        nm.compare({"one": net, "two": copy.deepcopy(net)}, data, progress=False).reports[0].q
    ],
    "certify": lambda net, data: [nm.certify(net, data).epsilon],
    "robustness": lambda net, data: [
        nm.robustness(net, data, effort="quick", progress=False).upper
    ],
    "train": _train,
    "gradient_descent": lambda net, data: [
        gradient_descent(net, data, steps=3, rate=1e-3).rows[-1]["log_loss"]
    ],
    "gradient_flow": lambda net, data: [
        nm.gradient_flow(net, data, time=0.01, rtol=1e-4, progress=False).rows[-1]["log_loss"]
    ],
    "regularization_path": lambda net, data: [
        nm.regularization_path(
            lambda: copy.deepcopy(net),
            data,
            lambdas=[1e-2],
            starts=1,
            iterations=100,
            progress=False,
        ).rows[-1]["log_loss"]
    ],
    "Watch": lambda net, data: [nm.Watch(net, data).history.rows[0]["log_loss"]],
    "label_errors": lambda net, data: [nm.label_errors(data).scores],
}
"""What each function computes of a net and data: numbers, in the order of the samples."""


def compute(function: str, samples: Samples, form: str | None) -> np.ndarray | Exception:
    """The numbers of a function for samples in a form (None: a pair of tensors), or its error.

    Raises AssertionError if the caller's samples were changed.
    """
    X, y = samples.X.clone(), samples.y.clone()
    given = Samples(samples.net, X, y)
    net = Named(copy.deepcopy(samples.net))
    try:
        numbers = NUMBERS[function](net, FORMS[form](given) if form else (X, y))
    except Exception as error:
        return error
    finally:
        assert torch.equal(X, samples.X), (function, form)
        assert torch.equal(y, samples.y), (function, form)
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in numbers])


def describe_difference(
    function: str, samples: Samples, form: str, expected: np.ndarray | Exception | None = None
) -> str | None:
    """What is wrong about a form: other numbers, or somebody else's error; None where nothing is.

    A form may be refused by an error of netmargin, also where the pair is answered.

    expected : the numbers of the pair, where they are known.
    """
    if expected is None:
        expected = compute(function, samples, None)
    found = compute(function, samples, form)
    where = f"{function}({form}), {type(samples.net).__name__}"
    if isinstance(found, Exception):
        own = isinstance(found, nm.NetmarginError)
        return None if own else f"{where}: {type(found).__name__}: {found}"
    if isinstance(expected, Exception):
        return f"{where}: answered, though the pair is refused: {expected}"
    # Batches are summed in another order, in float32: some last digits differ.
    if expected.shape == found.shape and np.allclose(expected, found, rtol=2e-4, atol=1e-5):
        return None
    return f"{where}: {found} for {expected}"
