"""Every public function with a good call, and odd values for its arguments: for test_arguments.py,
one at a time; `python -m tests.fuzz --calls 20000` draws several at once and counts what comes out.
"""

import argparse
import collections
import contextlib
import copy
import functools
import inspect
import io
import math
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import netmargin as nm
from netmargin.papers import two_homogeneity
from tests.data_forms import FORMS, NUMBERS, Overwriting, describe_difference, draw_samples

torch.manual_seed(0)
NET = nm.models.mlp([2, 16, 1])
X = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    Y = torch.where(NET(X)[:, 0] > 0, 1, -1)
DATA = (X, Y)
GIVEN = X.clone()
FOLDER = Path(tempfile.gettempdir()) / "netmargin-fuzz"

ODD = {
    "None": None,
    "True": True,
    "text": "odd",
    "no text": "",
    "bytes": b"odd",
    "-1": -1,
    "0": 0,
    "2": 2,
    "1.5": 1.5,
    "-2.5": -2.5,
    "NaN": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "a complex number": 1j,
    "an empty list": [],
    "a list of text": ["odd"],
    "a list of numbers": [1, 2],
    "a list of NaN": [math.nan],
    "a dict": {"odd": 1},
    "a set": {1},
    "a function": lambda *_: None,
    "a class": nn.Linear,
    "an object": object(),
    "a path": Path("odd"),
    "a tensor": torch.ones(2, 3),
    "a tensor of NaN": torch.full((8, 2), math.nan),
    "an array": np.ones(3),
    "an array of objects": np.array([object(), None], dtype=object),
    "a tensor without dimensions": torch.tensor(3.0),
    "a tensor of one number": torch.tensor([2]),
    "an array without dimensions": np.array(1.5),
    "a numpy float": np.float32(1.5),
    "a numpy integer": np.int64(2),
    "a numpy truth value": np.True_,
    "a numpy NaN": np.float64("nan"),
    "a numpy text": np.str_("odd"),
    "a numpy date": np.datetime64("2026-11-25"),
    "a frame": pd.DataFrame(X.numpy()),
    "a series": pd.Series(Y.numpy()),
    "a series of text": pd.Series(["cat", "dog"] * 4),
    "a categorical": pd.Categorical(["cat", "dog"] * 4),
    "a model": NET,
    "a net that overwrites its input": Overwriting(NET),
    "a net that ends in softmax": nn.Sequential(nm.models.mlp([2, 4, 2]), nn.Softmax(1)),
    "data": DATA,
    "data with NaN": (X * math.nan, Y),
    "data of different lengths": (X, Y[:3]),
    "data with text for labels": (X, ["cat", "dog"] * 4),
    "a shuffled loader": DataLoader(TensorDataset(X, Y), batch_size=3, shuffle=True),
}
"""What people give by mistake."""

FRESH: dict[str, Callable[[], Any]] = {
    "a generator": lambda: (i for i in range(3)),
    "a generator of batches": lambda: ((X[i : i + 2], Y[i : i + 2]) for i in (0, 2, 4, 6)),
    "an iterator of text": lambda: iter("odd"),
}
"""Odd values that are used up by one call, and so are made for each."""

ODD_NAMES = (*ODD, *FRESH)

NETS = ("a model", "a net that overwrites its input", "a net that ends in softmax")
"""Odd values that can be called, and fail by themselves."""

ABOUT_MODEL_OR_DATA = ("model", "models", "data", "heldout", "x", "X", "X2", "y", "K", "make_model")
"""Errors about these say "the data" or "the model" in words of their own."""


@dataclass(frozen=True)
class EntryPoint:
    """A public function under its public name, and a good call of it.

    arguments : by name.
    left_out : odd values, by argument, that are right and take long, or are the caller's own code
        that fails.
    together : whether the arguments limit each other, so that an error may name any of them.
    """

    name: str
    function: Callable
    arguments: dict[str, Any]
    left_out: dict[str, tuple[str, ...]]
    together: bool

    def call(self, **changed: Any) -> Any:
        """The good call with some arguments changed."""
        given = self.arguments | changed
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            return self.function(**given)


