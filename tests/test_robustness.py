"""Radii against exact distances, brute force, themselves under scaling, and bad input."""

import copy
import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin import models
from netmargin.cli import main
from netmargin.core.progress import Progress
from netmargin.radii import batch_radii
from netmargin.radii.lipschitz import _bound_by_fourier, operator_norm
from tests.chains import score_lipschitz


def radii(net, data, **options):
    return nm.robustness(net, data, progress=False, **({"effort": "quick"} | options))


@pytest.fixture(scope="module")
def digits_net():
    """A net that is 100% right on 200 digits."""
    torch.manual_seed(0)
    net, data = models.mlp([64, 32, 10]), nm.datasets.digits(limit=200)
    nm.train(net, data, until=nm.LogLossBelow(-2), progress=False)
    return net, data


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_linear_nets_are_exact(outputs):
    """Both radii are the distance to the nearest of the hyperplanes between classes."""
    torch.manual_seed(outputs)
    net, X = nn.Linear(6, outputs).double(), torch.randn(60, 6).double()
    y = torch.randint(max(outputs, 2), (60,))
    with torch.no_grad():
        z, W = net(X), net.weight
        if outputs == 1:
            exact = ((2 * y - 1) * z[:, 0] / W.norm()).clamp(min=0)
        else:
            gaps = z.gather(1, y[:, None]) - z
            exact = (
                (gaps / (W[y][:, None] - W).norm(dim=2)).nan_to_num(torch.inf).amin(1).clamp(min=0)
            )
    report = radii(net, (X, y))
    assert 0 < report.accuracy < 1
    np.testing.assert_allclose(report.lower, exact, rtol=1e-6)
    np.testing.assert_allclose(report.upper, exact, rtol=1e-6)
    assert (report.lower <= report.upper).all()


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(4, 6, 3, stride=2, bias=False), nn.LeakyReLU(0.2), nn.AvgPool2d(1), nn.Flatten(), nn.Linear(6, 10),
    )  # fmt: skip


NETS = {
    "mlp": lambda: models.mlp([64, 32, 10]),
    "mlp with biases": lambda: models.mlp([64, 24, 16, 10], bias="all"),
    "binary": lambda: models.mlp([64, 16, 1], bias="all"),
    "convolutions, pools, batch norm": cnn,
    "tanh": lambda: nn.Sequential(nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10)),
}


@pytest.mark.nightly_cases("binary", "tanh")
@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_lower_is_below_upper(name):
    """On 500 samples of five nets, and no sample is given up."""
    torch.manual_seed(1)
    net, (X, y) = NETS[name](), nm.datasets.digits(limit=500)
    y = y % 2 if name == "binary" else y
    nm.train(net, (X, y), until=nm.Epochs(25), lr=nm.ConstantLR(0.2), batch_size=20, progress=False)
    report = radii(net, (X, y), box=(0, 1), batch_size=250)
    assert report.n == 500
    assert report.accuracy > 0.7
    assert not report.no_lower
    assert report.not_found == 0
    right = report.q > 0
    assert (report.lower <= report.upper).all()
    assert (report.lower[right] > 0).all()
    assert (report.upper[~right] == 0).all()


@pytest.mark.nightly_cases("0.001")
@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_size_of_the_parameters_does_not_matter(digits_net, factor):
    net, (X, y) = digits_net
    scaled = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in scaled.parameters():
            parameter *= factor
    first, second = (radii(n, (X[:40], y[:40]), box=(0, 1)) for n in (net, scaled))
    np.testing.assert_allclose(second.upper, first.upper, rtol=1e-4)
    np.testing.assert_allclose(second.lower, first.lower, rtol=1e-4)


