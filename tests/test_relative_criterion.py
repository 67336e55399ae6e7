"""The relative loss in own loops: exact where the loss underflows, else one of torch's modules."""

import copy
import math

import mpmath
import pytest
import torch

import netmargin as nm

mpmath.mp.dps = 60


def exact(scores, y, log_scale):
    """The mean cross-entropy over e^F and its gradient in the scores, in mpmath."""
    rows = [[mpmath.mpf(v) for v in row] for row in scores.tolist()]
    n, total, gradient = len(rows), mpmath.mpf(0), []
    factor = mpmath.exp(-mpmath.mpf(log_scale)) / n
    for row, label in zip(rows, y.tolist(), strict=True):
        others = [mpmath.exp(v - row[label]) for j, v in enumerate(row) if j != label]
        total += mpmath.log1p(mpmath.fsum(others))
        sizes = [mpmath.exp(v - row[label]) / (1 + mpmath.fsum(others)) for v in row]
        sizes[label] = -mpmath.fsum(others) / (1 + mpmath.fsum(others))
        gradient.append([factor * v for v in sizes])
    return factor * total, gradient


@pytest.mark.parametrize("log10", [-1, -30, -400, -800, -5000])
@pytest.mark.parametrize("classes", [2, 4])
def test_value_and_gradient_against_mpmath(log10, classes):
    generator = torch.Generator().manual_seed(classes)
    y = torch.arange(6) % classes
    scores = torch.randn(6, classes, generator=generator, dtype=torch.float64)
    scores += -log10 * 2.302585 * torch.nn.functional.one_hot(y, classes)
    scores.requires_grad_()
    criterion = nm.RelativeLoss()
    criterion(scores.detach(), y)
    value = criterion(scores, y)
    value.backward()
    wanted, gradient = exact(scores.detach(), y, criterion.log_scale)
    # Scores of size 1e4 are given to 1e-16 of that, and F is one number of that size.
    assert value.item() == pytest.approx(float(wanted), rel=1e-11)
    assert 0 < value.item() < 10
    for found, row in zip(scores.grad.tolist(), gradient, strict=True):
        assert found == pytest.approx([float(v) for v in row], rel=1e-11)


def test_one_output_is_the_logistic_loss():
    scores = torch.tensor([800.0, -700.0], dtype=torch.float64, requires_grad=True)
    criterion = nm.RelativeLoss()
    for labels in (torch.tensor([1, 0]), torch.tensor([1, -1])):
        scores.grad = None
        nm.RelativeLoss()(scores, labels).backward()
        assert scores.grad[1] == pytest.approx(1.0)
    assert criterion.log_loss is None


def test_in_range_it_is_torchs_loss_over_the_scale():
    torch.manual_seed(0)
    scores = torch.randn(8, 5, dtype=torch.float64, requires_grad=True)
    y = torch.arange(8) % 5
    criterion = nm.RelativeLoss()
    criterion.rescale(-1.25)
    criterion(scores, y).backward()
    ours, scores.grad = scores.grad, None
    (torch.nn.functional.cross_entropy(scores, y) * math.exp(1.25)).backward()
    assert torch.allclose(ours, scores.grad, rtol=1e-12)


@pytest.mark.slow
def test_training_goes_on_past_underflow():
    torch.manual_seed(0)
    X = torch.tensor([[2.0, 1.0], [-1.0, -2.0], [1.0, 3.0]], dtype=torch.float64)
    y = torch.tensor([1, 0, 1])
    net = torch.nn.Linear(2, 1, bias=False).double()
    criterion = nm.RelativeLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=2.0)
    for _ in range(500):
        optimizer.zero_grad()
        criterion(net(X), y).backward()
        optimizer.step()
        criterion.rescale()
    report = nm.measure(net, (X, y))
    assert report.log10_mean_loss < -800
    # The largest margin of directions: 3 / sqrt(2), of the first two samples.
    assert report.normalized_margin == pytest.approx(3 / 2**0.5, rel=1e-3)


def test_the_first_scale_is_that_of_a_net_that_knows_nothing():
    criterion = nm.RelativeLoss()
    criterion(torch.tensor([[5.0, 0, 0]]), torch.tensor([1]))  # worse than log 3
    assert criterion.log_scale == pytest.approx(0.09404782761, abs=1e-10)  # log log 3
    criterion = nm.RelativeLoss("exponential")
    criterion(torch.tensor([-50.0]), torch.tensor([1]))
    assert criterion.log_scale == 50.0  # its slope grows with it


def test_the_scale_is_the_mean_over_the_epoch_and_evaluation_does_not_count():
    scores = [torch.tensor([[a, 0.0]], dtype=torch.float64) for a in (3.0, 700.0)]
    zero = torch.tensor([0])
    criterion = nm.RelativeLoss()
    for part in scores:
        criterion(part, zero)
    first = criterion.log_scale
    criterion.eval()
    criterion(torch.tensor([[-50.0, 0.0]]), zero)
    criterion.train()
    assert criterion.log_scale == first
    wanted = torch.nn.functional.cross_entropy(torch.cat(scores), torch.tensor([0, 0])).log()
    assert criterion.rescale() == pytest.approx(wanted.item(), rel=1e-12)
    with pytest.raises(nm.ArgumentError, match="there were none"):
        criterion.rescale()


