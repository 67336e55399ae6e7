"""Every public function with odd arguments: `python -m tests.fuzz --calls 10000` counts what comes
out.

An entry point is a function with a good call. Any of its arguments may be replaced by anything: what
comes out must be an answer, or an error of netmargin (or a ValueError) that names the argument.
tests/test_arguments.py tries the arguments of each with odd values, one at a time.
"""

import argparse
import collections
import contextlib
import copy
import functools
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


@functools.cache
def _runs() -> Any:
    return nm.twolayer.train_both_layers(
        X.numpy(), Y.numpy(), width=4, steps=4, seeds=[0, 1], progress=False
    )


def entry(
    name: str,
    function: Callable,
    /,
    *,
    left_out: dict | None = None,
    together: bool = False,
    **arguments: Any,
) -> EntryPoint:
    """An entry point, its good call written as a call."""
    return EntryPoint(name, function, arguments, left_out or {}, together)


def _fitted(estimator: type) -> Callable:
    return lambda X, y, **parameters: estimator(**parameters).fit(X, y)


def _as_in_scikit_learn(rules: dict) -> dict:
    """The arguments of a solver by the names that estimators have for them."""
    return {("random_state" if name == "seed" else name): rule for name, rule in rules.items()}


def _rule(rule: type) -> Callable:
    """A stopping rule or a learning rate, made and used."""
    return lambda **given: nm.train(
        nm.models.mlp([2, 16, 1]), DATA, until=[rule(**given), nm.Epochs(2)], progress=False
    )


def measuring() -> list[EntryPoint]:
    """What measures models and data."""
    return [
        entry("analyse", nm.analyse, model=NET, x=X),
        entry(
            "measure",
            nm.measure,
            model=NET,
            data=DATA,
            loss=None,
            batch_size=3,
            homogeneity=None,
            input_margins=False,
        ),
        entry(
            "input_margins",
            nm.input_margins,
            model=NET,
            data=DATA,
            layer=None,
            rivals=None,
            batch_size=3,
            progress=False,
        ),
        entry(
            "compare",
            nm.compare,
            models=[NET, NET],
            data=DATA,
            heldout=None,
            loss=None,
            batch_size=3,
            input_margins=True,
            progress=False,
        ),
        entry(
            "certify",
            nm.certify,
            model=NET,
            data=DATA,
            norm="global",
            loss=None,
            radius=0.0,
            tol=5e-3,
            max_constraints=20,
            seed=0,
        ),
        entry(
            "tangent_svm", nm.tangent_svm, model=NET, data=DATA, norm="global", max_constraints=20
        ),
        entry(
            "robustness",
            nm.robustness,
            model=NET,
            data=DATA,
            box=None,
            attacks=(),
            carlini_wagner_steps=2,
            batch_size=3,
            progress=False,
        ),
        entry("label_errors", nm.label_errors, data=DATA, model=None, seed=0),
        entry("kernels.arc_cosine", nm.kernels.arc_cosine, X=X, X2=None, bias=True),
        entry("kernels.ntk", nm.kernels.ntk, X=X, X2=None, r_w=1.0, r_u=1.0, bias=False),
        entry(
            "kernels.random_features", nm.kernels.random_features, X=X, count=3, bias=True, seed=0
        ),
        entry("kernels.empirical_ntk", nm.kernels.empirical_ntk, model=NET, X=X, X2=None, output=0),
    ]