@functools.cache
def _report() -> Any:
    return nm.measure(NET, DATA)


@functools.cache
def _history() -> Any:
    return nm.train(nm.models.mlp([2, 16, 1]), DATA, until=nm.Epochs(2), progress=False)


@functools.cache
def _certificate() -> Any:
    return nm.certify(NET, DATA)


def entry(
    name: str,
    varied: str = "",
    /,
    *,
    of: Callable | None = None,
    through: Callable[[Callable], Callable] = lambda function: function,
    left_out: dict | None = None,
    together: bool = False,
    **arguments: Any,
) -> EntryPoint:
    """An entry point, its good call written as a call.

    varied : arguments that keep their defaults in the good call, in one line.
    of : what has that public name, where it is no attribute of netmargin.
    through : what makes the call from the function.
    """
    function = of or functools.reduce(getattr, name.split("."), nm)
    defaults = inspect.signature(function).parameters
    arguments |= {word: defaults[word].default for word in varied.split()}
    return EntryPoint(name, through(function), arguments, left_out or {}, together)


def fitted(estimator: type) -> Callable:
    """An estimator, made and fitted."""
    return lambda X, y, **parameters: estimator(**parameters).fit(X, y)


def used(rule: type) -> Callable:
    """A stopping rule, made and used."""
    return lambda **given: nm.train(
        nm.models.mlp([2, 16, 1]), DATA, until=[rule(**given), nm.Epochs(2)], progress=False
    )


def on_copy(function: Callable) -> Callable:
    """A function that changes the model: the same weights each time."""

    def call(model: Any, **given: Any) -> Any:
        return function(copy.deepcopy(model) if isinstance(model, nn.Module) else model, **given)

    return call


def measuring() -> list[EntryPoint]:
    """What measures models and data."""
    given, quiet = {"model": NET, "data": DATA}, {"progress": False}
    few = {"batch_size": 3}
    pair = {"models": [NET, NET], "data": DATA}
    return [
        entry("analyse", model=NET, x=X),
        entry("measure", "loss homogeneity input_margins", **given, **few),
        entry("input_margins", "layer rivals", **given, **few, **quiet),
        entry("compare", "heldout loss input_margins", **pair, **few, **quiet),
        entry("certify", "norm loss radius tol seed", **given, max_constraints=20),
        entry("tangent_svm", "norm", **given, max_constraints=20),
        entry("robustness", "box", **given, **few, **quiet, attacks=False),
        entry("label_errors", "model seed", data=DATA),
        entry("kernels.arc_cosine", "X2 bias", X=X),
        entry("kernels.ntk", "X2 r_w r_u", X=X, bias=False),
        entry("kernels.random_features", "bias seed", X=X, count=3),
        entry("kernels.empirical_ntk", "X2 output", model=NET, X=X),
    ]


def datasets_and_models() -> list[EntryPoint]:
    """What samples and nets are made by."""
    few = {"n": 3, "d": 2}
    return [
        entry("datasets.digits", split="test", limit=3),
        entry("datasets.clusters", "seed", **few, k=2),
        entry("datasets.gaussian_xor", "seed", **few),
        entry("datasets.hypercube", "seed", **few),
        entry("datasets.teacher", "margin seed", **few, units=2, left_out={"margin": ("1.5", "2")}),
        entry("datasets.teacher_net", "seed", d=2, units=2),
        entry("datasets.parity", "n seed", d=3, k=2),
        entry("datasets.parity_margin", "bias", d=3, k=2),
        entry("datasets.alternating", n=3),
        entry("models.mlp", "bias power", widths=[2, 3, 1]),
        entry("models.mnist_cnn", "bias", channels=(1, 2), hidden=3),
        entry("models.vgg", "bias", width=1),
        entry("models.wide_resnet", depth=10, widen=1),
        entry("models.ReLUPower", "power"),
        entry("models.SignedSum", signs=torch.ones(3)),
    ]


