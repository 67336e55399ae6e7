"""Losses against mpmath, from log10-loss 1 down to -1e5."""

import mpmath
import pytest
import torch
from hypothesis import given, settings, strategies as st

from netmargin.losses import BY_NAME, Exponential, Logistic, Loss
from netmargin.margins import margins

mpmath.mp.dps = 80
TOLERANCE = 1e-12


def reference(name: str):
    """(l, -l', l^{-1}) of a loss in arbitrary precision."""
    power = 3 if "cubic" in name else 1

    def root(h):
        return mpmath.sign(h) * mpmath.root(abs(h), power)

    if name.startswith("exponential"):
        return (
            lambda q: mpmath.exp(-(q**power)),
            lambda q: power * q ** (power - 1) * mpmath.exp(-(q**power)),
            lambda loss: root(-mpmath.log(loss)),
        )
    return (
        lambda q: mpmath.log1p(mpmath.exp(-(q**power))),
        lambda q: power * q ** (power - 1) / (1 + mpmath.exp(q**power)),
        lambda loss: root(-mpmath.log(mpmath.expm1(loss))),
    )


def agree(value: float, exact, *, at_least: float = 0.0) -> bool:
    """Relative agreement; for a logarithm, `at_least` 1 makes it that of its argument."""
    return abs(mpmath.mpf(value) - exact) <= TOLERANCE * max(abs(exact), at_least)


def log10_losses(largest: float = 1.0, smallest: float = -1e5):
    return st.integers(int(smallest * 1e6), int(largest * 1e6)).map(
        lambda millionths: millionths / 1e6
    )


@st.composite
def margin_lists(draw, name: str):
    """Margins whose losses lie within 60 orders of magnitude below one between 10 and 1e-100000."""
    inverse = reference(name)[2]
    largest = draw(log10_losses())
    exponents = [largest, *draw(st.lists(log10_losses(largest, largest - 60), max_size=6))]
    return [float(inverse(mpmath.mpf(10) ** mpmath.mpf(e))) for e in exponents]


@pytest.mark.slow_cases("exponential-cubic")
@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_loss_and_weights_agree_with_mpmath(name, data):
    q = data.draw(margin_lists(name))
    loss, slope, _ = reference(name)
    exact = [mpmath.mpf(value) for value in q]
    assert agree(BY_NAME[name].log_sum(q), mpmath.log(mpmath.fsum(map(loss, exact))), at_least=1.0)
    slopes = [slope(value) for value in exact]
    total = mpmath.fsum(slopes)
    for weight, value in zip(BY_NAME[name].weights(q).tolist(), slopes, strict=True):
        assert agree(weight, value / total if total else mpmath.mpf(0), at_least=1e-300)


@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=40, deadline=None)
@given(log10=log10_losses())
def test_inverse_link_agrees_with_mpmath(name, log10):
    log_loss = log10 * 2.302585092994046
    assert agree(
        BY_NAME[name].inverse_link(log_loss), reference(name)[2](mpmath.exp(mpmath.mpf(log_loss)))
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_negative_margins_stay_finite_and_invert(name):
    loss = BY_NAME[name]
    for q in (-1e5, -40.0, -1.0, 0.0, 1e-8):
        assert loss.inverse_link(loss.log_sum([q])) == pytest.approx(q, rel=1e-9, abs=1e-5)
    weights = loss.weights([-1e5, -2.0, 3.0])
    assert torch.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] >= weights[1] >= weights[2]


@pytest.mark.parametrize("name", BY_NAME)
def test_f_prime_and_g_belong_to_f_and_assumption_b3_holds(name):
    report = BY_NAME[name].check_b3()
    assert report.holds, str(report)
    assert report.K >= 1


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (
            Loss(torch.log1p, lambda q: 1 / (1 + q), torch.expm1),
            "does not tend to infinity",
        ),  # polynomial tail
        (Loss(torch.exp, torch.exp, torch.log, b_f=0.1), "no bounded K"),  # double exponential tail
        (
            Loss(lambda q: q, lambda q: -torch.ones_like(q), lambda x: x),
            "f_prime is wrong",
        ),  # flipped sign
        (
            Loss(lambda q: -q, lambda q: -torch.ones_like(q), lambda x: -x),
            "not positive",
        ),  # increasing loss
        (Loss(lambda q: q, torch.ones_like, lambda x: 2 * x), "g is wrong"),
    ],
)
def test_b3_checker_rejects(broken, complaint):
    report = broken.check_b3(largest_q=500.0)
    assert not report.holds
    assert complaint in str(report)


def test_b3_checker_tells_what_happens_below_its_threshold():
    report = Exponential(3).check_b3()
    assert report.holds
    assert "not positive at q = 0" in str(report)
    assert not Exponential().check_b3().caveats


def test_user_loss_equals_the_built_in_one():
    user = Loss(lambda q: q**3, lambda q: 3 * q**2, lambda x: x ** (1 / 3), name="mine")
    q = [2.0, 2.5, 7.0]
    assert user.log_sum(q) == pytest.approx(Exponential(3).log_sum(q), rel=1e-15)
    assert torch.allclose(user.weights(q), Exponential(3).weights(q), rtol=1e-13)


def test_even_powers_are_refused():
    with pytest.raises(ValueError, match="odd"):
        Logistic(2)


def test_cross_entropy_is_the_logistic_loss_of_soft_margins():
    torch.manual_seed(0)
    scores, y = 5 * torch.randn(50, 7, dtype=torch.float64), torch.randint(7, (50,))
    _, soft = margins(scores, y)
    direct = torch.nn.functional.cross_entropy(scores, y, reduction="sum").log()
    assert BY_NAME["cross-entropy"].log_sum(soft) == pytest.approx(direct.item(), rel=1e-13)


def test_smoothed_margin_sandwich():
    """Lyu and Li 2019, Lemma A.5: g(log 1/Loss) <= q_min, with equality for one sample."""
    q = torch.tensor([4.0, 4.5, 9.0], dtype=torch.float64)
    for loss in BY_NAME.values():
        assert loss.inverse_link(loss.log_sum(q)) < 4.0
        assert loss.inverse_link(loss.log_sum(q[:1])) == pytest.approx(4.0, rel=1e-13)