def test_a_first_batch_in_evaluation_sets_no_scale():
    net, zero = torch.nn.Linear(1, 2, bias=False), torch.tensor([0])
    criterion = nm.RelativeLoss().eval()
    criterion(torch.tensor([[900.0, 0.0]], dtype=torch.float64), zero)  # the loss is e^-900
    assert criterion.log_scale is None
    criterion.train()
    criterion(net(torch.ones(1, 1)), zero).backward()
    assert criterion.log_scale == pytest.approx(math.log(math.log(2)), abs=1.0)
    assert torch.isfinite(net.weight.grad).all()


def test_its_state_survives_also_in_half_precision():
    criterion = nm.RelativeLoss()
    criterion(torch.tensor([[12345.678, 0.0]], dtype=torch.float64), torch.tensor([0]))
    model = torch.nn.ModuleDict({"criterion": criterion}).half()
    fresh = torch.nn.ModuleDict({"criterion": nm.RelativeLoss()})
    fresh.load_state_dict(copy.deepcopy(model.state_dict()))
    assert fresh["criterion"].log_scale == criterion.log_scale == -12345.678
    unused = nm.RelativeLoss()
    unused.load_state_dict(nm.RelativeLoss().state_dict())
    assert unused.log_scale is None


def test_gradients_have_the_type_of_the_scores():
    scores = torch.zeros(2, 3, requires_grad=True)
    value = nm.RelativeLoss()(scores, [0, 1])
    (3 * value).backward()
    assert scores.grad.dtype == torch.float32
    assert value.dtype == torch.float64
    assert scores.grad[0, 0] == pytest.approx(3 * -(2 / 3) / 2 / 1.0986123, rel=1e-6)


@pytest.mark.parametrize(
    ("scores", "y", "error", "sentence"),
    [
        (torch.zeros(2, 3), [0], nm.ModelError, "Scores must have shape"),
        (torch.zeros(2, 3), [0, 3], nm.DataError, "class indices 0 to 2"),
        (torch.zeros(2, 3), 1, nm.DataError, "one label per sample"),
        (torch.tensor([[float("nan"), 0.0]]), [0], nm.NonFiniteOutputError, "sample 0"),
        ("scores", [0], nm.ModelError, "returned str"),
    ],
)
def test_bad_batches(scores, y, error, sentence):
    with pytest.raises(error, match=sentence):
        nm.RelativeLoss()(scores, y)


def test_a_loss_far_above_its_scale_is_divergence():
    criterion = nm.RelativeLoss()
    criterion.rescale(-2000.0)
    with pytest.raises(nm.DivergenceError, match="overflows.*rescale"):
        criterion(torch.tensor([[1.0, 0.0]]), [0])


def train_on_digits(rate, *, adam=False, shrinking=False, epochs=300):
    """A criterion after training a net of two layers on 100 digits in batches of 25."""
    X, y = nm.datasets.digits(limit=100)
    torch.manual_seed(0)
    net, criterion = nm.models.mlp([64, 32, 10]), nm.RelativeLoss()
    optimizer = (torch.optim.Adam if adam else torch.optim.SGD)(net.parameters(), lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(25):
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows]).backward()
            optimizer.step()
        scale = criterion.rescale()
        if shrinking:
            optimizer.param_groups[0]["lr"] = rate / max(1.0, -scale)
    return criterion


@pytest.mark.parametrize("rate", [0.2, 0.05])
def test_a_net_that_too_long_steps_wreck_is_divergence(rate):
    with pytest.raises(nm.DivergenceError, match="The mean loss jumped to"):
        train_on_digits(rate)


@pytest.mark.slow
def test_noise_of_sgd_is_no_jump():
    """Adam, SGD by the rule, labels that no net explains, and scales that follow single samples."""
    assert train_on_digits(1e-3, adam=True, epochs=100).log_scale < -3
    assert train_on_digits(0.02, shrinking=True, epochs=150).log_scale < -1
    generator = torch.Generator().manual_seed(0)
    criterion = nm.RelativeLoss()
    for _ in range(200):
        # One of ten labels is wrong, at a loss of 20: means of four samples are 1e-9 to 10.
        gaps = torch.where(torch.rand(4, generator=generator) < 0.1, -20.0, 20.0)
        criterion(torch.stack([gaps, torch.zeros(4)], 1), torch.zeros(4, dtype=torch.long))
        criterion.rescale()


def test_a_jump_is_of_an_epoch_and_is_forgotten_with_a_scale_of_ones_own():
    def epoch(criterion, gap):
        rows = torch.full((40,), float(gap))
        criterion(torch.stack([rows, torch.zeros(40)], 1), torch.zeros(40, dtype=torch.long))
        return criterion

    criterion = epoch(nm.RelativeLoss(), 20)
    criterion.rescale()
    epoch(criterion, -0.5)  # a loss of .97, and log 2 is .69
    fresh = nm.RelativeLoss()
    fresh.load_state_dict(criterion.state_dict())
    with pytest.raises(nm.DivergenceError, match="knows nothing has 0.69"):
        criterion.rescale()
    with pytest.raises(nm.DivergenceError):
        epoch(fresh, -0.5).rescale()
    assert epoch(criterion, -0.5).rescale(0.0) == 0.0
    epoch(criterion, -0.5).rescale()
    assert epoch(criterion, 1).rescale() == pytest.approx(math.log(math.log1p(math.exp(-1))))


def test_bad_arguments():
    with pytest.raises(nm.ArgumentError, match="loss must be"):
        nm.RelativeLoss("hinge")
    with pytest.raises(nm.ArgumentError, match="log_mean_loss"):
        nm.RelativeLoss().rescale(float("nan"))
