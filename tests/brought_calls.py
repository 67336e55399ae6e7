"""Nets as people bring them times ten public functions: `python -m tests.brought_calls` prints what
comes out.

Each cell is "." the right number, judged by plain torch in float64, "s" a number beside a warning that
it is not what it looks like, "-" a refusal in netmargin's words, "W" a wrong number, "F" somebody
else's error. tests/brought_calls.txt holds the letters that must come out: what this prints to its
standard output.
"""

import contextlib
import io
import json
import math
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import netmargin as nm
from tests.brought_nets import NETS, Brought, C, N

RIGHT, SAID, REFUSED, WRONG, FOREIGN = ".", "s", "-", "W", "F"


def margins(scores: Tensor, y: Tensor) -> Tensor:
    """Margins (N,) of scores (N, outputs)."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * y - 1)
    own = scores.gather(1, y[:, None])[:, 0]
    return own - scores.scatter(1, y[:, None], -math.inf).amax(1)


def same(got: Any, right: Any, tolerance: float = 2e-5) -> None:
    """Assert that two arrays are the same to `tolerance` of the largest entry."""
    got, right = np.asarray(got, dtype=float), np.asarray(right, dtype=float)
    assert got.shape == right.shape, f"shape {got.shape}, right {right.shape}"
    scale = max(1e-3, np.abs(right[np.isfinite(right)]).max(initial=0))
    with np.errstate(invalid="ignore"):
        off = np.where(got == right, 0, np.abs(got - right)).max() / scale
    shown = f"{got.ravel()[:3]}, right {right.ravel()[:3]}"
    assert off <= tolerance, f"off by {off:.2g} of the largest: {shown}"


@dataclass(frozen=True)
class Cell:
    """A net with samples, before a function is called."""

    brought: Brought
    seed: int
    net: nn.Module
    X: Tensor
    y: Tensor

    def exact(self) -> nn.Module:
        """The net as it is now, in float64 and in evaluation mode, without a copy by netmargin."""
        torch.manual_seed(self.seed)
        net = self.brought.plain().double().eval()
        if not any(isinstance(w, nn.UninitializedParameter) for w in self.net.parameters()):
            net.load_state_dict(self.net.state_dict())
        elif self.brought.draw is not None:
            net(self.X.double())
        for name, weight in net.named_parameters():
            if name.endswith("_orig"):
                weight.data *= dict(net.named_buffers())[name.replace("_orig", "_mask")]
        return net

    def scores(self, net: nn.Module, X: Tensor) -> Tensor:
        """Scores (n, outputs) in float64."""
        X = X.clone().double() if X.is_floating_point() else X
        return self.brought.scores(net, X).reshape(len(X), -1)

    def margins(self) -> Tensor:
        """Margins of the net as it is now."""
        return margins(self.scores(self.exact(), self.X).detach(), self.y)


def gap(scores: Tensor, label: Tensor, rival: Tensor) -> Tensor:
    """By how much labels win over rivals (n,)."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * label - 1)
    rows = torch.arange(len(scores))
    return scores[rows, label] - scores[rows, rival]


def judge_analyse(cell: Cell, found: Any) -> None:
    """Scores scale as the answer says, where all that scales is a parameter."""
    if found.order is None or found.statistics or found.ignored:
        return
    exact = cell.exact()
    before = cell.scores(exact, cell.X).detach()
    names = {name for members in found.members.values() for name in members}
    names |= {f"module.{name}" for name in names}  # DataParallel's own prefix
    with torch.no_grad():
        for name, w in exact.named_parameters():
            w *= 0.5 if name in names else 1
    after = cell.scores(exact, cell.X).detach()
    same(after, before * 0.5 ** float(found.order), 1e-5 + 2 * (found.deviation or 0))


def judge_measure(cell: Cell, found: Any) -> None:
    """The margins are those of the scores."""
    same(found.q, cell.margins(), cell.brought.tolerance)