def datasets_and_models() -> list[EntryPoint]:
    """What samples and nets are made by."""
    data, models = nm.datasets, nm.models
    return [
        entry("datasets.digits", data.digits, split="test", limit=3),
        entry("datasets.clusters", data.clusters, n=3, d=2, k=2, seed=0),
        entry("datasets.gaussian_xor", data.gaussian_xor, n=3, d=2, seed=0),
        entry("datasets.hypercube", data.hypercube, n=3, d=2, seed=0),
        entry(
            "datasets.teacher",
            data.teacher,
            n=3,
            d=2,
            units=2,
            margin=0.01,
            seed=0,
            left_out={"margin": ("1.5", "2")},
        ),
        entry("datasets.teacher_net", data.teacher_net, d=2, units=2, seed=0),
        entry("datasets.parity", data.parity, d=3, k=2, n=None, seed=0),
        entry("datasets.parity_margin", data.parity_margin, d=3, k=2, bias=False),
        entry("datasets.alternating", data.alternating, n=3),
        entry("models.mlp", models.mlp, widths=[2, 3, 1], bias="first", power=1),
        entry("models.mnist_cnn", models.mnist_cnn, bias="first", channels=(1, 2), hidden=3),
        entry("models.vgg", models.vgg, bias="first", width=1),
        entry("models.wide_resnet", models.wide_resnet, depth=10, widen=1),
        entry("models.ReLUPower", models.ReLUPower, power=2),
        entry("models.SignedSum", models.SignedSum, signs=torch.ones(3)),
    ]


def drawing() -> list[EntryPoint]:
    """Figures, the ledger and the papers."""
    figures = nm.figures
    robust = nm.robustness(NET, DATA, attacks=(), progress=False)
    return [
        entry(
            "figures.draw_run",
            figures.draw_run,
            history=_history(),
            report=_report(),
            folder=FOLDER,
        ),
        entry("figures.draw_data", figures.draw_data, X=X, y=Y, folder=FOLDER, title="data"),
        entry(
            "figures.draw_robustness",
            figures.draw_robustness,
            reports={"net": robust},
            folder=FOLDER,
        ),
        entry(
            "figures.draw_comparison",
            figures.draw_comparison,
            comparison=nm.compare([NET, NET], DATA, progress=False),
            folder=FOLDER,
        ),
        entry(
            "figures.draw_certificate",
            figures.draw_certificate,
            certificate=_certificate(),
            X=X,
            y=Y,
            folder=FOLDER,
        ),
        entry(
            "figures.draw_two_layer_runs",
            figures.draw_two_layer_runs,
            runs=_runs(),
            X=X,
            y=Y,
            folder=FOLDER,
            optimum=None,
            run=0,
            left_out={"optimum": ("-1", "0", "-2.5"), "folder": ("a path",)},
        ),
        entry(
            "theory.verify",
            nm.theory.verify,
            ids="lyu-li/euler",
            quick=True,
            seed=0,
            trials=[0],
            progress=False,
            watch=None,
            left_out={"ids": ("None",), "trials": ("None",), "watch": ("a class", *NETS)},
        ),
        entry(
            "papers.reproduce",
            nm.papers.reproduce,
            id="chizat-bach/fig2a",
            scale="smoke",
            out=FOLDER,
            jobs=1,
            progress=False,
            left_out={"out": ("text", "a path"), "jobs": ("2",)},
        ),
        entry("papers.figure", nm.papers.figure, id="chizat-bach/fig2a"),
        entry("papers.status", nm.papers.status, id="chizat-bach/fig2a", scale="smoke", out=FOLDER),
    ]


