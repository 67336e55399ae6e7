"""A device without float64: what needs it is done on the CPU, and everything else where it was."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import netmargin as nm
from netmargin.core import devices
from tests.words import words_of


class WithoutFloat64(TorchDispatchMode):
    """A stand-in for such a device: what is computed from the tensors of a net lies on it, until
    `.cpu()` fetches it, and turning that into float64 is an error, as on mps.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.there = [t.untyped_storage() for t in (*model.parameters(), *model.buffers())]
        self.fetching, self.fetched = False, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given, made = (
            [t for t in tree_flatten(tree)[0] if isinstance(t, Tensor)]
            for tree in ((args, kwargs), out)
        )
        lie_there = {storage._cdata for storage in self.there}
        if self.fetching or not any(t.untyped_storage()._cdata in lie_there for t in given):
            return out
        for tensor in made:
            if tensor.dtype == torch.float64:
                raise TypeError("Cannot convert a tensor to float64: this device has none.")
            self.there.append(tensor.untyped_storage())
        return out


@pytest.fixture
def device(monkeypatch):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 6, bias=False), nn.LeakyReLU(), nn.Linear(6, 2, bias=False))
    mode = WithoutFloat64(net)

    def fetch(tensor: Tensor) -> Tensor:
        mode.fetching, mode.fetched = True, mode.fetched + 1
        try:
            return tensor.clone()
        finally:
            mode.fetching = False

    monkeypatch.setattr(devices, "_WITHOUT_FLOAT64", ("cpu",))
    monkeypatch.setattr(Tensor, "cpu", fetch)
    return net, mode


X = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
ENTRIES = {
    "analyse": lambda net, data: nm.analyse(net, data[0]).deviation < 1e-12,
    "check": lambda net, data: nm.analyse(net, data[0]).check(net, data).deviation < 1e-12,
    "measure": lambda net, data: nm.measure(net, data).q.tolist(),
    "train": lambda net, data: nm.train(net, data, until=nm.Epochs(2), progress=False).rows[-1][
        "normalized_margin"
    ],
    "certify": lambda net, data: nm.certify(net, data).epsilon,
    "maximize_margin": lambda net, data: nm.maximize_margin(
        net, data, iterations=2, progress=False
    ).report.q.tolist(),
    "robustness": lambda net, data: nm.robustness(
        net, data, attacks=False, progress=False
    ).lower.tolist(),
    "empirical_ntk": lambda net, data: nm.kernels.empirical_ntk(net, data[0]).tolist(),
}


def test_the_stand_in_refuses_float64(device):
    net, mode = device
    with mode:
        assert net(X).cpu().double().dtype == torch.float64
        with pytest.raises(TypeError, match="this device has none"):
            net(X).double()
        with pytest.raises(TypeError, match="this device has none"):
            torch.linalg.vector_norm(net[0].weight.detach() * 2, dtype=torch.float64)


@pytest.mark.slow_cases("maximize_margin", "robustness")
@pytest.mark.parametrize("entry", ENTRIES)
def test_float64_work_is_done_on_the_cpu(entry, device, monkeypatch):
    net, mode = device
    with torch.no_grad():
        data = (X, net(X).argmax(1))
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with mode:
        found = ENTRIES[entry](net, data)
    assert mode.fetched
    monkeypatch.undo()
    net.load_state_dict(state)
    assert found == ENTRIES[entry](net, data)


def test_a_note_says_so(device):
    net, mode = device
    with mode:
        report = nm.measure(net, (X, torch.arange(8) % 2))
    assert "note: Everything in float64 was computed on the CPU" in words_of(
        report.summary(full=True)
    )