def judge_compare(cell: Cell, found: Any) -> None:
    """So are those beside another net."""
    same(found.reports[1].q, cell.margins(), cell.brought.tolerance)


def judge_input_margins(cell: Cell, found: Any) -> None:
    """The distances are least ratios of gap and slope, by plain autograd, sample by sample; those of
    tokens behind their embedding.
    """
    exact, X, right = cell.exact(), cell.X, []
    if not X.is_floating_point():
        X, exact = exact[0](X).detach(), exact[1:]
    for x, label in zip(X.double(), cell.y, strict=True):
        x = x[None].clone().requires_grad_()
        scores = cell.brought.scores(exact, x.clone()).reshape(1, -1)
        rivals = [j for j in range(max(2, scores.shape[1])) if j != label]
        gaps = [gap(scores, label, torch.tensor([j])).sum() for j in rivals]
        slopes = [torch.autograd.grad(g, x, retain_graph=True)[0].norm() for g in gaps]
        assert min(slopes) > 0, "distances of a net without gradients"
        right.append(min(float(g / slope) for g, slope in zip(gaps, slopes, strict=True)))
    same(found.distances, right, max(1e-4, cell.brought.tolerance))


def judge_certify(cell: Cell, found: Any) -> None:
    """The residual is that of plain gradients and the multipliers that are returned."""
    same(found.q_min, cell.margins().min())
    exact = cell.exact()
    trained = {name for name, w in cell.net.named_parameters() if w.requires_grad}
    weights = [w.requires_grad_() for name, w in exact.named_parameters() if name in trained]
    with torch.no_grad():
        for w in weights:
            w *= found.q_min ** (-1 / found.order)
    samples, rivals = found.constraints.T
    gaps = gap(cell.scores(exact, cell.X)[samples], cell.y[samples], rivals)
    slopes = torch.autograd.grad((found.multipliers * gaps).sum(), weights, allow_unused=True)
    parts = [w - (0 if slope is None else slope) for w, slope in zip(weights, slopes, strict=True)]
    same(found.epsilon, math.sqrt(sum(float((part**2).sum()) for part in parts)), 1e-4)


def judge_robustness(cell: Cell, found: Any) -> None:
    """Inputs that are handed back are misclassified at their distance; bounds are in order."""
    assert (found.lower <= found.upper).all(), "lower above upper"
    same(found.q, cell.margins()[:FEW], cell.brought.tolerance)
    exact = cell.exact()
    for x, label, lower in zip(cell.X[:FEW].double(), cell.y, found.lower, strict=False):
        if lower > 0:
            steps = torch.randn(50, *x.shape, dtype=torch.float64)
            steps *= lower / steps.flatten(1).norm(dim=1).reshape(-1, *(1,) * x.ndim)
            inside = margins(cell.scores(exact, x + steps).detach(), label.expand(50))
            assert inside.min() >= -1e-9, "misclassified within a certified radius"
    for i, flip in enumerate(found.flips if found.flips is not None else ()):
        if np.isfinite(found.upper[i]) and found.upper[i] > 0:
            point = torch.as_tensor(flip)[None]
            same(float((point[0] - cell.X[i]).norm()), found.upper[i])
            left = margins(cell.scores(exact, point).detach(), cell.y[i : i + 1])[0]
            assert left <= 1e-9, f"input {i} is not misclassified: {left:.3g} left"


def judge_label_errors(cell: Cell, found: Any) -> None:
    """Every sample gets a finite score."""
    assert torch.isfinite(found.scores).all(), "a score is not finite"


def judge_page(cell: Cell, found: Any) -> None:
    """The numbers inside the page are the margins."""
    shown = json.loads(re.search(r'application/json"[^>]*>(.*?)</script>', found, re.S).group(1))
    (split,) = shown["splits"].values()
    same(split["columns"]["q"], cell.margins(), max(1e-3, cell.brought.tolerance))  # four digits


def judge_train(cell: Cell, found: Any) -> None:
    """The last row is about the net that is handed back."""
    same(found.rows[-1]["q_min"], cell.margins().min(), cell.brought.tolerance)


