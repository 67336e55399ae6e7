"""KKT certificates against explicit Jacobians, closed forms and convex optima."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch import nn
from torch.nn import functional as F

import netmargin as nm
from netmargin import solvers
from netmargin.kkt import certification, multipliers as multipliers_module
from netmargin.kkt.certificate import Completeness
from netmargin.models import mlp, mnist_cnn
from netmargin.nets.gates import Gates
from netmargin.nets.gradients import SampleGradients, StoredGradients
from netmargin.nets.model import float64_copy
from tests.test_sound_certificates import flat, jacobian, labelled, made_feasible
from tests.words import words_of


def separated_problem(seed: int):
    """A net with random weights and labels that it gives itself: every margin is positive."""
    torch.manual_seed(seed)
    if seed % 3 == 2:
        net, X = mnist_cnn(channels=(2, 3), hidden=6), torch.rand(6, 1, 28, 28)
    else:
        net = mlp([4, 9, 6, 1 if seed % 3 else 4])
        X = torch.randn(int(torch.randint(1, 15, ())), 4)
        net[0].bias.data.normal_()
    net = net.double()
    return net, *labelled(net, X.double(), clear=1e-6)


@pytest.mark.slow_cases("8", "5", "11", "14")
@pytest.mark.parametrize("seed", range(15))
def test_equals_nonnegative_least_squares_on_the_jacobian(seed):
    net, X, y = separated_problem(seed)
    certificate = nm.certify(net, (X, y))
    report = nm.measure(net, (X, y))
    outputs = net(X)
    loss = (
        F.softplus(-y * outputs[:, 0]).sum()
        if outputs.shape[1] == 1
        else F.cross_entropy(outputs, y, reduction="sum")
    )
    downhill = -torch.cat(
        [g.reshape(-1) for g in torch.autograd.grad(loss, list(net.parameters()))]
    )
    theta = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    assert certificate.alignment == pytest.approx(
        (theta @ downhill / theta.norm() / downhill.norm()).item(), abs=1e-9
    )
    made_feasible(net, report.q_min, float(report.order))
    (J, values, keys), theta = jacobian(net, X, y), flat(net)
    best, epsilon = nnls(J.T, theta, maxiter=10_000)
    assert certificate.epsilon == pytest.approx(epsilon, rel=1e-8, abs=1e-8)
    assert certificate.epsilon_lower <= certificate.epsilon * (1 + 1e-12)
    assert certificate.epsilon_lower == pytest.approx(epsilon, rel=1e-5, abs=1e-5)
    ours = dict(
        zip(
            map(tuple, certificate.constraints.tolist()),
            certificate.multipliers.tolist(),
            strict=True,
        )
    )
    found = np.array([ours.get(key, 0.0) for key in keys])
    assert J.T @ found == pytest.approx(J.T @ best, abs=1e-8 * np.linalg.norm(theta))
    if np.linalg.matrix_rank(J) == len(J):  # otherwise several multipliers are best
        assert found == pytest.approx(best, abs=1e-8 * max(best.max(), 1))
        assert certificate.delta == pytest.approx((best * (values - 1)).max(), abs=1e-7)
    assert certificate.norm == pytest.approx(np.linalg.norm(theta))
    assert certificate.trade_off(certificate.loss_delta) <= certificate.loss_epsilon * (1 + 1e-9)
    relative = certificate.to_dict()["relative_loss_epsilon"]
    assert relative * certificate.norm == pytest.approx(certificate.loss_epsilon)
    said = f"relative epsilon {relative:.4g}, delta {certificate.loss_delta:.4g}"
    assert said in words_of(certificate.summary())


def test_linear_optimum_is_certified_and_its_multipliers_are_the_dual():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.3])
    best = solvers.linear_max_margin(X, y, tol=1e-9)
    net = nn.Linear(4, 1, bias=False).double()
    net.weight.data[0] = torch.from_numpy(best.weights)
    certificate = nm.certify(net, (X, y))
    assert certificate.relative_epsilon < 1e-8
    shares = np.zeros(30)
    shares[certificate.constraints[:, 0].numpy()] = certificate.multipliers.numpy()
    assert shares / shares.sum() == pytest.approx(best.dual, abs=1e-6)
    assert nm.tangent_svm(net, (X, y)).cosine == pytest.approx(1.0, abs=1e-9)
    net.weight.data[0] *= torch.tensor([1.0, -1.0, 1.0, 1.0])  # a flipped sign is no KKT point
    with pytest.raises(nm.NotSeparatedError):
        nm.certify(net, (X, y))


def test_convex_optimum_of_two_layer_nets_is_a_kkt_point_within_a_radius():
    """XOR: four neurons on no kink; out of balance they are one of the product margin alone."""
    X, y = [[1.0, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1]
    net = solvers.f1_max_margin(X, y, bias=False).to_network()
    assert nm.certify(net, (X, y)).relative_epsilon < 1e-9
    net[0].weight.data *= 3
    assert nm.certify(net, (X, y)).relative_epsilon > 0.1
    assert nm.certify(net, (X, y), norm="layers").relative_epsilon < 1e-9


def test_subgradients_within_a_radius_lower_epsilon_on_a_kink():
    """f = relu(w . x) with w . x_2 = 0 up to 1e-9: the KKT point needs both sides of the kink."""
    X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]], [1, -1, 1]
    best = solvers.f1_max_margin(X, y, bias=False)
    net = best.to_network()
    sharp, wide = nm.certify(net, (X, y)), nm.certify(net, (X, y), radius=1e-2)
    assert sharp.relative_epsilon > 0.1
    assert sharp.kink_share is None
    assert wide.relative_radius_epsilon < 1e-2
    with torch.no_grad():
        z = net[0](torch.tensor(X, dtype=torch.float64)[wide.support])
    assert (
        wide.kink_share == ((z.abs() <= 1e-2 * z.square().mean().sqrt()).double().mean()).item() > 0
    )


@pytest.mark.parametrize("call", [nm.certify, nm.tangent_svm])
def test_a_radius_is_a_share_below_1(call):
    """From 1 on the origin is within, where any net has gradients that make it a KKT point."""
    net, X, y = separated_problem(1)
    with pytest.raises(nm.ArgumentError, match=r"share of the norm of the weights, .* below 1"):
        call(net, (X, y), radius=1.0)


@pytest.mark.parametrize("seed", [1, 4])
def test_delta_within_a_radius_adds_up_the_multipliers_of_a_constraint(seed, monkeypatch):
    """By hand, from the multipliers of all gradients; at radius 0 it is delta itself."""
    net, X, y = separated_problem(seed)
    found, search = [], certification.within_radius
    monkeypatch.setattr(
        certification, "within_radius", lambda *a, **k: found.append(search(*a, **k)) or found[0]
    )
    wide, sharp = nm.certify(net, (X, y), radius=0.3), nm.certify(net, (X, y))
    made_feasible(net, wide.q_min, wide.order)
    _, values, keys = jacobian(net, X, y)
    gaps = dict(zip(keys, values.tolist(), strict=True))
    near, columns = found[0].near, found[0].columns
    lambdas = dict.fromkeys(gaps, 0.0)
    constraints = list(zip(near.samples.tolist(), near.classes.tolist(), strict=True))
    for owner, weight in zip(columns._owners, columns._weights, strict=True):
        lambdas[constraints[owner]] += weight
    assert wide.epsilon == sharp.epsilon > wide.radius_epsilon == columns.epsilon
    assert wide.radius_delta == pytest.approx(max(lambdas[k] * (gaps[k] - 1) for k in gaps))
    assert (sharp.radius_epsilon, sharp.radius_delta) == (sharp.epsilon, sharp.delta)


def test_windows_prove_what_they_leave_out(monkeypatch):
    """Few constraints at first: more come in until the rest are proved not to matter."""
    torch.manual_seed(0)
    net = mlp([10, 20, 3]).double()
    data = X, _ = labelled(net, torch.randn(300, 10, dtype=torch.float64), clear=0.5)
    whole = nm.certify(net, data)
    assert whole.completeness is Completeness.ALL
    monkeypatch.setattr("netmargin.kkt.constraint_search._INITIAL_CONSTRAINTS", 10)
    part = nm.certify(net, data, tol=0.02, max_constraints=len(X))
    assert part.completeness is Completeness.PROVED
    assert part.epsilon_lower <= whole.epsilon <= part.epsilon <= whole.epsilon + 0.02 * whole.norm
    cut = nm.certify(net, data, max_constraints=5)
    assert cut.completeness is Completeness.OPEN
    assert cut.epsilon_lower <= whole.epsilon * (1 + 1e-9) <= cut.epsilon * (1 + 2e-9)


def test_partial_norm_counts_only_what_scales():
    """BatchNorm in evaluation mode: the gradient in what does not scale must vanish as well."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1, bias=False)
    ).double()
    net(torch.randn(50, 3, dtype=torch.float64))
    net.eval()
    X = torch.randn(6, 3, dtype=torch.float64)
    y = torch.where(net(X)[:, 0] > 0, 1, -1)
    with pytest.raises(nm.NotHomogeneousError):
        nm.certify(net, (X, y))
    certificate = nm.certify(net, (X, y), norm="partial")
    report = nm.measure(net, (X, y))
    assert certificate.order == float(report.homogeneity.order) == 2
    counted = [net[1].weight, net[1].bias, net[3].weight]
    made_feasible(net, report.q_min, 2, counted)
    (J, values, _), theta = jacobian(net, X, y), flat(net, counted)
    assert values.min() == pytest.approx(1.0)
    assert certificate.norm == pytest.approx(np.linalg.norm(theta))
    assert certificate.epsilon == pytest.approx(nnls(J.T, theta, maxiter=10_000)[1], rel=1e-8)
    assert (
        np.linalg.norm(theta)
        > certificate.epsilon
        > nnls(J.T * (theta != 0)[:, None], theta, maxiter=10_000)[1] * 1.01
    )


