"""Settings of torch around a call: default device and type, anomaly detection, inference mode."""

import ast
import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin import solvers

X = torch.randn(12, 5, generator=torch.Generator().manual_seed(3))
MAKERS = (
    *("zeros", "ones", "full", "empty", "eye", "tensor", "as_tensor", "scalar_tensor"),
    *("arange", "linspace", "logspace", "rand", "randn", "randint", "randperm"),
)


def make():
    generator = torch.Generator().manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=generator, device="cpu", dtype=torch.float32)
    return net


def labels(net):
    with torch.no_grad():
        return net(X).argmax(1)


FUNCTIONS = {
    "measure": lambda net, y: nm.measure(net, (X, y), input_margins=True).margins["input"].value,
    "analyse": lambda net, y: float(nm.analyse(net, X).order),
    "certify": lambda net, y: nm.certify(net, (X, y), progress=False).epsilon,
    "empirical_ntk": lambda net, y: nm.kernels.empirical_ntk(net, X),
    "robustness": lambda net, y: (
        nm.robustness(net, (X[:1], y[:1]), effort="quick", progress=False).lower
    ),
    "gradient_flow": lambda net, y: nm.gradient_flow(net, (X, y), time=0.02, progress=False).final[
        "0.weight"
    ],
    "train": lambda net, y: nm.train(
        copy.deepcopy(net), (X, y), until=nm.Epochs(1), progress=False
    ).rows[-1]["q_min"],
    "maximize_margin": lambda net, y: (
        nm.maximize_margin(
            copy.deepcopy(net), (X, y), temperatures=(0.1,), iterations=3, progress=False
        ).report.normalized_margin
    ),
    "label_errors": lambda net, y: nm.label_errors((X.repeat(4, 1), y.repeat(4))).wrong,
    "f1_max_margin": lambda net, y: solvers.f1_max_margin(X.numpy(), 2.0 * (y == 0) - 1).margin,
}


@pytest.mark.nightly_cases("f1_max_margin")
@pytest.mark.slow_cases("maximize", "train", "label", "f1", "robustness")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_default_device_or_type_changes_no_answer(function):
    call, net = FUNCTIONS[function], make()
    y = labels(net)
    expected = call(net, y)
    try:
        torch.set_default_device("meta")  # on which nothing can be computed
        on_meta = call(net, y)
    finally:
        torch.set_default_device(None)
    try:
        torch.set_default_dtype(torch.float64)
        in_float64 = call(net, y)
    finally:
        torch.set_default_dtype(torch.float32)
    for found in (on_meta, in_float64):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_every_tensor_is_made_on_a_device_that_is_named():
    """Those of papers' claims and figures, which take nothing of the caller's, are left out."""
    source = Path(nm.__file__).parent
    unnamed = [
        f"{path.relative_to(source)}:{call.lineno}"
        for path in sorted(source.rglob("*.py"))
        if "papers" not in path.parts
        if "torch." in (text := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", "") in MAKERS
        and ast.unparse(call.func) in {f"torch.{name}" for name in MAKERS}
        and not {keyword.arg for keyword in call.keywords} & {"device", None}
    ]
    assert unnamed == []


@pytest.mark.slow_cases("robustness")
@pytest.mark.parametrize("function", ["robustness", "gradient_flow", "certify", "measure"])
def test_anomaly_detection_ends_no_call(function):
    net = make()
    expected = FUNCTIONS[function](net, labels(net))
    with torch.autograd.set_detect_anomaly(True):
        found = FUNCTIONS[function](net, labels(net))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow_cases("maximize")
@pytest.mark.parametrize("function", ["measure", "certify", "train", "maximize_margin"])
def test_nets_made_in_inference_mode_are_as_others(function):
    with torch.inference_mode():
        net = make()
        y = labels(net)
    found, expected = FUNCTIONS[function](net, y), FUNCTIONS[function](make(), y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert torch.equal(net[2].weight, make()[2].weight)


def test_complex_weights_are_refused_in_words():
    class Fourier(nn.Module):
        def __init__(self):
            super().__init__()
            self.filter = nn.Parameter(torch.ones(3, dtype=torch.complex64))

        def forward(self, x):
            return torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=5)

    y = torch.zeros(12, dtype=torch.int64)
    for name in ("measure", "analyse", "certify", "empirical_ntk", "robustness", "train"):
        with pytest.raises(nm.ModelError, match="Complex: parameter 'filter' .* torch.complex64"):
            FUNCTIONS[name](Fourier(), y)
