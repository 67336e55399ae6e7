"""The analysis against the numerical judge, on nets whose answer is known."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_linear_bn_eval

import netmargin as nm
from netmargin.flow.gradient_descent import gradient_descent
from netmargin.homogeneity import Evidence, Kind, analyse, rule
from netmargin.homogeneity.scaling import TOLERANCE, ScalingProbe
from netmargin.models import ReLUPower, mlp, mnist_cnn, vgg, wide_resnet

VECTOR, IMAGE, SEQUENCE, TOKENS = (
    torch.randn(6, 5),
    torch.randn(6, 1, 28, 28),
    torch.randn(6, 4, 8),
    torch.arange(24).reshape(6, 4),
)
MULTI, HOMOGENEOUS, PARTIAL = Kind.MULTI_HOMOGENEOUS, Kind.HOMOGENEOUS, Kind.PARTIAL


def linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias)


class Custom(nn.Module):
    """A module from a function of (module, x), for forwards that Sequential cannot express."""

    def __init__(self, forward: Callable, **parts: nn.Module | nn.Parameter):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._function = forward

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self, x)


def residual(norm: nn.Module | None) -> Custom:
    """x -> stem -> stem + block(norm(stem)) -> head."""
    block = nn.Sequential(linear(7, 9), nn.ReLU(), linear(9, 7))

    def forward(m, x):
        h = m.stem(x)
        return m.head(h + m.block(m.norm(h) if norm is not None else h))

    parts = {"norm": norm} if norm is not None else {}
    return Custom(forward, stem=linear(5, 7), block=block, head=linear(7, 3), **parts)


def transformer(head_bias: bool = False) -> nn.Sequential:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)
    return nn.Sequential(encoder, Custom(lambda m, x: x.mean(1)), linear(8, 3, head_bias))


def post_norm_resnet(training: bool) -> nn.Module:
    def forward(m, x):
        h = m.norm0(m.conv0(x)).relu()
        h = (h + m.norm2(m.conv2(m.norm1(m.conv1(h)).relu()))).relu()
        return m.head(h.mean((2, 3)))

    convs = {
        f"conv{i}": nn.Conv2d(1 if i == 0 else 4, 4, 3, padding=1, bias=False) for i in range(3)
    }
    norms = {f"norm{i}": nn.BatchNorm2d(4) for i in range(3)}
    return Custom(forward, **convs, **norms, head=linear(4, 3)).train(training)


def recurrent(kind: type, **options) -> nn.Module:
    return Custom(
        lambda m, x: m.head(m.states(x[..., None])[0][:, -1]),
        states=kind(1, 4, batch_first=True, **options),
        head=linear(4, 3, True),
    )


@dataclass
class Case:
    make: Callable[[], nn.Module]
    x: Tensor
    kind: Kind
    order: int
    exponents: list | dict
    blockers: int = 0


def seq(*layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*layers)


CASES = {
    "linear": Case(lambda: linear(5, 3), VECTOR, HOMOGENEOUS, 1, [1]),
    "mlp, first-layer bias": Case(lambda: mlp([5, 7, 6, 3]), VECTOR, MULTI, 3, {"0": 1, "2": 1, "4": 1}),
    "mlp, biases everywhere": Case(lambda: mlp([5, 7, 6, 3], bias="all"), VECTOR, PARTIAL, 1, {"4": 1}, 2),
    "mlp, bias in the middle": Case(
        seq(linear(5, 6), nn.ReLU(), linear(6, 6, True), nn.ReLU(), linear(6, 2)), VECTOR, PARTIAL, 2, {"2": 1, "4": 1}, 1
    ),
    "mlp, bias in the last layer": Case(seq(linear(5, 6), nn.ReLU(), linear(6, 2, True)), VECTOR, PARTIAL, 1, {"2": 1}, 1),
    "squared ReLU": Case(lambda: mlp([5, 7, 6, 3], power=2), VECTOR, MULTI, 7, {"0": 4, "2": 2, "4": 1}),
    "cubed ReLU": Case(lambda: mlp([5, 7, 1], power=3), VECTOR, MULTI, 4, {"0": 3, "2": 1}),
    "quadratic": Case(
        lambda: Custom(lambda m, x: m.b(m.a(x) * m.a(x)), a=linear(5, 4), b=linear(4, 1)), VECTOR, MULTI, 3, {"a": 2, "b": 1}
    ),
    "leaky ReLU and dropout": Case(
        seq(linear(5, 7), nn.LeakyReLU(0.1), nn.Dropout(0.5), linear(7, 3)), VECTOR, MULTI, 2, {"0": 1, "3": 1}
    ),
    "PReLU": Case(seq(linear(5, 7), nn.PReLU(), linear(7, 3)), VECTOR, PARTIAL, 2, {"0": 1, "2": 1}, 1),
    "MNIST CNN": Case(lambda: mnist_cnn(channels=(3, 4), hidden=8), IMAGE, MULTI, 4, [1, 1, 1, 1]),
    "MNIST CNN, biases everywhere": Case(lambda: mnist_cnn(channels=(3, 4), hidden=8, bias="all"), IMAGE, PARTIAL, 1, {"9": 1}, 3),
    "VGG": Case(lambda: vgg(width=2), torch.randn(4, 3, 32, 32), MULTI, 14, [1] * 14),
    "WideResNet without normalization": Case(lambda: wide_resnet(depth=10, widen=1), torch.randn(2, 3, 32, 32), PARTIAL, 1, {"7": 1}, 4),
    "mean over channels-last images": Case(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 5, bias=False), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(4, 3)
        ).to(memory_format=torch.channels_last), IMAGE, MULTI, 2, {"0": 1, "4": 1},
    ),
    "pools of all kinds": Case(
        seq(
            nn.Conv2d(1, 4, 5), nn.AvgPool2d(2), nn.ReLU(), nn.ConvTranspose2d(4, 3, 3, bias=False), nn.MaxPool2d(2),
            nn.AdaptiveMaxPool2d(3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), linear(12, 3),
        ), IMAGE, MULTI, 3, {"0": 1, "3": 1, "8": 1},
    ),
    "1-D convolutions": Case(
        lambda: nn.Sequential(
            nn.Conv1d(4, 6, 3), nn.ReLU(), nn.MaxPool1d(2), nn.ConvTranspose1d(6, 2, 2, bias=False), nn.AvgPool1d(2),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        ), SEQUENCE, MULTI, 2, {"0": 1, "3": 1},
    ),
    "3-D convolution": Case(
        seq(nn.Conv3d(1, 3, 2), nn.ReLU(), nn.MaxPool3d(2), nn.AvgPool3d(2), nn.Flatten(), linear(3, 2)),
        torch.randn(6, 1, 5, 5, 5), MULTI, 2, {"0": 1, "5": 1},
    ),
    "residual without normalization": Case(lambda: residual(None), VECTOR, PARTIAL, 2, {"stem": 1, "head": 1}, 1),
    "residual with LayerNorm without affine": Case(
        lambda: residual(nn.LayerNorm(7, elementwise_affine=False)), VECTOR, PARTIAL, 2, None, 1
    ),
    "residual of equal depth": Case(
        lambda: Custom(lambda m, x: m.c(m.a(x).relu() + m.b(x)), a=linear(5, 4), b=linear(5, 4), c=linear(4, 2)),
        VECTOR, MULTI, 2, {"a + b": 1, "c": 1},
    ),
    "LayerNorm net": Case(
        seq(linear(5, 7, True), nn.LayerNorm(7), nn.ReLU(), linear(7, 3)), VECTOR, MULTI, 2, {"0": 0, "1": 1, "3": 1}
    ),
    "LayerNorm before a head with bias": Case(
        seq(linear(5, 7), nn.ReLU(), nn.LayerNorm(7), linear(7, 3, True)), VECTOR, PARTIAL, 1, {"3": 1}, 1
    ),
    "residual stream between norms, ReLU6 inside": Case(
        lambda: Custom(
            lambda m, x: m.head(nn.functional.relu6(m.last((h := m.stem(x)) + m.write(nn.functional.relu6(m.norm(m.read(h))))))),
            stem=linear(5, 7), read=linear(7, 6), norm=nn.BatchNorm1d(6), write=linear(6, 7), last=nn.BatchNorm1d(7), head=linear(7, 3, True),
        ), VECTOR, PARTIAL, 1, {"stem + write": 0, "read": 0, "head": 1}, 3
    ),
    "LayerNorm without affine": Case(
        seq(linear(5, 7), nn.LayerNorm(7, elementwise_affine=False), nn.ReLU(), linear(7, 3)), VECTOR, MULTI, 1, {"0": 0, "3": 1}
    ),
    "RMSNorm net": Case(seq(linear(5, 7), nn.RMSNorm(7), nn.ReLU(), linear(7, 3)), VECTOR, MULTI, 2, {"0": 0, "1": 1, "3": 1}),
    "GroupNorm net": Case(
        seq(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(4, 2)),
        IMAGE, MULTI, 2, {"0": 0, "1": 1, "5": 1},
    ),
    "BatchNorm, batch statistics": Case(
        seq(linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), linear(7, 3)), VECTOR, MULTI, 2, {"0": 0, "1": 1, "3": 1}
    ),
    "BatchNorm, stored statistics": Case(
        lambda: nn.Sequential(linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), linear(7, 3)).eval(),
        VECTOR, MULTI, 2, {"0": 0, "1": 1, "3": 1},
    ),
    "post-norm ResNet, batch statistics": Case(
        lambda: post_norm_resnet(True), IMAGE, MULTI, 2,
        {"conv0": 0, "conv1": 0, "conv2": 0, "norm1": 0, "norm0 + norm2": 1, "head": 1},
    ),
    "post-norm ResNet, stored statistics": Case(
        lambda: post_norm_resnet(False), IMAGE, MULTI, 2,
        {"conv0": 0, "conv1": 0, "conv2": 0, "norm1": 0, "norm0 + norm2": 1, "head": 1},
    ),
    "pre-norm transformer": Case(lambda: transformer().eval(), SEQUENCE, PARTIAL, 2, {"0.norm": 1, "2": 1}, 12),
    "pre-norm transformer, head with bias": Case(lambda: transformer(True).eval(), SEQUENCE, PARTIAL, 1, {"2": 1}, 13),
    "embeddings": Case(
        lambda: Custom(
            lambda m, t: m.head((m.tokens(t) + m.places.weight[: t.shape[1]]).mean(1).relu()),
            tokens=nn.Embedding(24, 6), places=nn.Embedding(4, 6), head=linear(6, 2),
        ), TOKENS, MULTI, 2, {"tokens + places": 1, "head": 1},
    ),
    "learned biases of positions in attention": Case(
        lambda: Custom(
            lambda m, x: m.head(nn.functional.scaled_dot_product_attention(x[:, None], x[:, None], m.values(x)[:, None], 1 * m.places).mean(2)[:, 0]),
            values=linear(8, 8), places=nn.Parameter(torch.randn(4, 4)), head=linear(8, 2),
        ), SEQUENCE, PARTIAL, 2, {"values": 1, "head": 1}, 1
    ),
    "weight sharing": Case(
        lambda: Custom(lambda m, x: m.out(m.a(m.a(x).relu()).relu()), a=linear(5, 5), out=linear(5, 2)),
        VECTOR, MULTI, 3, {"a": 2, "out": 1},
    ),
    "tied encoder and decoder": Case(
        lambda: Custom(lambda m, x: m.a(x).relu() @ m.a.weight, a=linear(5, 4)), VECTOR, HOMOGENEOUS, 2, {"a": 2}
    ),
    "weight normalization": Case(
        lambda: nn.utils.parametrizations.weight_norm(linear(5, 3)), VECTOR, MULTI, 1,
        {"parametrizations.weight.original0": 1, "parametrizations.weight.original1": 0},
    ),
    "custom forward with control flow": Case(
        lambda: Custom(
            lambda m, x: torch.cat([m.a(x).relu() if x.sum() > -1e9 else m.b(x), m.b(x).abs()], 1).amax(1, keepdim=True),
            a=linear(5, 3), b=linear(5, 3),
        ), VECTOR, HOMOGENEOUS, 1, {"a + b": 1},
    ),
    "where, clamp, in-place": Case(
        lambda: Custom(lambda m, x: torch.where(m.a(x) > 0, m.a(x), 0.0).clamp(min=0).mul_(2.0), a=linear(5, 3)),
        VECTOR, HOMOGENEOUS, 1, {"a": 1},
    ),
    "hand-written RMS normalization": Case(
        lambda: Custom(
            lambda m, x: m.b(m.a(x) * torch.rsqrt(m.a(x).square().mean(-1, keepdim=True) + 1e-6)), a=linear(5, 4), b=linear(4, 2)
        ), VECTOR, MULTI, 1, {"a": 0, "b": 1},
    ),
    "RMS normalization with a cast": Case(
        lambda: Custom(
            lambda m, x: m.b(m.a(x) * torch.rsqrt((m.a(x).double().square().mean(-1, keepdim=True) + 1e-6).float())),
            a=linear(5, 4), b=linear(4, 2),
        ), VECTOR, MULTI, 1, {"a": 0, "b": 1},
    ),
    "square-root pooling": Case(
        lambda: Custom(lambda m, x: m.a(x).square().mean(1, keepdim=True).sqrt(), a=linear(5, 4)), VECTOR, HOMOGENEOUS, 1, {"a": 1}
    ),
    "low-rank update of a weight": Case(
        lambda: Custom(
            lambda m, x: nn.functional.linear(x, m.w.weight + m.b.weight @ m.a.weight).relu() @ m.o.weight.T,
            w=linear(5, 4), a=linear(5, 2), b=linear(2, 4), o=linear(4, 2),
        ), VECTOR, PARTIAL, 2, None, 1,
    ),
    "gain around 1": Case(
        lambda: Custom(lambda m, x: m.o(m.a(x) * (1 + m.g)), a=linear(5, 4), o=linear(4, 2), g=nn.Parameter(torch.randn(4))),
        VECTOR, PARTIAL, 2, {"a": 1, "o": 1}, 1,
    ),
    "small constant added": Case(lambda: Custom(lambda m, x: m.a(x) + 1e-3, a=linear(5, 3)), VECTOR, Kind.NONE, None, {}, 1),
    "small upper cut": Case(lambda: Custom(lambda m, x: m.a(x).clamp(max=1e-3), a=linear(5, 3)), VECTOR, Kind.NONE, None, {}, 1),
    "cosine scores": Case(
        lambda: Custom(lambda m, x: nn.functional.normalize(m.a(x)) @ m.b.weight, a=linear(5, 4), b=linear(3, 4)),
        VECTOR, MULTI, 1, {"a": 0, "b": 1},
    ),
    "maximum with a zero tensor": Case(
        lambda: Custom(lambda m, x: torch.maximum(m.a(x), torch.tensor(0.0)), a=linear(5, 3)), VECTOR, HOMOGENEOUS, 1, {"a": 1}
    ),
    "float32 constants": Case(
        lambda: Custom(lambda m, x: m.a(x.float()) @ torch.eye(3) @ m.mix, a=linear(5, 3), mix=nn.Buffer(torch.ones(3, 3))),
        VECTOR, HOMOGENEOUS, 1, {"a": 1},
    ),
    "in-place inputs": Case(lambda: Custom(lambda m, x: m.a(x.div_(2)), a=linear(5, 3)), VECTOR.clone(), HOMOGENEOUS, 1, {"a": 1}),
    "results written with out=": Case(
        lambda: Custom(lambda m, x: torch.mm(x, m.a.weight.T, out=torch.empty(len(x), 3)).relu(), a=linear(5, 3)),
        VECTOR, HOMOGENEOUS, 1, {"a": 1},
    ),
    "sparse graph": Case(
        lambda: Custom(lambda m, x: torch.sparse.mm(torch.eye(len(x)).to_sparse(), m.a(x)), a=linear(5, 3)),
        VECTOR, HOMOGENEOUS, 1, {"a": 1},
    ),
    "blank inputs": Case(lambda: mlp([5, 4, 2]), torch.zeros(6, 5), MULTI, 2, {"0": 1, "2": 1}),
    "constant inputs to a BatchNorm": Case(
        seq(linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), linear(4, 2)), torch.ones(6, 5), MULTI, 2, {"0": 0, "1": 1, "3": 1}
    ),
    "table of frequencies": Case(
        lambda: Custom(lambda m, x: m.a(x) * 10000 ** -torch.arange(3.0), a=linear(5, 3)), VECTOR, HOMOGENEOUS, 1, {"a": 1}
    ),
    "tanh in the middle": Case(seq(linear(5, 4), nn.Tanh(), linear(4, 3), nn.ReLU(), linear(3, 2)), VECTOR, PARTIAL, 2, {"2": 1, "4": 1}, 1),
    "LSTM": Case(lambda: recurrent(nn.LSTM, num_layers=2), VECTOR, PARTIAL, 1, {"head": 1}, 1),
    "GRU": Case(lambda: recurrent(nn.GRU), VECTOR, PARTIAL, 1, {"head": 1}, 7),
    "scores through softmax": Case(seq(linear(5, 4), nn.Softmax(-1)), VECTOR, Kind.NONE, None, {}, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_analysis_is_right_and_agrees_with_the_judge(name):
    case = CASES[name]
    torch.manual_seed(0)
    model = case.make()
    answer = analyse(model, case.x)
    assert (answer.kind, answer.order) == (case.kind, case.order), answer.summary()
    assert answer.evidence is Evidence.DERIVED
    if isinstance(case.exponents, dict):
        assert answer.groups == case.exponents
    elif case.exponents is not None:
        assert list(answer.groups.values()) == case.exponents
    assert len(answer.blockers) == case.blockers, answer.summary()
    assert all(b.reason and b.replacement for b in answer.blockers)
    if answer.order is not None:
        assert answer.check(model, case.x, seed=7).passed
        # The judge must tell a wrong exponent.
        probe = ScalingProbe(model, case.x[:4])
        if probe.silent:
            return
        every = dict.fromkeys((n for names in answer.members.values() for n in names), 2.0)
        assert probe.miss(every, 2.0 ** float(answer.order + 1)) > TOLERANCE
    if answer.blockers and answer.kind is not Kind.NONE:
        # Blocked means: scaling everything by c follows no power of c.
        probe = ScalingProbe(model, case.x[:4])
        assert probe.exponent(n for n, _ in model.named_parameters()) is None


def test_quasi_homogeneity_covers_biases_in_every_layer():
    answer = analyse(mlp([5, 7, 6, 3], bias="all"), VECTOR)
    third = Fraction(1, 3)
    weights = {
        "0.weight": third,
        "0.bias": third,
        "2.weight": third,
        "2.bias": 2 * third,
        "4.weight": third,
        "4.bias": 1,
    }
    assert answer.quasi_exponents == weights
    two = Custom(  # the smallest is as large as possible, and so is the next
        lambda m, x: m.c(m.b(m.a(x)).relu()) + m.d(x),
        a=linear(5, 4), b=linear(4, 4), c=linear(4, 2), d=linear(5, 2),
    )  # fmt: skip
    found = analyse(two, VECTOR).quasi_exponents
    assert found == {"a.weight": third, "b.weight": third, "c.weight": third, "d.weight": 1}


def test_quasi_exponents_leave_out_what_the_net_is_invariant_to():
    model = nn.Sequential(
        linear(5, 7, True), nn.BatchNorm1d(7), nn.ReLU(), linear(7, 6), nn.LayerNorm(6),
        nn.ReLU(), linear(6, 3, True),
    ).eval()  # fmt: skip
    answer = analyse(model, VECTOR)
    half = Fraction(1, 2)
    counted = {"4.weight": half, "4.bias": half, "6.weight": half, "6.bias": 1}
    assert {name: k for name, k in answer.quasi_exponents.items() if k} == counted
    bent = analyse(nn.Sequential(linear(5, 4), nn.Tanh()), VECTOR)
    assert (bent.quasi_exponents, bent.quasi_reason) == (
        None,
        "the outputs do not grow with the parameters",
    )
    gate = Custom(lambda m, x: m.a(x) + m.b(x) * m.a(x).sigmoid(), a=linear(5, 3), b=linear(5, 3))
    assert "a: " not in analyse(gate, VECTOR).quasi_reason
    assert "sigmoid is not homogeneous" in analyse(gate, VECTOR).quasi_reason


def test_stored_statistics_follow_as_if_they_were_estimated_again():
    """Rescale every group, estimate on the same data, and evaluate: by torch alone."""
    torch.manual_seed(0)
    model = post_norm_resnet(True).double()
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.eps, norm.momentum = 1e-14, None

    def estimate_and_evaluate() -> Tensor:
        for norm in norms:
            norm.reset_running_stats()
        with torch.no_grad():
            model.train()(IMAGE.double())
            return model.eval()(IMAGE.double())

    before = estimate_and_evaluate()
    answer = analyse(model, IMAGE)
    assert set(answer.statistics) == {
        f"norm{i}.running_{name}" for i in range(3) for name in ("mean", "var")
    }
    assert "3 normalization layers ('norm0', 'norm1', ...) follow the parameters" in answer.notes[0]
    expected = 1.0
    with torch.no_grad():
        for factor, (group, k) in enumerate(answer.groups.items(), start=2):
            expected *= factor**k
            for name in answer.members[group]:
                model.get_parameter(name).mul_(factor)
    after = estimate_and_evaluate()
    assert (after - expected * before).abs().max() <= 1e-9 * after.abs().max()
    fixed = analyse(model, IMAGE, statistics="fixed")
    assert (fixed.kind, fixed.order, fixed.groups) == (PARTIAL, 1, {"head": 1})
    assert not fixed.statistics
    with pytest.raises(nm.ArgumentError, match="statistics"):
        analyse(model, IMAGE, statistics="free")


def test_statistics_that_were_never_estimated_or_are_shared():
    model = nn.Sequential(linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), linear(7, 3))
    fresh = "statistics of a normalization layer ('1') were never estimated"
    assert not any(fresh in note for note in analyse(model, VECTOR).notes)  # it uses the batch's
    assert fresh in analyse(model.eval(), VECTOR).notes[1]
    model.train()(VECTOR)
    assert not any(fresh in note for note in analyse(model.eval(), VECTOR).notes)
    shared = Custom(
        lambda m, x: m.c(m.norm(m.b(m.a(x)) + m.norm(m.a(x)))),
        a=linear(5, 4), b=linear(4, 4), c=linear(4, 2), norm=nn.BatchNorm1d(4, affine=False),
    )  # fmt: skip
    reasons = [blocker.reason for blocker in analyse(shared.eval(), VECTOR).blockers]
    assert "stores the statistics of values that scale differently" in reasons


def test_who_holds_statistics_fixed_refuses_such_nets():
    y = torch.tensor([0, 1, 0, 1, 0, 1])
    model = nn.Sequential(linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), linear(32, 2))
    nm.train(model, (VECTOR, y), until=nm.LogLossBelow(-2), progress=False)
    assert nm.measure(model, (VECTOR, y)).order == 2
    assert nm.measure(model, (VECTOR, y), statistics="fixed").order is None
    for refuse in (nm.certify, nm.maximize_margin, partial(gradient_descent, steps=1, rate=0.1)):
        with pytest.raises(
            nm.NotHomogeneousError, match="In evaluation mode '1' divides by stored statistics"
        ):
            refuse(model, (VECTOR, y))
    flow = nm.gradient_flow(model, (VECTOR, y), time=0.1, progress=False)
    assert (flow.rows[-1]["normalized_margin"], flow.message) == (None, "t reached 0.1")
    model.eval().load_state_dict(flow.final, strict=False)  # with the statistics that it has
    assert nm.measure(model, (VECTOR, y)).log_loss == pytest.approx(
        flow.rows[-1]["log_loss"], rel=1e-5
    )
    folded = nn.Sequential(fuse_linear_bn_eval(model.eval()[0], model[1]), *model[2:])
    with pytest.raises(nm.NotHomogeneousError, match="Held fixed, .*: '0.bias'"):
        nm.certify(folded, (VECTOR, y))  # torch makes a bias that requires no gradient
    assert nm.certify(folded.requires_grad_(True), (VECTOR, y)).order == 2
    assert nm.certify(model, (VECTOR, y), norm="partial").order == 2


def test_a_large_net_is_followed_and_checked_in_few_passes():
    """Two samples are followed, three checked, and with and without the bias two measured."""
    passed = []
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(64, 5, True),
    ).eval()  # fmt: skip
    model.register_forward_pre_hook(lambda _, inputs: passed.append(inputs[0]))
    answer = analyse(model, torch.randn(16, 3, 64, 64))
    assert answer.ignoring_biases().groups == {"0": 0, "2": 0, "3": 1, "7": 1}
    assert 0 < answer.ignoring_biases().deviation < 1e-2
    assert sum(map(len, passed)) <= 2 + 2 * 3 + 2 * 2 * 2


def test_a_pair_stays_one_input_where_the_net_takes_no_single_one():
    """Other forms of the data: `test_data_table.py`."""

    class Gathered(nn.Linear):
        def forward(self, pair):
            return super().forward(pair[0])[torch.arange(len(pair[1])), pair[1]]

    y = torch.arange(len(VECTOR)) % 3
    assert analyse(Gathered(5, 3, bias=False), (VECTOR, y)).order == 1


def test_the_order_that_margins_are_normalized_by_is_said_beside_the_net_s_own():
    model = mlp([5, 7, 6, 3], bias="all")
    answer, report = (
        analyse(model, VECTOR),
        nm.measure(model, (VECTOR, [0, 1] * (len(VECTOR) // 2))),
    )
    assert (answer.order, report.order) == (1, 3)
    assert "order 3 without the biases that block it: nm.measure" in answer.summary()


def test_a_softmax_within_a_net_is_attention_and_one_at_its_end_is_not():
    class Attends(nn.Linear):
        def forward(self, x):
            x = super().forward(x)[:, None] * torch.ones(3, 1)
            return (torch.softmax(x @ x.mT, -1) @ x).sum(1)

    (blocker,) = analyse(Attends(5, 4, bias=False), VECTOR).blockers
    assert blocker.replacement.startswith("normalize queries and keys")
    (blocker,) = analyse(nn.Sequential(linear(5, 4), nn.Softmax(1)), VECTOR).blockers
    assert blocker.replacement == "return the scores before it"


def test_a_wrong_rule_is_contradicted_in_a_net_with_later_biases(monkeypatch):
    from netmargin.homogeneity import scale_degree
    from netmargin.homogeneity.registry import RULES

    def crooked(trace, value):
        return scale_degree(trace.degree(value), 2)

    model = mlp([5, 7, 6, 3], bias="all")
    assert analyse(model, VECTOR).evidence is Evidence.DERIVED
    monkeypatch.setitem(RULES, "relu", crooked)
    assert analyse(model, VECTOR).evidence is Evidence.CONTRADICTED


class ZeroOnPositive(nn.Module):
    def forward(self, x):
        return torch.relu(-x)


@pytest.mark.parametrize("dead", ["there", "everywhere"])
def test_outputs_of_0_contradict_nothing(dead):
    """The exponents are checked where the outputs are not 0, if there is such a point."""
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), linear(8, 2)).double()
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(-1.0)
    if dead == "there":
        answer = analyse(model, VECTOR)
        assert (answer.kind, answer.order, answer.evidence) == (MULTI, 2, Evidence.DERIVED)
    else:
        answer = analyse(nn.Sequential(*model[:2], ZeroOnPositive()), VECTOR)
        assert "the outputs are 0 at all points" in answer.notes[-1]


@pytest.mark.parametrize("transform", ["fft", "fft2"])
def test_fourier_transforms_are_linear(transform):
    class Spectrum(nn.Module):
        def forward(self, x):
            return getattr(torch.fft, transform)(x).real

    answer = analyse(nn.Sequential(linear(5, 8), Spectrum(), linear(8, 2)), VECTOR)
    assert (answer.kind, answer.order) == (MULTI, 2)


def test_ignoring_biases_follows_the_paper():
    model = mlp([5, 7, 6, 3], bias="all")
    answer = analyse(model, VECTOR).ignoring_biases()
    assert (answer.kind, answer.order, answer.groups) == (MULTI, 3, {"0": 1, "2": 1, "4": 1})
    assert answer.ignored == ("2.bias", "4.bias")
    assert answer.members["0"] == ("0.weight", "0.bias")
    assert answer.check(model, VECTOR, seed=3).passed
    with pytest.raises(nm.NotHomogeneousError, match="tanh"):
        analyse(nn.Sequential(linear(5, 4), nn.Tanh(), linear(4, 2)), VECTOR).ignoring_biases()


def test_blockers_name_module_reason_and_replacement():
    model = nn.Sequential(linear(5, 4), nn.Sequential(nn.GELU(), linear(4, 2, bias=True)))
    found = {b.module: (b.reason, b.replacement) for b in analyse(model, VECTOR).blockers}
    assert found["1.0"][0].startswith("GELU")
    assert "ReLU" in found["1.0"][1]
    assert "'1.1.bias'" in analyse(
        nn.Sequential(linear(5, 4), linear(4, 2, True)), VECTOR
    ).blockers[0].reason.replace("1.b", "1.1.b")


@torch.library.custom_op("netmargin_tests::opaque", mutates_args=())
def opaque(x: Tensor) -> Tensor:
    """An operation that no rule covers; in truth 2-homogeneous."""
    return x * x.abs()


@torch.library.custom_op("netmargin_tests::opaque_shift", mutates_args=())
def opaque_shift(x: Tensor) -> Tensor:
    return x * x + 1.0


def test_unknown_operations_are_answered_numerically_or_not_at_all():
    model = Custom(lambda m, x: m.b(opaque(m.a(x))), a=linear(5, 4), b=linear(4, 2))
    answer = analyse(model, VECTOR)
    assert answer.evidence is Evidence.NUMERICAL
    assert (answer.kind, answer.groups) == (MULTI, {"a": 2, "b": 1})
    assert "opaque" in answer.notes[-1]
    report = nm.measure(model, (VECTOR, torch.arange(6) % 2))
    assert report.normalized_margin == pytest.approx(report.q_min / report.norm**3)
    shifted = analyse(
        Custom(lambda m, x: m.b(opaque_shift(m.a(x))), a=linear(5, 4), b=linear(4, 2)), VECTOR
    )
    assert (shifted.kind, shifted.groups) == (PARTIAL, {"b": 1})
    assert "opaque_shift follows no power" in shifted.blockers[0].reason
    mixed = analyse(
        Custom(lambda m, x: torch.cdist(m.a(x), m.b.weight) - 1, a=linear(5, 4), b=linear(4, 2)),
        VECTOR,
    )
    assert (mixed.kind, mixed.order) == (Kind.UNKNOWN, None)


def test_a_registered_rule_makes_an_operation_known():
    from netmargin.homogeneity import scale_degree
    from netmargin.homogeneity.registry import RULES

    rule("netmargin_tests::opaque")(lambda trace, value: scale_degree(trace.degree(value), 2))
    try:
        answer = analyse(
            Custom(lambda m, x: m.b(opaque(m.a(x))), a=linear(5, 4), b=linear(4, 2)), VECTOR
        )
    finally:
        del RULES["netmargin_tests::opaque"]
    assert (answer.evidence, answer.groups) == (Evidence.DERIVED, {"a": 2, "b": 1})


class Beside(nn.Module):
    """A homogeneous net that computes other numbers from its scores, as `beside` says."""

    def __init__(self, beside):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 5, bias=False)
        self.last, self.beside = nn.Linear(5, 3, bias=False), beside

    def forward(self, x):
        return self.beside(self.last(torch.relu(self.first(x))))


def test_operations_that_the_scores_do_not_depend_on_block_nothing():
    x = torch.randn(6, 3)
    beside = Beside(lambda h: {"logits": h, "logsumexp": h.logsumexp(1), "mean": h.tanh().mean()})
    found = nm.analyse(beside, x)
    assert (found.kind, found.order, found.blockers) == (nm.Kind.MULTI_HOMOGENEOUS, 2, ())
    y = beside(x)["logits"].argmax(1)
    assert nm.certify(beside, (x, y), progress=False).order == 2
    through = nm.analyse(Beside(lambda h: h - h.logsumexp(1, keepdim=True)), x)
    assert "log-sum-exp" in str(through.blockers)


@pytest.mark.parametrize(
    "branch",
    [lambda h: (h > 0.3).any(), lambda h: len((h > 0.3).nonzero()), lambda h: (h > 0.3).tolist()],
    ids=["number", "shape", "list"],
)
def test_operations_that_python_may_branch_on_count(branch):
    found = nm.analyse(Beside(lambda h: h if branch(h) else 2 * h), torch.randn(4, 3))
    assert "compares with a threshold" in str(found.blockers)


def test_what_leaves_the_graph_is_judged_numerically():
    by_number = Custom(lambda m, x: m.a(x) / m.a(x).abs().max().item(), a=linear(5, 4))
    answer = analyse(by_number, VECTOR)
    assert answer.evidence is Evidence.NUMERICAL
    assert answer.kind is Kind.UNKNOWN  # the outputs do not scale at all
    hidden = Custom(lambda m, x: m.a(x) * float(m.a.weight.detach().numpy()[0, 0]), a=linear(5, 4))
    answer = analyse(hidden, VECTOR)
    assert answer.kind is Kind.UNKNOWN or answer.order == 2
    assert answer.evidence is not Evidence.DERIVED


def test_weights_are_never_taken_for_biases():
    """Only what is added to features of the inputs may be ignored; W + B A is a sum of weights."""
    torch.manual_seed(0)
    low_rank = CASES["low-rank update of a weight"].make()
    with pytest.raises(nm.NotHomogeneousError):
        analyse(low_rank, VECTOR).ignoring_biases()
    assert nm.measure(low_rank, (VECTOR, torch.arange(6) % 2)).normalized_margin is None


def test_lazy_models_and_lists():
    with pytest.raises(nm.ModelError, match="lazy"):
        analyse(nn.LazyLinear(3), VECTOR)
    assert analyse(linear(2, 1), [[1.0, 2.0], [3.0, 4.0]]).order == 1
    assert analyse(linear(5, 1), VECTOR.double().numpy()).order == 1


def test_a_wrong_rule_is_caught_by_the_judge(monkeypatch):
    from netmargin.homogeneity.registry import RULES

    monkeypatch.setitem(RULES, "tanh", RULES["relu"])
    answer = analyse(nn.Sequential(linear(5, 4), nn.Tanh(), linear(4, 2)), VECTOR)
    assert (answer.kind, answer.evidence) == (Kind.UNKNOWN, Evidence.CONTRADICTED)


def test_analysis_leaves_the_model_alone():
    model = nn.Sequential(linear(5, 7), nn.BatchNorm1d(7), nn.Dropout(), linear(7, 3))
    before = {n: t.clone() for n, t in model.state_dict().items()}
    state = torch.get_rng_state()
    analyse(model, VECTOR)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_activation_module_of_the_models():
    assert analyse(nn.Sequential(linear(5, 4), ReLUPower(4)), VECTOR).order == 4