@pytest.mark.nightly_cases("1")
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_two_dimensions_by_a_grid(seed):
    """Within 1% of the nearest misclassified grid point, and none within a certified radius."""
    torch.manual_seed(seed)
    X, y = torch.rand(30, 2) * 2 - 1, torch.randint(3, (30,))
    net = models.mlp([2, 16, 16, 3], bias="all")
    nm.train(net, (X, y), until=nm.Epochs(200), batch_size=10, progress=False)
    report = radii(net, (X, y), box=(-1, 1))
    line = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    with torch.no_grad():
        classes = net.double()(torch.cartesian_prod(line, line)).argmax(1).reshape(2001, 2001)
    checked = 0
    for x, label, lower, upper in zip(X.double(), y, report.lower, report.upper, strict=True):
        # Points that are farther than the attack's are not looked at.
        first, second = ((line - end).abs() <= 1.02 * upper + 0.05 for end in x)
        wrong = (classes[first][:, second] != label).flatten()
        points = torch.cartesian_prod(line[first], line[second])[wrong]
        exact = (points - x).norm(dim=1).amin().item()
        if upper > 0:
            assert lower <= exact + 1e-9
            if exact > 0.1:  # a hundred steps of the grid
                assert abs(upper / exact - 1) < 0.01
                checked += 1
    assert checked >= 8


def test_norms_of_convolutions():
    """Written out, the largest singular value; by Fourier transform, above it, not by much."""
    torch.manual_seed(0)
    for layer, shape in (
        (nn.Conv2d(3, 5, 3, padding=1).double(), (1, 3, 9, 9)),
        (nn.Conv2d(4, 6, (3, 5), stride=2, groups=2).double(), (1, 4, 11, 11)),
        (nn.Conv2d(2, 2, 4, padding=3, dilation=2).double(), (1, 2, 12, 12)),
    ):
        units = torch.eye(int(np.prod(shape)), dtype=torch.float64).reshape(-1, *shape[1:])
        with torch.no_grad():
            exact = torch.linalg.matrix_norm(
                (layer(units) - layer(torch.zeros(shape).double())).flatten(1), 2
            ).item()
        assert abs(operator_norm([layer], torch.zeros(shape).double()) / exact - 1) < 1e-8
        assert exact <= _bound_by_fourier(layer) < 1.6 * exact


def test_lipschitz_constants_of_a_pool_that_overlaps():
    """An input in four windows: moving it moves four outputs."""
    net = nn.Sequential(nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(4, 1, bias=False)).double()
    with torch.no_grad():
        net[2].weight.fill_(1.0)
    x = torch.zeros(1, 1, 3, 3).double()
    x[..., 1, 1] = 1.0  # all four outputs are 1
    assert net(x).item() == 4
    assert score_lipschitz(net, x).item() >= 4  # moved by 1, this input changes the score by 4


def test_nets_that_never_change_their_mind():
    """Nothing is found: infinite, counted and shown, never 0."""
    net = models.mlp([2, 3, 2], bias="all")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net[0].weight.fill_(1e-3)
        net[2].bias[1] = 1.0
    report = radii(net, ([[1.0, 0.0], [0.0, 1.0]], [1, 0]))
    assert report.upper.tolist() == [np.inf, 0.0]
    assert report.not_found == 1
    told = " ".join(report.summary().split())
    assert "no flip is found for 1 sample" in told
    assert "proved by Lipschitz constant for 1 sample, misclassified for 1 sample" in told
    assert report.to_dict()["upper"] == [None, 0.0]
    assert report.curve([0.0, 100.0])["attacked"].tolist() == [0.5, 0.5]


def test_nets_without_a_lipschitz_constant():
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x[:, 0] * x[:, 1] * self.weight.sum()

    report = radii(
        Product(), ([[1.0, 2.0], [-1.0, 1.0]], [1, -1])
    )  # from the second, gradients lead to a saddle
    assert report.lower.tolist() == [0, 0]
    assert "'mul' in the model's forward does not take" in report.no_lower
    np.testing.assert_allclose(report.upper, [1, 1], rtol=1e-3)


def test_bad_input(digits_net, tmp_path, monkeypatch):
    net, (X, y) = digits_net
    X, y = X[:4], y[:4]
    for box in ((1, 0), (0,), (0, float("nan")), "01x", (0, float("inf"))):
        with pytest.raises(nm.DataError, match="box must be a pair"):
            radii(net, (X, y), box=box)
    with pytest.raises(
        nm.DataError,
        match=r"4 of 4 inputs lie outside the box \[0, 0.5\]: their values go from 0 to 1",
    ):
        radii(net, (X, y), box=(0, 0.5))
    with pytest.raises(nm.ArgumentError, match="attacks must be True or False; got .*walk"):
        radii(net, (X, y), attacks=("walk",))
    with pytest.raises(nm.DataError, match="NaN"):
        radii(net, (X * float("nan"), y))
    report = radii(net, (X, y))
    assert (report.lower > 0).all()
    assert (report.upper < np.inf).all()
    assert set(report.found_by) == {"walk"}