def test_identical_constraints_share_a_multiplier():
    net, X, y = separated_problem(1)
    once = nm.certify(net, (X, y))
    twice = nm.certify(net, (torch.cat([X, X]), torch.cat([y, y])))
    assert twice.epsilon == pytest.approx(once.epsilon, rel=1e-9)
    assert twice.multipliers.sum() == pytest.approx(once.multipliers.sum().item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_nets_are_certified_at_their_own_parameters(dtype):
    net, X, _ = separated_problem(0)
    low = mlp([4, 9, 6, 4])
    low.load_state_dict(net.state_dict())
    low = low.to(dtype)
    same = mlp([4, 9, 6, 4]).double()
    same.load_state_dict(low.state_dict())
    outputs = same(X).detach()
    a, b = nm.certify(low, (X, outputs.argmax(1))), nm.certify(same, (X, outputs.argmax(1)))
    assert a.epsilon == b.epsilon


def test_bad_input():
    net, X, y = separated_problem(1)
    with pytest.raises(nm.NotSeparatedError, match=f"{len(X)} of {len(X)} samples"):
        nm.certify(net, (X, -y))
    with torch.no_grad():
        net[-1].weight.zero_()
    with pytest.raises(nm.NotSeparatedError, match="not positive"):
        nm.certify(net, (X, y))
    biased = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)).double()
    y = torch.where(biased(X)[:, 0] > 0, 1, -1)
    with pytest.raises(nm.NotHomogeneousError, match="2.bias"):
        nm.certify(biased, (X, y))
    with pytest.raises(ValueError, match="norm must be"):
        nm.certify(net, (X, y), norm="l1")
    with torch.no_grad():
        biased[2].bias.zero_()
    y = torch.where(biased(X)[:, 0] > 0, 1, -1)
    assert nm.certify(biased, (X, y)).relative_epsilon <= 1


