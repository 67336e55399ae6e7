"""The same seed, the same result, bit for bit, whatever the global generators were; and they are
left as they were.

A new public function with a seed is a row of `CALLS`.
"""

import dataclasses
import inspect
import random
from enum import Enum
from functools import cache

import numpy as np
import pytest
import sklearn.metrics  # noqa: F401  # where rich is installed, its import draws from `random`
import torch

import netmargin as nm
from netmargin import bounds, datasets, kernels, solvers, theory, twolayer
from netmargin.models import mlp

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
WIDE = np.random.default_rng(0).normal(size=(12, 5))
# Small images: patches of them are drawn at random.
IMAGES = np.random.default_rng(0).random((12, 1, 8, 8))


def fresh_net(widths=(2, 8, 1)) -> torch.nn.Sequential:
    """The same net each time, in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return mlp(widths).double()


@cache
def wide_best():
    return solvers.f1_max_margin(WIDE, Y, pricing="local")


@cache
def separated_net() -> torch.nn.Module:
    with torch.random.fork_rng():
        return solvers.f1_max_margin(X, Y).to_network()


def trained(seed: int):
    """The net after two epochs, with its history."""
    net = fresh_net()
    history = nm.train(
        net, (X, Y), until=nm.Epochs(2), lr=0.1, batch_size=3, seed=seed, progress=False
    )
    return net, history


def make_net() -> torch.nn.Module:
    """A net with weights that are drawn from torch's generator."""
    return torch.nn.Linear(2, 1, bias=False).double()


LINE = (X[:4], np.sign(X[:4, 0]))
PATH = {"lambdas": [1e-1, 1e-3], "starts": 2, "iterations": 10, "progress": False}
GROUPS = nm.analyse(fresh_net(), torch.from_numpy(X))

CALLS = {
    "train": trained,
    "certify": lambda seed: nm.certify(separated_net(), (X, Y), seed=seed),
    "tangent_svm": lambda seed: nm.tangent_svm(separated_net(), (X, Y), seed=seed),
    "regularization_path": lambda seed: nm.regularization_path(make_net, LINE, seed=seed, **PATH),
    "label_errors": lambda seed: nm.label_errors((IMAGES, Y), seed=seed),
    "Homogeneity.check": lambda seed: GROUPS.check(fresh_net(), torch.from_numpy(X), seed=seed),
    "solvers.f1_max_margin": lambda seed: solvers.f1_max_margin(WIDE, Y, seed=seed),
    "solvers.f1_soft_margin": lambda seed: solvers.f1_soft_margin(X, Y, seed=seed),
    "solvers.f1_logistic": lambda seed: solvers.f1_logistic(X, Y, regularization=0.05, seed=seed),
    "solvers.min_norm_interpolation": lambda seed: solvers.min_norm_interpolation(
        X, X[:, 1], seed=seed
    ),
    "solvers.fit_two_layer_net": lambda seed: solvers.fit_two_layer_net(X, Y, seed=seed),
    "kernels.random_features": lambda seed: kernels.random_features(X, 20, seed=seed),
    "bounds.variation_ball": lambda seed: bounds.variation_ball(X, draws=3, seed=seed),
    "bounds.kernel_ball": lambda seed: bounds.kernel_ball(X, draws=3, seed=seed),
    "bounds.interclass_distance": lambda seed: bounds.interclass_distance(
        WIDE, Y, 2, starts=2, iterations=5, seed=seed
    ),
    "datasets.clusters": lambda seed: datasets.clusters(20, 3, seed=seed),
    "datasets.gaussian_xor": lambda seed: datasets.gaussian_xor(20, 3, seed=seed),
    "datasets.hypercube": lambda seed: datasets.hypercube(20, 3, seed=seed),
    "datasets.teacher": lambda seed: datasets.teacher(20, 3, units=5, seed=seed),
    "datasets.teacher_net": lambda seed: datasets.teacher_net(3, seed=seed),
    "datasets.parity": lambda seed: datasets.parity(6, 2, 20, seed=seed),
    "theory.verify": lambda seed: (
        theory.verify("lyu-li/euler", trials=[0, 1], seed=seed)["lyu-li/euler"].worst
    ),
    "theory.Claim.examine": lambda seed: (
        theory.CLAIMS["lyu-li/euler"].examine(quick=True, seed=seed).worst
    ),
    "twolayer.train_both_layers": lambda seed: twolayer.train_both_layers(
        X, Y, width=10, steps=20, seeds=(seed, seed + 1), progress=False
    ),
    "twolayer.slackness": lambda seed: twolayer.slackness(
        wide_best(), WIDE, Y, wide_best().dual, seed=seed
    ),
}
PROVED = (
    "certify",
    "tangent_svm",
    "solvers.f1_max_margin",
    "solvers.f1_soft_margin",
    "solvers.f1_logistic",
    "solvers.min_norm_interpolation",
    "bounds.interclass_distance",
    "twolayer.slackness",
)
"""Calls whose result another seed does not change."""


def public_callables() -> dict[str, object]:
    """Every public function, class and method by its public name; no constructors of records."""
    found: dict[str, object] = {}
    packages = {"": nm} | {f"{name}.": getattr(nm, name) for name in nm.__all__}
    for prefix, package in packages.items():
        if not inspect.ismodule(package):
            continue
        own = [
            n for n, v in vars(package).items() if getattr(v, "__module__", "") == package.__name__
        ]
        for name in getattr(package, "__all__", own):
            value = getattr(package, name)
            if isinstance(value, type):
                methods = {k: m for k, m in vars(value).items() if not k.startswith("_")}
                found |= {f"{prefix}{name}.{k}": m for k, m in methods.items() if callable(m)}
            if callable(value) and not dataclasses.is_dataclass(value):
                found[f"{prefix}{name}"] = value
    return found


def takes_a_seed(function) -> bool:
    try:
        return bool({"seed", "seeds"} & set(inspect.signature(function).parameters))
    except ValueError:  # of C
        return False


def content(value):
    """Everything in a result that is not a clock, as nested tuples of bytes, numbers and text."""
    if isinstance(value, torch.nn.Module):
        return content(value.state_dict())
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((k, content(v)) for k, v in value.items() if "seconds" not in str(k))
    if isinstance(value, (list, tuple)):
        return tuple(map(content, value))
    if dataclasses.is_dataclass(value):
        return content({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    assert value is None or isinstance(value, (str, bool, int, float, np.generic, Enum)), value
    return repr(value)


def stir(number: int) -> None:
    """Bring the global generators into another state."""
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def states():
    return content([torch.get_rng_state(), np.random.get_state()[1]]), random.getstate()


@pytest.mark.slow_cases(
    "solvers.f1_max_margin", "regularization_path", "solvers.f1_logistic", "solvers.f1_soft_margin"
)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_seed_gives_the_same_bits(name):
    call = CALLS[name]
    stir(11)
    before = states()
    first = content(call(5))
    assert states() == before
    stir(22)
    assert content(call(5)) == first
    if name not in PROVED:
        assert content(call(6)) != first


def test_every_seed_has_a_row():
    seeded = {name for name, value in public_callables().items() if takes_a_seed(value)}
    assert seeded == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_seed_is_refused_by_name(name):
    # The row of two runs works out the second seed from the first: it adds 1.
    text = [] if name == "twolayer.train_both_layers" else ["0", None]
    for bad in (-1, 2**63, 0.5, True, *text):
        with pytest.raises(nm.ArgumentError, match="seed"):
            CALLS[name](bad)