@pytest.mark.nightly_cases("box1")
@pytest.mark.slow
@pytest.mark.parametrize("box", [None, (0, 1)])
def test_the_inputs_that_were_found_are_kept(digits_net, tmp_path, monkeypatch, box):
    """Every one is misclassified in float64, in the box, and as far as the upper radius says."""
    net, (X, y) = digits_net
    X, y = X[:12], y[:12].clone()
    y[3] = (y[3] + 1) % 10  # misclassified: its own nearest input
    options = {"box": box, "effort": "standard", "batch_size": 5}
    report = radii(net, (X, y), **options)
    flips = torch.from_numpy(report.flips)
    assert flips.shape == X.shape
    assert torch.equal(flips[3], X[3].double())
    with torch.no_grad():
        z = copy.deepcopy(net).double()(flips)
    own = z.gather(1, y[:, None])
    assert (z.scatter(1, y[:, None], -torch.inf).amax(1, keepdim=True) >= own).all()
    np.testing.assert_allclose((flips - X).norm(dim=1), report.upper, rtol=1e-12)
    assert box is None or (flips.min() >= 0 and flips.max() <= 1)
    assert np.array_equal(nm.load(report.save(tmp_path / "radii.zip")).flips, report.flips)
    # Of many large inputs the first ones are kept, and none where nothing is looked for.
    monkeypatch.setattr(batch_radii, "_KEPT_NUMBERS", 7 * 64)
    assert np.array_equal(radii(net, (X, y), **options).flips, flips[:7])
    assert radii(net, (X, y), attacks=False).flips is None


@pytest.mark.slow
def test_command_line(digits_net, tmp_path, capsys):
    net, _ = digits_net
    torch.save(net.state_dict(), tmp_path / "net.pt")
    torch.save(models.mlp([64, 32, 10]).state_dict(), tmp_path / "untrained.pt")
    (tmp_path / "make.py").write_text(
        "from netmargin import models\ndef net(): return models.mlp([64, 32, 10])\n"
    )
    sys.path.insert(0, str(tmp_path))
    options = "--factory make:net --data digits --limit 20 --quiet"

    def run(words: str, files: str = "net.pt") -> int:
        saved = " ".join(str(tmp_path / file) for file in files.split())
        return main(f"robustness {saved} {options} {words}".split())

    assert run(f"--box 0 1 --out {tmp_path / 'radii'}") == 0
    assert "the answer stays up to, median" in capsys.readouterr().out
    assert (tmp_path / "radii/robustness.png").stat().st_size > 5000
    assert (tmp_path / "radii/radii-0.csv").read_text().count("\n") == 21
    both = f"--certified-only --json --out {tmp_path / 'both'}"
    assert run(both, "net.pt untrained.pt") == 0
    trained, untrained = json.loads(capsys.readouterr().out)
    assert trained["normalized_margin"] > 0 > untrained["normalized_margin"]
    assert trained["median_lower"] > untrained["median_lower"] > 0  # of those that are right
    assert run("", "net.pt net.pt") == 2
    assert "named twice" in capsys.readouterr().err
    assert run("--box -1 0.5") == 1
    assert "20 of 20 inputs lie outside the box [-1, 0.5]" in capsys.readouterr().err
    assert run(f"--certified-only --out {tmp_path / 'certified'}") == 0
    assert "attack" not in capsys.readouterr().out
    sys.path.remove(str(tmp_path))


class Wider(nn.Sequential):
    """A Sequential with a forward of its own."""

    def forward(self, x):
        return x + 10 * super().forward(x)


class Louder(nn.Linear):
    def forward(self, x):
        return 10 * super().forward(x)


REFUSED = {
    "a jump": lambda: nn.Sequential(nn.Linear(4, 4), nn.Softplus(threshold=0), nn.Linear(4, 2)),
    "a hook": lambda: hooked(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))),
}


def hooked(net: nn.Module) -> nn.Module:
    net[0].register_forward_hook(lambda module, inputs, outputs: 10 * outputs)
    return net


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_certified_that_is_not_a_chain(name):
    torch.manual_seed(0)
    report = radii(REFUSED[name](), (torch.randn(20, 4), torch.arange(20) % 2), attacks=False)
    assert report.no_lower
    assert (report.lower == 0).all()