def training() -> list[EntryPoint]:
    """What moves the parameters of a net."""
    make = functools.partial(nm.models.mlp, [2, 16, 1])
    return [
        entry(
            "train",
            lambda model, **given: nm.train(_fresh(model), **given),
            model=NET,
            data=DATA,
            until=nm.Epochs(2),
            lr=None,
            loss=None,
            batch_size=3,
            seed=0,
            checkpoint_dir=None,
            resume="auto",
            checkpoint_seconds=5.0,
            progress=False,
        ),
        entry("Epochs", _rule(nm.Epochs), count=2),
        entry("LogLossBelow", _rule(nm.LogLossBelow), log10=-1.0),
        entry("MarginGrowthBelow", _rule(nm.MarginGrowthBelow)),
        entry(
            "maximize_margin",
            lambda model, **given: nm.maximize_margin(_fresh(model), **given),
            model=NET,
            data=DATA,
            temperatures=(0.1,),
            iterations=2,
            multiplier_steps=1,
            progress=False,
        ),
        entry(
            "regularization_path",
            nm.regularization_path,
            make_model=make,
            data=DATA,
            lambdas=[1e-2],
            r=2.0,
            norm="global",
            loss=None,
            starts=1,
            iterations=2,
            seed=0,
            progress=False,
        ),
        entry(
            "load_weights",
            lambda model, path, strict: nm.load_weights(model, path, strict=strict),
            model=NET,
            path=nm.save_weights(NET, FOLDER / "loaded.safetensors"),
            strict=True,
        ),
        entry(
            "save_weights",
            lambda model, path: nm.save_weights(model, path),
            model=NET,
            path=FOLDER / "net.safetensors",
        ),
        entry(
            "Watch",
            nm.Watch,
            model=NET,
            data=DATA,
            folder=None,
            every=1,
            loss=None,
            batch_size=3,
            state=None,
        ),
        entry("RelativeLoss", nm.RelativeLoss, loss=None),
        entry(
            "losses.Exponential",
            lambda power: nm.measure(NET, DATA, loss=nm.losses.Exponential(power)),
            power=1,
        ),
    ]


def flows() -> list[EntryPoint]:
    """Gradient flow."""
    return [
        entry(
            "gradient_flow",
            nm.gradient_flow,
            model=NET,
            data=DATA,
            time=0.1,
            until=(),
            loss=None,
            rtol=1e-3,
            progress=False,
        ),
        entry(
            "flow.gradient_descent",
            lambda model, **given: nm.flow.gradient_descent(_fresh(model), **given),
            model=NET,
            data=DATA,
            steps=2,
            rate=0.1,
            relative=1.0,
        ),
    ]


def solving() -> list[EntryPoint]:
    """Solvers and estimators."""
    solvers, estimators, K = nm.solvers, nm.estimators, nm.kernels.arc_cosine(X)
    pair, brief = {"X": X, "y": Y}, {"tol": 1e-3, "time_limit": 2.0}
    search = brief | {"bias": True, "pricing": "auto", "seed": 0}
    more = {"neurons": None, "progress": False, "n_jobs": 1}
    fit = _as_in_scikit_learn(search)
    scales = {"r_w": 1.0, "r_u": 1.0}
    measure, classes = solvers.f1_max_margin(X, Y), torch.arange(len(X)) % 3
    hard, soft = solvers.kernel_max_margin(K, Y), solvers.kernel_soft_margin(K, Y)
    few = {"X": X[:5], "y": Y[:5]}
    return [
        entry("f1_max_margin", solvers.f1_max_margin, **pair, **search, **more, power=1),
        entry("f1_soft_margin", solvers.f1_soft_margin, **pair, **search, **more, C=1.0),
        entry("f1_logistic", solvers.f1_logistic, **pair, **search, regularization=0.1, power=1),
        entry("f2_max_margin", solvers.f2_max_margin, **pair, **brief, bias=True),
        entry("kernel_max_margin", solvers.kernel_max_margin, K=K, y=Y, **brief),
        entry("kernel_soft_margin", solvers.kernel_soft_margin, K=K, y=Y, C=1.0, **brief),
        entry(
            "linear_max_margin", solvers.linear_max_margin, **pair, norm="l1", bias=True, tol=1e-3
        ),
        entry("ntk_max_margin", solvers.ntk_max_margin, **pair, **brief, **scales, bias=True),
        entry("narrow_max_margin", solvers.narrow_max_margin, **few, **brief, width=1, bias=False),
        entry(
            "min_norm_interpolation", solvers.min_norm_interpolation, **pair, norm="l1", **search
        ),
        entry(
            "VariationNormClassifier",
            _fitted(estimators.VariationNormClassifier),
            **pair,
            **fit,
            C=1.0,
        ),
        entry(
            "VariationNormRegressor",
            _fitted(estimators.VariationNormRegressor),
            **pair,
            **fit,
            alpha=0.1,
        ),
        entry(
            "ReLUKernelClassifier",
            _fitted(estimators.ReLUKernelClassifier),
            X=X,
            y=classes,
            C=1.0,
            bias=True,
            **brief,
        ),
        entry(
            "NTKClassifier",
            _fitted(estimators.NTKClassifier),
            **pair,
            **brief,
            **scales,
            C=1.0,
            bias=True,
        ),
        entry("ReLUMeasure.to_network", measure.to_network, width=len(X)),
        entry("ReLUMeasure.decision_function", measure.decision_function, X=X),
        entry("ReLUMeasure.normalized_margin", measure.normalized_margin, **pair),
        entry(
            "ReLUMeasure.projected",
            solvers.ReLUMeasure.projected,
            positions=np.ones((2, 4)),
            weights=None,
            bias=True,
            power=1,
        ),
        entry("KernelSolution.decision_function", hard.decision_function, K=K),
        entry("SoftKernelSolution.decision_function", soft.decision_function, K=K),
        entry(
            "LinearSolution.decision_function",
            solvers.linear_max_margin(X, Y).decision_function,
            X=X,
        ),
    ]