def drawing() -> list[EntryPoint]:
    """Figures, the ledger and the papers."""
    folder, drawn, fig2a = {"folder": FOLDER}, {"X": X, "y": Y}, {"id": "chizat-bach/fig2a"}
    robust = nm.robustness(NET, DATA, attacks=False, progress=False)
    odd_claims = {"ids": ("None",), "trials": ("None",), "watch": ("a class", *NETS)}
    odd_run = {"out": ("text", "a path"), "jobs": ("2",)}
    claims = {"ids": "lyu-li/euler", "quick": True, "trials": [0]}
    figure = fig2a | {"out": FOLDER, "jobs": 1, "progress": False}
    shown = {"certificate": _certificate()} | drawn
    return [
        entry("figures.draw_run", history=_history(), report=_report(), **folder),
        entry("figures.draw_robustness", reports={"net": robust}, **folder),
        entry("figures.draw_certificate", **shown, **folder),
        entry("theory.verify", "seed progress watch", **claims, left_out=odd_claims),
        entry("papers.reproduce", "scale", **figure, left_out=odd_run),
    ]


def training() -> list[EntryPoint]:
    """What moves the parameters of a net."""
    given, quiet, few = {"model": NET, "data": DATA}, {"progress": False}, {"batch_size": 3}
    brief = quiet | {"iterations": 2}
    path = {"make_model": functools.partial(nm.models.mlp, [2, 16, 1]), "lambdas": [1e-2]}
    loaded = nm.save_weights(NET, FOLDER / "loaded.safetensors")
    of_run = "lr loss seed checkpoint_dir resume checkpoint_seconds"
    slopes = {"temperatures": (0.1,), "multiplier_steps": 1}
    return [
        entry("train", of_run, through=on_copy, **given, **few, **quiet, until=nm.Epochs(2)),
        entry("Epochs", through=used, count=2),
        entry("LogLossBelow", through=used, log10=-1.0),
        entry("MarginGrowthBelow", through=used),
        entry("maximize_margin", through=on_copy, **given, **brief, **slopes),
        entry("regularization_path", "r norm loss seed", **path, data=DATA, **brief, starts=1),
        entry("load_weights", "strict", model=NET, path=loaded),
        entry("save_weights", model=NET, path=FOLDER / "net.safetensors"),
        entry("Watch", "folder every loss state", **given, **few),
        entry("RelativeLoss", "loss"),
        entry("losses.Exponential", "power", through=as_loss),
    ]


def as_loss(family: type) -> Callable:
    """A family of losses, whose members are measured in."""
    return lambda **given: nm.measure(NET, DATA, loss=family(**given))


def flows() -> list[EntryPoint]:
    """Gradient flow."""
    given, brief = {"model": NET, "data": DATA}, {"time": 0.1, "rtol": 1e-3, "progress": False}
    descent = {"steps": 2, "rate": 0.1}
    return [
        entry("gradient_flow", "until loss", **given, **brief),
        entry("flow.gradient_descent", "relative", through=on_copy, **given, **descent),
    ]