@pytest.mark.parametrize("kind", [Wider, Louder])
def test_subclasses_are_read_by_their_own_forward(kind):
    """x + 10 max(W x + b, 0), and 10 (W x + b): beside layers that say the same."""
    torch.manual_seed(0)
    inner, last = nn.Linear(4, 4), nn.Linear(4, 2)
    zero = torch.zeros(1, 4).double()
    if kind is Louder:
        own, same = nn.Sequential(Louder(4, 4), nn.ReLU(), last), nn.Linear(4, 4)
        own[0].load_state_dict(inner.state_dict())
        same.load_state_dict({key: 10 * value for key, value in inner.state_dict().items()})
        constants = score_lipschitz(
            nn.Sequential(same, nn.ReLU(), last).double(), torch.zeros(1, 4).double()
        )
    else:
        own = nn.Sequential(Wider(inner, nn.ReLU()), last)
        rows, size = last.weight.double(), torch.linalg.matrix_norm(inner.weight.double(), 2)
        constants = (rows[:, None] - rows).norm(dim=2) * (1 + 10 * size)
    found = score_lipschitz(own.double(), zero)
    assert found[0, 1].item() == pytest.approx(constants[0, 1].item(), rel=1e-6)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(1, 1, 1, padding=16, padding_mode="circular"), (1, 1, 64, 64)),
        (nn.AvgPool2d(2, divisor_override=1), (1, 1, 160, 160)),
    ],
)
def test_large_layers_without_a_bound(layer, shape):
    """Repeated inputs and sums are not shrunk: too large to be written out, they are refused."""
    with pytest.raises(nm.ModelError, match="no bound is known"):
        operator_norm([layer.double()], torch.zeros(shape).double())


@pytest.mark.slow
def test_squares_of_slopes_do_not_underflow():
    torch.manual_seed(0)
    net, X, y = models.mlp([4, 3, 2]).double(), torch.randn(50, 4).double(), torch.arange(50) % 2
    found = [radii(net, (X, y))]
    for factor in (2.0**-300, 2.0**300):
        scaled = copy.deepcopy(net)
        with torch.no_grad():
            for parameter in scaled.parameters():
                parameter *= factor
        found.append(radii(scaled, (X, y)))
    plain, small, large = found
    for scaled in (small, large):
        np.testing.assert_allclose(scaled.lower, plain.lower, rtol=1e-9)
    # Neither is searched by regions, as their scores are beyond exact sums; powers of 2 round nothing.
    np.testing.assert_allclose(small.upper, large.upper, rtol=1e-12)
    np.testing.assert_allclose(small.upper, plain.upper, rtol=0.05)


def test_shapes_and_types(digits_net):
    """Scores of shape (N,), whole numbers, rounded inputs at the box's edge, boxes as arrays."""
    torch.manual_seed(0)
    net, X = (
        nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(0)),
        torch.randint(5, (12, 3)),
    )
    y = torch.where(net(X.float()) > 0, 1, 0)
    report = radii(net, (X, y), box=np.array([0, 4]))
    assert (report.lower > 0).all()
    assert (report.lower <= report.upper).all()
    net, (X, y) = digits_net
    assert radii(net, (X[:5] * (1 + 1e-7), y[:5]), box=(0, 1), attacks=False).box[
        1
    ] == pytest.approx(1)
    with pytest.raises(nm.DataError, match="single numbers"):
        radii(
            nn.Sequential(nn.Unflatten(0, (-1, 1)), nn.Linear(1, 1)),
            (torch.randn(5), torch.ones(5)),
        )


class Mean(nn.Module):
    def forward(self, x):
        return x.double().mean(1)


class OneHot(nn.Module):
    def forward(self, x):
        return nn.functional.one_hot(x, 7).double().flatten(1)