def test_a_broken_sign_is_noticed(monkeypatch):
    """The residual is recomputed: multipliers of a wrong problem show as a large epsilon."""
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data[:] = 1.0
    data = ([[2.0, 0.0], [0.0, -2.0]], [1, -1])
    assert nm.certify(net, data).epsilon < 1e-12
    monkeypatch.setattr(
        "netmargin.kkt.constraint_search.multipliers",
        lambda G, c: multipliers_module.multipliers(G, 0.5 * c),
    )
    assert nm.certify(net, data).relative_epsilon > 0.4


@pytest.mark.parametrize("net", [mlp([6, 40, 30, 3]), mnist_cnn(channels=(4, 6), hidden=64)])
def test_sample_gradients_equal_autograd(net, monkeypatch):
    twin = float64_copy(net)
    x = torch.rand((5, 6) if isinstance(net[0], nn.Linear) else (5, 1, 28, 28), dtype=torch.float64)
    weights = torch.randn(5, twin(x).shape[1], dtype=torch.float64)
    rows = [
        torch.autograd.grad(twin(x[k : k + 1])[0] @ weights[k], list(twin.parameters()))
        for k in range(5)
    ]
    J = torch.stack([torch.cat([g.reshape(-1) for g in row]) for row in rows])
    source = SampleGradients(twin, [n for n, _ in twin.named_parameters()], x)
    direction = {n: torch.randn_like(p) for n, p in twin.named_parameters()}
    flat = torch.cat([d.reshape(-1) for d in direction.values()])
    for chunk, held in ((200, 10**9), (2, 0)):
        source.chunk = chunk
        monkeypatch.setattr("netmargin.nets.gradients._NUMBERS_HELD", held)
        stored = StoredGradients(source, x, weights)
        assert torch.allclose(stored.inner(), J @ J.T, rtol=1e-12, atol=1e-14)
        assert torch.allclose(stored.along(direction), J @ flat, rtol=1e-12, atol=1e-14)
    whole = source(x, weights).combination(torch.arange(5.0).double(), direction)
    assert torch.allclose(
        torch.cat([whole[n].reshape(-1) for n in direction]), torch.arange(5.0).double() @ J
    )