def solving() -> list[EntryPoint]:
    """Solvers and estimators."""
    solvers, K = nm.solvers, nm.kernels.arc_cosine(X)
    pair, brief = {"X": X, "y": Y}, {"tol": 1e-3, "time_limit": 2.0}
    timed = pair | brief
    one, searched = {"n_jobs": 1}, "bias pricing seed"
    slow, classes = timed | {"pricing": "auto"}, torch.arange(len(X)) % 3
    measure, linear = solvers.f1_max_margin(X, Y), solvers.linear_max_margin(X, Y)
    hard, soft = solvers.kernel_max_margin(K, Y), solvers.kernel_soft_margin(K, Y)
    atoms = np.ones((2, 4))
    return [
        entry("solvers.f1_max_margin", f"{searched} neurons progress power", **timed, **one),
        entry("solvers.f1_soft_margin", f"{searched} neurons progress C", **timed, **one),
        entry("solvers.f1_logistic", f"{searched} power", **timed, regularization=0.1),
        entry("solvers.fit_two_layer_net", "bias C seed loss activation", **timed),
        entry("solvers.f2_max_margin", "bias", **timed),
        entry("solvers.kernel_max_margin", K=K, y=Y, **brief),
        entry("solvers.kernel_soft_margin", "C", K=K, y=Y, **brief),
        entry("solvers.linear_max_margin", **pair, norm="l1", bias=True, tol=1e-3),
        entry("solvers.ntk_max_margin", "r_w r_u bias", **timed),
        entry("solvers.min_norm_interpolation", f"norm {searched}", **timed),
        entry(
            "estimators.VariationNormClassifier",
            "bias random_state C pricing",
            through=fitted,
            **slow,
            loss="hinge",
        ),
        entry(
            "estimators.VariationNormRegressor",
            "bias random_state pricing",
            through=fitted,
            **slow,
            alpha=0.1,
        ),
        entry("estimators.ReLUKernelClassifier", "C bias", through=fitted, X=X, y=classes, **brief),
        entry("estimators.NTKClassifier", "r_w r_u C bias", through=fitted, **timed),
        entry("ReLUMeasure.to_network", of=measure.to_network, width=len(X)),
        entry("ReLUMeasure.decision_function", of=measure.decision_function, X=X),
        entry("ReLUMeasure.normalized_margin", of=measure.normalized_margin, **pair),
        entry("solvers.ReLUMeasure.projected", "weights power", positions=atoms, bias=True),
        entry("KernelSolution.decision_function", of=hard.decision_function, K=K),
        entry("SoftKernelSolution.decision_function", of=soft.decision_function, K=K),
        entry("LinearSolution.decision_function", of=linear.decision_function, X=X),
    ]


def bounding() -> list[EntryPoint]:
    """Generalization bounds, whose arguments limit each other."""
    papers, found = two_homogeneity, functools.partial(entry, together=True)
    of_q = {"q": [0.1] * 4, "delta": 0.05}
    drawn = {"X": X, "bias": True, "draws": 3, "seed": 0}
    views = {"X": X, "y": Y, "r": 1, "starts": 1, "iterations": 2, "seed": 0, "time_limit": None}
    view = {"n": 10, "distance": 1.0, "radius": 2.0, "r": 2, "constant": 1.0, "epsilon": 0.5}
    squares = {"losses": of_q["q"], "X": X[:4], "norm": 1.0, "largest_loss": 1.0, "lipschitz": 1.0}
    net = papers.NormalizedNet(papers.NormalizedReLU(2, 20), 20)
    early = functools.partial(papers.early_margin, net, (X[:3], Y[:3]))
    K, of_ball = nm.kernels.arc_cosine(X[:4]), {"X": X[:4], "radius": 3.0}
    return [
        found("bounds.margin_bound", **of_q, rademacher=0.1, margin=0.5, largest=1.0),
        found("bounds.two_layer_bound", **of_q, **of_ball, margin=0.1),
        found("bounds.kernel_bound", **of_q, K=K, margin=0.1, largest=1.0),
        found("bounds.deep_bound", **of_q, depth=2, radius=2.0),
        found("fast_rate_bound", of=papers.fast_rate_bound, **of_q, radius=2.0, constant=1.0),
        found("bounds.regression_bound", **squares, kernel=False, delta=0.05),
        found("bounds.truncated_squares", predictions=[0.1], y=[0.2], largest=1.0),
        found("bounds.interclass_distance", **views),
        found("bounds.interclass_bound", **view, delta=0.05),
        found("bounds.variation_ball", **drawn),
        found("bounds.kernel_ball", **drawn),
        found("early_margin", of=early, time=1e4),
    ]