@pytest.mark.parametrize("first", ["embedding", "bag", "one-hot", "by name"])
def test_tokens_are_refused_by_name(first):
    """Nets that take whole numbers as such; others take them as floats, an embedding or not."""
    torch.manual_seed(0)
    X, y = torch.randint(7, (12, 4)), torch.arange(12) % 2
    nets = {
        "embedding": nn.Sequential(nn.Embedding(7, 5), Mean(), nn.Linear(5, 2)),
        "bag": nn.Sequential(nn.EmbeddingBag(7, 5), nn.Linear(5, 2)),
        "one-hot": nn.Sequential(OneHot(), nn.Linear(28, 2)),
        "by name": ByName(),
    }
    data = {"input_ids": X, "labels": y} if first == "by name" else (X, y)
    with pytest.raises(nm.DataError, match=r"tokens: they cannot be moved.*nm\.input_margins"):
        radii(nets[first].double(), data)
    plain = nn.Linear(4, 2)
    plain.table = nn.Embedding(7, 5)  # not used
    assert np.array_equal(radii(plain, (X, y)).upper, radii(plain, (X.double(), y)).upper)
    with pytest.raises(nm.DataError, match=r"shape \(2, 3\).*its first layer expects"):
        radii(plain, (X[:, :3], y))  # what fails either way says why it fails as floats


class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 2)

    def forward(self, input_ids):
        return self.table(input_ids).mean(1)


def test_linear_nets_in_a_box():
    """Where the box matters: the attacked radius is that of the quadratic program."""
    from scipy.optimize import minimize

    torch.manual_seed(0)
    net, X = nn.Linear(5, 1).double(), torch.rand(8, 5).double() ** 4  # many values near 0
    with torch.no_grad():
        net.bias.fill_(-net(X).median().item())
        y = torch.sign(net(X)[:, 0])
        weight, bias = net.weight[0].numpy(), net.bias.item()
    report = radii(net, (X, y), box=(0, 1))
    for x, sign, upper in zip(X.numpy(), y.tolist(), report.upper, strict=True):
        constraint = {"type": "ineq", "fun": lambda z, sign=sign: -sign * (z @ weight + bias)}
        found = minimize(
            lambda z, x=x: ((z - x) ** 2).sum(),
            x,
            bounds=[(0, 1)] * 5,
            constraints=[constraint],
            options={"ftol": 1e-11},
        )
        assert found.success
        assert abs(upper / found.fun**0.5 - 1) < 1e-4


def test_medians_are_of_the_samples_that_are_right():
    net = nn.Linear(2, 1, bias=False)
    net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    report = nm.robustness(net, ([[1.0, 0], [0, 2.0], [-1.0, 0]], [1, 1, 1]), progress=False)
    said = report.summary()
    assert "a flip is found at, median      1.1 " in said
    assert "2 of 2 samples" in said
    assert report.to_dict()["median_upper"] == pytest.approx(1.1, rel=1e-3)
    assert 1.09 < report.to_dict()["median_lower"] <= 1.1
    alone = nm.robustness(net, ([[1.0, 0]], [1]), progress=False).summary()
    assert alone.startswith("Radii of 1 sample\n")
    assert "The radii of a wrong sample are 0" in said


def test_progress_says_how_many_samples_are_done_and_the_time_left(digits_net, monkeypatch, capsys):
    """Within a batch, too, which is often all there is; the share that is done never falls."""
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", -1.0)
    shares, draw = [], Progress.draw

    def watch(self, done, left, line, aside=""):
        if self._shown and self._part is None:
            shares.append((done, done + left))
        draw(self, done, left, line, aside)

    monkeypatch.setattr(Progress, "draw", watch)
    net, (X, _) = digits_net
    torch.manual_seed(0)
    pooled = nn.Sequential(
        nn.Unflatten(1, (1, 64)), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(32, 10)
    )
    for model, effort, seen in ((net, "standard", "5 done"), (pooled, "quick", "attack, walk 9")):
        own = model(X[:12].to(next(model.parameters()).dtype)).argmax(1)
        nm.robustness(model, (X[:12], own), effort=effort, batch_size=6)
        lines = capsys.readouterr().err.splitlines()
        assert any(
            line.startswith("robustness: samples 1 to 6 of 12") and seen in line and " left" in line
            for line in lines
        ), lines
        assert any(line.startswith("robustness: samples 7 to 12 of 12") for line in lines)
        done, total = np.array(shares).T
        assert (np.diff(done) >= 0).all()
        assert len(set(done)) > 4
        assert np.allclose(total, 12)
        shares.clear()
