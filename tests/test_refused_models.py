"""What is given as a model or data: unwrapped where it can be, else refused rightly."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import netmargin as nm
from netmargin.kkt.constraints import Constraints
from netmargin.models import mlp
from netmargin.nets.accepted_models import check_model
from netmargin.nets.net_on_samples import NetOnSamples

torch.manual_seed(0)
NET = mlp([3, 6, 1])
X = torch.randn(12, 3)
with torch.no_grad():
    Y = torch.where(NET(X)[:, 0] > 0, 1, -1)
TOKENS = torch.randint(10, (12, 3))
CALLS = {
    "measure": nm.measure,
    "input_margins": lambda model, data: nm.input_margins(model, data, progress=False),
    "certify": nm.certify,
    "tangent_svm": nm.tangent_svm,
    "robustness": lambda model, data: nm.robustness(
        model, data, effort="quick", attacks=False, progress=False
    ),
    "empirical_ntk": lambda model, data: nm.kernels.empirical_ntk(model, data[0]),
}


class Own(nn.Module):
    """A net whose forward is given."""

    def __init__(self, forward):
        super().__init__()
        self.layer, self.table, self._forward = (
            nn.Linear(3, 1, bias=False),
            nn.Embedding(10, 3),
            forward,
        )

    def forward(self, x):
        return self._forward(self, x)


class TwoInputs(nn.Linear):
    def forward(self, x, mask):
        return super().forward(x) * mask


def quantized() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(
            nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
        )


def torchscript(how) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return how(NET)


def nan_buffer() -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    net[1].running_var[0] = float("nan")
    return net


def flipped() -> nn.Module:
    net = mlp([3, 6, 1])
    bits = net[2].weight.data.view(torch.int32)
    bits[0, 2] |= 0x7F800001  # all bits of the exponent: NaN
    return net


def noisy(_, x):
    return nn.functional.dropout(x.sum(1, keepdim=True), 0.5) * _.layer.weight.sum()


WRONG_MODELS = {
    "got the function mlp": mlp,
    r"got the class Linear. Write Linear\(...\), with its arguments": nn.Linear,
    "got the function <lambda>.*write it as the forward of a torch.nn.Module": lambda x: x,
    "got None. Does the function that makes it return it": None,
    r"Build the model first, then load its weights: netmargin.load_weights\(model, 'net.pt'\)": "net.pt",
    "got a state dict": NET.state_dict(),
    r"got Tensor. The model comes first and the data second": X,
    "got ndarray. The model comes first": X.numpy(),
    "got tuple. The model comes first": (X, Y),
    "scikit-learn estimator LogisticRegression. Copy coef_ .*netmargin.estimators": LogisticRegression(),
    "got SGD": torch.optim.SGD(NET.parameters()),
    "TorchScript: the model was scripted or traced": torchscript(torch.jit.script),
    "TorchScript: the model was .* traced": torchscript(lambda net: torch.jit.trace(net, X)),
    "TorchScript: its module '0'": nn.Sequential(torchscript(torch.jit.script)),
    "Exported: the model is fixed": torch.export.export(NET, (X,)).module(),
    "Quantized: the weights of its module '0'": quantized(),
    "Parallel: its module '0' is a DataParallel": nn.Sequential(nn.DataParallel(NET)),
    r"Several outputs of the model may be its scores: 'left' of shape .*scores='right'": Own(
        lambda net, x: {"left": net.layer(x), "right": -net.layer(x)}
    ),
    "tuple of 2 without a tensor of scores": Own(lambda net, x: (None, 3)),
    "Let forward return it": Own(lambda net, x: SimpleNamespace(y=net.layer(x))),
    "type torch.int64, .*argmax": Own(lambda net, x: net.layer(x).argmax(1)),
    r"(?s:several rows of scores per sample.*mean\(\(2, 3\)\))": Own(
        lambda net, x: net.layer(x)[:, :, None, None].expand(-1, 2, 4, 4)
    ),
    "model.x. with one tensor. Wrap it: class OneInput": TwoInputs(3, 1),
    "may expect a dict .*Wrap it: class OneInput": Own(lambda net, x: net.layer(x["inputs"])),
    "'absent'. Its own forward raised that": Own(lambda net, x: net.absent(x)),
    "Parameter '2.weight' holds NaN or infinite values. Load an earlier checkpoint": flipped(),
    "Buffer '1.running_var' holds NaN": nan_buffer(),
}


@pytest.mark.parametrize("message", WRONG_MODELS)
def test_a_model_that_is_none_is_named(message):
    for call in CALLS.values():
        with pytest.raises(nm.ModelError, match=message):
            call(WRONG_MODELS[message], (X, Y))


def test_a_forward_in_numpy_has_no_tangent_kernel():
    model = Own(lambda net, x: torch.from_numpy(np.tanh(net.layer(x).numpy())))
    with pytest.raises(
        nm.ModelError,
        match="Its forward leaves torch for numpy or Python numbers",
    ):
        nm.kernels.empirical_ntk(model, X)


@pytest.mark.slow_cases("compile", "<lambda>")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, torch.compile, lambda net: torch.compile(nn.DataParallel(net))]
)
def test_wrapped_models_are_unwrapped(call, wrap):
    """The same numbers, bit for bit, and no compilation, which takes a minute."""

    def numbers(answer):
        answer = getattr(
            answer,
            "q",
            getattr(answer, "epsilon", getattr(answer, "cosine", getattr(answer, "lower", answer))),
        )
        return np.asarray(answer).tolist()

    assert numbers(CALLS[call](wrap(NET), (X, Y))) == numbers(CALLS[call](NET, (X, Y)))
    assert check_model(wrap(NET)) is NET


@pytest.mark.parametrize("call", CALLS)
def test_a_net_that_is_compiled_in_place_is_run_as_it_is_written(call):
    """Whole or in part: its compiled calls, which would raise here, are left alone, and kept."""

    def raises(*_, **__):
        raise AssertionError("compiled")

    net = mlp([3, 6, 1])
    net.load_state_dict(NET.state_dict())
    net._compiled_call_impl = net[1]._compiled_call_impl = raises  # as net.compile() leaves it
    CALLS[call](net, (X, Y))
    for part in (net, net[1]):
        with pytest.raises(AssertionError, match="compiled"):
            part(X)


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile])
@pytest.mark.parametrize(
    "change",
    [
        lambda net, data: nm.flow.gradient_descent(net, data, steps=3, rate=0.1),
        lambda net, data: nm.train(net, data, until=nm.Epochs(2), progress=False),
        lambda net, data: nm.maximize_margin(net, data, iterations=2, progress=False),
    ],
    ids=["gradient_descent", "train", "maximize_margin"],
)
def test_what_changes_a_net_changes_the_net_inside_its_wrapper(change, wrap):
    data, found = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1]), []
    for inside in (wrap, lambda net: net):
        torch.manual_seed(0)
        net = nn.Linear(2, 1, bias=False)
        before = net.weight.detach().clone()
        change(inside(net), data)
        found.append(net.weight.detach())
    assert torch.equal(*found)
    assert not torch.equal(found[0], before)


@pytest.mark.parametrize("call", ["certify", "tangent_svm", "robustness", "empirical_ntk"])
def test_nothing_is_certified_of_a_model_with_noise(call):
    with pytest.raises(
        nm.ModelError, match=r"noisy: two evaluations .* differ by|draws random numbers"
    ):
        CALLS[call](Own(noisy), (X, Y))


def test_noise_is_noted_where_it_is_measured():
    with pytest.warns(
        UserWarning,
        match="two evaluations of the same inputs in evaluation mode differ by .* single draws",
    ):
        nm.measure(Own(noisy), (X, Y))
    with pytest.warns(UserWarning, match="single draws.*in the margins of this history"):
        nm.train(Own(noisy), (X, Y), until=nm.Epochs(1), progress=False)
    silent = nn.Sequential(nn.Dropout(0.5), mlp([3, 6, 2]))  # noise in training only
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nm.measure(silent, (X, Y))
    assert torch.equal(torch.get_rng_state(), before)


def with_biases(net: nn.Sequential) -> nn.Sequential:
    net[2].bias.data.fill_(0.3)
    return net


HOPELESS = with_biases(mlp([3, 6, 1], bias="all"))


@pytest.mark.parametrize("call", ["certify", "tangent_svm"])
def test_the_reason_that_no_training_cures_comes_first_and_the_other_with_it(call):
    with pytest.raises(nm.NotHomogeneousError) as raised:
        CALLS[call](HOPELESS, (X, -Y))
    said = str(raised.value)
    assert 0 < said.find("bias") < said.find("Besides, ") < said.find("margin that is not positive")
    assert "Train until" not in said
    with pytest.raises(nm.NotSeparatedError, match="Train until all are correct"):
        CALLS[call](NET, (X, -Y))


WRONG_DATA = {
    "The data are a model .Sequential.: the model comes first and the data second": NET,
    r"The data are text, 'digits'. Named data sets are functions": "digits",
    "The data are a dict with the keys 'x', 'z'": {"x": X, "z": Y},
    "one Tensor of shape .12, 3., without labels": X,
    r"The data are 3 arrays. The first two of them would be data\[:2\]": (X, Y, Y),
    r"a dict with the keys 'input_ids', 'classes', none of which is for labels": [
        {"input_ids": X, "classes": Y}
    ],
    r"tuple of 3. Give pairs, .*or a loader whose collate_fn": [(X, Y, Y)],
    "Are they swapped": (Y, X),
    "X.to_dense": (X.to_sparse(), Y),
    r"Pass a pair \(X, y\)": 3,
    "different shapes|could not process": [(X, Y), (X[:, :2], Y)],
    r"^X holds samples of different shapes, \(3, 8, 8\) and \(3, 9, 8\). Pad or crop": (
        [torch.ones(3, 8 + i % 2, 8) for i in range(4)],
        [0, 1, 0, 1],
    ),
    r"For single samples \(x, label\): DataLoader\(samples, batch_size=1000\).$": [
        (torch.ones(3, 8, 8), i % 2) for i in range(4)
    ],
}


@pytest.mark.parametrize("message", WRONG_DATA)
def test_data_that_are_none_are_named(message):
    for call in ("measure", "certify", "robustness"):
        with pytest.raises(nm.DataError, match=message):
            CALLS[call](NET, WRONG_DATA[message])


def tokens_to_scores(net, x):
    return net.layer(net.table(x).mean(1))


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (Own(tokens_to_scores), X, "give the tokens as integers, X.long()"),
        (Own(tokens_to_scores), TOKENS + 100, "compare the largest input with num_embeddings"),
        (
            NET,
            torch.ones(12, 3, dtype=torch.uint8),
            "X.float() / 255 for images, as ToTensor() does).",
        ),
        (NET, X[:, :2], "Give inputs of the shape that its first layer expects."),
        (nn.Conv2d(1, 2, 3), X, "Give images, X.reshape(-1, channels, height, width)."),
    ],
)
def test_inputs_are_blamed_for_what_they_lack(model, inputs, message):
    with pytest.raises(nm.DataError, match=re.escape(message)) as raised:
        nm.measure(model, (inputs, Y))
    assert ("255" in str(raised.value)) == ("255" in message)


def test_the_remedies_in_the_sentences_work():
    """The code that an error tells to write, pasted and run."""

    for forward in (
        lambda net, x: {"left": net.layer(x), "right": -net.layer(x)},
        lambda net, x: SimpleNamespace(logits=net.layer(x)[:, None].expand(-1, 5, 1)),
        lambda net, x: net.layer(x)[:, :, None, None].expand(-1, 1, 4, 4),
    ):
        with pytest.raises(nm.ModelError) as raised:
            nm.measure(Own(forward), (X, Y))
        choice = eval(re.search(r"scores=(.*?)(\.|, for example\.)?$", str(raised.value))[1])
        assert nm.measure(Own(forward), (X, Y), scores=choice).n == 12
    loader = [(X, Y, Y)]
    with pytest.raises(nm.DataError) as refused:
        nm.measure(NET, loader)
    pairs = eval(re.search(r"Give pairs, (\[.*?\]), or", str(refused.value))[1], {"loader": loader})
    assert nm.measure(NET, pairs).n == 12
    masked, loader = TwoInputs(3, 1), [(X, X[:, :1] > 0, Y)]
    with pytest.raises(nm.DataError) as refused:
        nm.measure(masked, loader)
    by_name = eval(re.search(r"of forward, (\[.*\])", str(refused.value))[1], {"loader": loader})
    expected = nm.measure(masked, {"x": X, "mask": X[:, :1] > 0, "labels": Y}).q
    assert torch.equal(nm.measure(masked, by_name).q, expected)


@pytest.mark.parametrize("how", [nn.utils.parametrizations.weight_norm, nn.utils.weight_norm])
def test_weight_norm_is_certified(how):
    """Without derivative in forward mode: slopes by reverse mode twice agree with differences."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.Sequential(
            how(nn.Linear(3, 6, bias=False)), nn.Softplus(), nn.Linear(6, 1, bias=False)
        ).double()
    names = tuple(name for name, _ in net.named_parameters())
    constraints = Constraints(NetOnSamples(net, (X.double(), Y)), names)
    point = constraints.point
    direction = {name: torch.randn_like(p) for name, p in point.items()}
    (found,) = constraints.slopes(direction)
    moved = []
    for step in (1e-5, -1e-5):
        constraints.move_to({name: p + step * direction[name] for name, p in point.items()})
        moved.append(constraints.nearest()[0])
    constraints.move_to(point)
    expected = (moved[0] - moved[1]) / 2e-5
    assert torch.allclose(found.slopes[:, 0], expected, rtol=1e-6, atol=1e-8)
    assert torch.equal(found.gaps[:, 0], constraints.nearest()[0])