def test_gates_record_and_replace_relus():
    net, x = mlp([3, 4, 2]).double(), torch.randn(6, 3, dtype=torch.float64)
    with Gates() as own:
        free = net(x)
    with Gates([z > 0 for z in own.inputs]) as fixed:
        assert torch.equal(net(x), free)
    assert torch.equal(fixed.inputs[0], own.inputs[0])
    with Gates([torch.zeros_like(own.inputs[0], dtype=torch.bool)]):
        assert (net(x) == 0).all()


class Tied(nn.Module):
    """A dense layer whose weight is also used outside of its module."""

    def __init__(self, how: str):
        super().__init__()
        self.first, self.last = nn.Linear(4, 40, bias=False), nn.Linear(40, 40, bias=False)
        self.how = how

    def forward(self, x):
        h = self.last(torch.relu(self.first(x)))
        if self.how == "cosine":
            return h[:, :2] / self.last.weight.norm()
        return F.linear(torch.relu(h), self.last.weight.T)[:, :2]


@pytest.mark.parametrize(("how", "norm"), [("tied", "global"), ("cosine", "partial")])
def test_weights_used_twice(how, norm):
    """The gradient of such a layer is no outer product (found by review: a wrong epsilon)."""
    torch.manual_seed(0)
    net = Tied(how).double()
    X = torch.randn(8, 4, dtype=torch.float64)
    y = net(X).argmax(1)
    certificate = nm.certify(net, (X, y), norm=norm)
    counted = [net.first.weight] if how == "cosine" else list(net.parameters())
    made_feasible(net, nm.measure(net, (X, y)).q_min, 1 if how == "cosine" else 3, counted)
    J, theta = jacobian(net, X, y)[0], flat(net, counted)
    assert certificate.epsilon == pytest.approx(nnls(J.T, theta, maxiter=10_000)[1], rel=1e-7)


@pytest.mark.slow
def test_a_long_certificate_shows_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", -1)
    torch.manual_seed(0)
    net, X = mlp([4, 12, 3]), torch.randn(300, 4)
    data = (X, net(X).argmax(1))
    nm.certify(net, data, max_constraints=40, tol=1e-6, radius=1e-3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "certify: its first constraints"
    assert any(
        line.startswith("certify: 40 of 600 constraints, epsilon / norm 0.")
        and line.endswith("0:00:00 left")
        for line in lines
    )
    assert "gradients within the radius, epsilon / norm" in lines[-1]
    nm.certify(net, data, progress=False)
    assert not capsys.readouterr().err


def test_explained_refusals_of_modules():
    X = 0.3 * torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    normalized = nn.Sequential(
        nn.Linear(4, 16, bias=False),
        nn.LayerNorm(16, elementwise_affine=False),
        nn.ReLU(),
        nn.Linear(16, 2),
    )
    normalized[3].bias = None
    y = normalized(X).argmax(1)
    with pytest.raises(nm.NotHomogeneousError, match="1e-05 is not negligible"):
        nm.certify(normalized, (0.1 * X, y))
    with pytest.raises(nm.ModelError, match="eps of normalization"):
        nm.certify(normalized, (X, y))
    ascent = nm.maximize_margin(
        normalized, (X, y), temperatures=(0.1,), iterations=5, progress=False
    )
    assert ascent.certificate is None
    assert "no certificate" in ascent.message
    folded = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)).eval()
    for net in (folded, nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2, bias=False))):
        with pytest.raises(nm.NotHomogeneousError, match=r'norm="partial": in \d the net'):
            nm.certify(net, (X, net(X).argmax(1)))
    with pytest.raises(nm.ModelError, match="lazy"):
        nm.certify(nn.Sequential(nn.LazyLinear(2)), (X, y))
    with pytest.raises(ValueError, match="max_constraints"):
        nm.tangent_svm(mlp([4, 5, 2]), (X, y), max_constraints=0)