def judge_maximize_margin(cell: Cell, found: Any) -> None:
    """So is the report at the end."""
    same(found.report.q, cell.margins(), cell.brought.tolerance)


FEW = 4
"""Samples whose radii are computed."""


def write_page(net: nn.Module, data: tuple[Tensor, Tensor]) -> str:
    """Write a page, and read it."""
    with tempfile.TemporaryDirectory() as folder:
        nm.page(net, data, out=Path(folder) / "page.html")
        return (Path(folder) / "page.html").read_text(encoding="utf-8")


FUNCTIONS: dict[str, Callable[[nn.Module, tuple[Tensor, Tensor]], Any]] = {
    "analyse": lambda net, data: nm.analyse(net, data[0]),
    "measure": lambda net, data: nm.measure(net, data),
    "compare": lambda net, data: nm.compare([net, net], data, progress=False),
    "input_margins": lambda net, data: nm.input_margins(net, data, progress=False),
    "certify": lambda net, data: nm.certify(net, data, progress=False),
    "robustness": lambda net, data: nm.robustness(
        net, tuple(part[:FEW] for part in data), progress=False
    ),
    "label_errors": lambda net, data: nm.label_errors(data, model=net),
    "page": write_page,
    "train": lambda net, data: nm.train(net, data, until=nm.Epochs(2), progress=False),
    "maximize_margin": lambda net, data: nm.maximize_margin(
        net, data, temperatures=(0.1,), iterations=10, progress=False
    ),
}


def draw_cell(net: str, seed: int) -> Cell:
    """A net with samples that it labels rightly."""
    brought = NETS[net]
    torch.manual_seed(seed)
    model = brought.make().eval()
    X = brought.draw()
    cell = Cell(brought, seed, model, X, torch.arange(N) % C)
    if brought.scores is None:
        return cell
    scores = cell.scores(cell.exact(), X).detach()
    y = (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)
    return replace(cell, y=y)


def fill_cell(net: str, function: str, seed: int = 0) -> tuple[str, str]:
    """Call a function on a net: what came out, and a sentence about it."""
    quiet = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
    ):
        warnings.simplefilter("ignore")
        cell = draw_cell(net, seed)
        warnings.simplefilter("always")
        try:
            found = FUNCTIONS[function](cell.net, (cell.X.clone(), cell.y.clone()))
        except nm.NetmarginError as error:
            return REFUSED, str(error)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            return FOREIGN, " ".join(text.split())
        told = [str(w.message) for w in warned] + [getattr(found, "warning", "")]
        told += [report.warning for report in getattr(found, "training", ())]
        told += re.findall("These scores are probabilities", found) if function == "page" else []
        warnings.simplefilter("ignore")
        if function in cell.brought.refuses and any(told):
            return SAID, max(told)
        if cell.brought.scores is None:
            wrong = function in cell.brought.refuses
            return (WRONG, "answers without a word") if wrong else (RIGHT, "")
        try:
            globals()[f"judge_{function}"](cell, found)
        except Exception as error:
            return WRONG, f"{type(error).__name__}: {error}" + "; ".join(told)
    return RIGHT, ""


def write_row(net: str, outcomes: list[str]) -> str:
    """A line of tests/brought_calls.txt."""
    return f"{''.join(outcomes)} {net}"


def read_table() -> dict[str, dict[str, str]]:
    """The letters that must come out, by net and function."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(" ", 1) for line in lines)
    return {net: dict(zip(FUNCTIONS, letters, strict=True)) for letters, net in rows}


def main() -> None:
    """Print a line per net, with all that is not right, of the nets that are named or of all."""
    for net in sys.argv[1:] or list(NETS):
        cells = {function: fill_cell(net, function) for function in FUNCTIONS}
        print(write_row(net, [outcome for outcome, _ in cells.values()]), flush=True)
        for function, (outcome, text) in cells.items():
            if outcome != RIGHT:
                print(f"    {function} {outcome}: {text:.300}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
