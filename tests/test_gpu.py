"""Public functions on a net that lies on a GPU: what they answer is what they answer on the CPU.

In the nightly run the CPU stands in for the GPU, so that the table below stays in use.
"""

import copy

import pytest
import torch

import netmargin as nm

torch.manual_seed(0)
NET = nm.models.mlp([3, 8, 3], bias="none").double()
X = torch.randn(24, 3, dtype=torch.float64)
Y = NET(X).argmax(1)
DEVICES = [
    pytest.param("cpu", marks=pytest.mark.nightly),
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")],
    ),
]


def values(answer) -> list[torch.Tensor]:
    """The numbers of an answer as float64 tensors on the CPU."""
    return [torch.as_tensor(value).detach().double().cpu() for value in answer]


FUNCTIONS = {
    "analyse": lambda net, x, y: [nm.analyse(net, x).order],
    "measure": lambda net, x, y: [nm.measure(net, (x, y)).q],
    "input_margins": lambda net, x, y: [nm.input_margins(net, (x, y), progress=False).distances],
    "compare": lambda net, x, y: [
        report.q for report in nm.compare({"one": net, "two": copy.deepcopy(net)}, (x, y)).reports
    ],
    "train": lambda net, x, y: [
        nm.train(net, (x, y), until=nm.Epochs(3), lr=nm.ConstantLR(0.1), progress=False).column(
            "normalized_margin"
        )
    ],
    "certify": lambda net, x, y: [nm.certify(net, (x, y)).relative_epsilon],
    "tangent_svm": lambda net, x, y: [nm.tangent_svm(net, (x, y)).cosine],
    "maximize_margin": lambda net, x, y: [
        nm.maximize_margin(net, (x, y), iterations=3, progress=False).report.normalized_margin
    ],
    "gradient_flow": lambda net, x, y: [
        nm.gradient_flow(net, (x, y), time=0.01, progress=False).column("normalized_margin")
    ],
    "robustness": lambda net, x, y: [
        nm.robustness(net, (x[:6], y[:6]), attacks=False, progress=False).lower
    ],
    "empirical_ntk": lambda net, x, y: [nm.kernels.empirical_ntk(net, x)],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_those_of_the_cpu(name, device):
    expected = values(FUNCTIONS[name](copy.deepcopy(NET), X, Y))
    # Data on either side: they go where the net lies.
    for x, y in ((X, Y), (X.to(device), Y.to(device))):
        found = values(FUNCTIONS[name](copy.deepcopy(NET).to(device), x, y))
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, rtol=1e-6, atol=1e-9)