PACKAGES: dict[str, Callable[[], list[EntryPoint]]] = {
    "measuring": measuring,
    "datasets and models": datasets_and_models,
    "drawing": drawing,
    "training": training,
    "flows": flows,
    "solving": solving,
    "bounding": bounding,
}


def foreign(entry: EntryPoint, changed: dict[str, str]) -> str | None:
    """Why the outcome of a call with odd values, by argument, is not proper; None where it is."""
    try:
        entry.call(
            **{name: FRESH[odd]() if odd in FRESH else ODD[odd] for name, odd in changed.items()}
        )
    except (nm.NetmarginError, ValueError) as error:
        said = str(error)
        names = entry.arguments if entry.together else changed
        named = any(name in said for name in names) or any(
            name in ABOUT_MODEL_OR_DATA for name in changed
        )
        own = isinstance(error, nm.NetmarginError) or _raised_on_purpose(error)
        if not (named and own):
            kind = "names no argument" if own else "foreign"
            return f"{kind}: {type(error).__name__}: {said[:200]}"
    except TypeError as error:
        # scikit-learn's own checks of an estimator ask for a TypeError where X holds no numbers.
        if not (entry.name.endswith(("Classifier", "Regressor")) and {"X", "y"} & set(changed)):
            return f"foreign: TypeError: {str(error)[:200]}"
    except Exception as error:
        return f"foreign: {type(error).__name__}: {str(error)[:200]}"
    if torch.equal(X, GIVEN):
        return None
    X.copy_(GIVEN)
    return "foreign: changed the caller's samples"


def _raised_on_purpose(error: BaseException) -> bool:
    """Whether netmargin raised a ValueError, or scikit-learn in the checks of its estimators."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return "netmargin/" in frames[-1] or any("sklearn/" in frame for frame in frames)


_PART_OF_FORMS = 0.1
"""Part of the calls that give one data set in two forms; these take longer than others."""
_DRAWN = 20
"""Data sets that such calls are given."""


def _call_oddly(entry: EntryPoint, random: np.random.Generator) -> tuple[str, str | None]:
    """What was called with one to three odd values, and why the outcome is not proper."""
    count = min(len(entry.arguments), random.integers(1, 4))
    odd = {}
    for name in random.choice(list(entry.arguments), count, replace=False):
        allowed = [value for value in ODD_NAMES if value not in entry.left_out.get(name, ())]
        odd[str(name)] = str(random.choice(allowed))
    return f"{entry.name} {odd}: ", foreign(entry, odd)


def main() -> None:
    """Call random entry points with odd arguments, or with a data set in another form."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="*", choices=PACKAGES, default=list(PACKAGES))
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    entries = [
        entry for package in options.packages for entry in PACKAGES[package]() if entry.arguments
    ]
    counts: collections.Counter[str] = collections.Counter()
    failures: collections.Counter[str] = collections.Counter()
    drawn = [draw_samples(options.seed + k, overwriting=k % 2 == 1) for k in range(_DRAWN)]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for _ in range(options.calls):
            if random.random() < _PART_OF_FORMS:
                function, form = str(random.choice(list(NUMBERS))), str(random.choice(list(FORMS)))
                where, why = "", describe_difference(function, drawn[random.integers(_DRAWN)], form)
            else:
                where, why = _call_oddly(entries[random.integers(len(entries))], random)
            counts["proper" if why is None else why.split(":")[0]] += 1
            if why is not None:
                failures[f"{where}{why}"] += 1
    for failure, count in failures.most_common(40):
        print(f"{count:4} {failure}")
    print(
        f"{options.calls} calls of {len(entries)} entry points: "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
    )


if __name__ == "__main__":
    main()