def bounding() -> list[EntryPoint]:
    """Generalization bounds, whose arguments limit each other."""
    bounds, papers = nm.bounds, two_homogeneity
    q, largest, delta = [0.1] * 4, {"largest": 1.0}, {"delta": 0.05}
    net = papers.NormalizedNet(papers.NormalizedReLU(2, 20), 20)
    data = (X[:3], Y[:3])
    found = [
        ("margin_bound", bounds.margin_bound, {"q": q, "rademacher": 0.1, "margin": 0.5} | largest | delta),
        ("two_layer_bound", bounds.two_layer_bound, {"q": q, "X": X[:4], "radius": 3.0, "margin": 0.1} | delta),
        ("kernel_bound", bounds.kernel_bound, {"q": q, "K": nm.kernels.arc_cosine(X[:4]), "margin": 0.1} | largest | delta),
        ("deep_bound", bounds.deep_bound, {"q": q, "depth": 2, "radius": 2.0} | delta),
        ("fast_rate_bound", papers.fast_rate_bound, {"q": q, "radius": 2.0, "constant": 1.0} | delta),
        ("regression_bound", bounds.regression_bound, {"losses": q, "X": X[:4], "norm": 1.0, "largest_loss": 1.0, "lipschitz": 1.0, "kernel": False} | delta),
        ("truncated_squares", bounds.truncated_squares, {"predictions": [0.1], "y": [0.2]} | largest),
        ("interclass_distance", bounds.interclass_distance, {"X": X, "y": Y, "r": 1, "starts": 1, "iterations": 2, "seed": 0, "time_limit": None}),
        ("interclass_bound", bounds.interclass_bound, {"n": 10, "distance": 1.0, "radius": 2.0, "r": 2, "constant": 1.0, "epsilon": 0.5} | delta),
        ("variation_ball", bounds.variation_ball, {"X": X, "bias": True, "draws": 3, "seed": 0}),
        ("kernel_ball", bounds.kernel_ball, {"X": X, "bias": True, "draws": 3, "seed": 0}),
        ("early_margin", lambda **given: papers.early_margin(net, data, **given), {"time": 1e4}),
    ]  # fmt: skip
    return [entry(name, function, together=True, **given) for name, function, given in found]


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
    """Why the outcome of a call with odd values, by argument, is not proper; None where it is an
    answer or a proper error.
    """
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
    """Whether a ValueError was raised by netmargin, or by scikit-learn, whose checks of X and y its
    estimators have to make.
    """
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return "netmargin/" in frames[-1] or any("sklearn/" in frame for frame in frames)


def _fresh(model: Any) -> Any:
    """The same weights each time, as training changes them."""
    if not isinstance(model, nn.Module):
        return model
    return copy.deepcopy(model)


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
    """Random calls: arguments of a random entry point are odd, or a data set comes in another form."""
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
