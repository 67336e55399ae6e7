"""Claims of Lyu and Li 2019 on the rates of gradient flow, and on how losses grow."""

import math

import numpy as np
import torch

from ..ledger.claim import claim
from ..ledger.points import inverse_slope
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._instances import EXPONENTIAL, LOSSES, PAPER, Start, log_growth, run_flow


@claim(
    "lyu-li/rates",
    "L^2 gamma~_0^{2/L} t <= G(1/Loss) <= B_1^2 gamma~_0^{2/L-2} S^2 t at every time t, G(z) = int"
    " g'(log u)^2 g(log u)^{2/L-2} du from 1/Loss_0, S the largest f'(B_0 g(x) / gamma~_0) g'(x),"
    " which is 1 for the exponential loss; so Loss = Theta(g(log t)^{2/L} / (t (log t)^2)) and rho"
    " = Theta(g(log t)^{1/L}), g(x) about x or x^{1/3}",
    source=f"{PAPER}, Theorems 4.3, A.7 (3) and A.10, Corollary A.11, Lemma B.6 and their proofs",
    hypotheses=(
        "exponential, logistic, e^{-q^3}, log(1 + e^{-q^3}); Loss_0 below l(b_f), L = 1, 2, 3 in"
        " turn, for L = 1 one sample, for which both bounds are attained, else from 10% noise on a"
        " margin ascent; exponents by regression over log t from 100 to 700, 95% intervals within"
        " 0.2 of the claim, where gamma~ rises by 20% at most meanwhile"
    ),
    tolerance=1e-5,
    because=(
        "error of the integrator (1e-6 a step) where the bounds are attained, relative in log t"
    ),
    trials=(3, 9),
    ascent=0,
)
def rates(
    trial: Trial, *, lower: float = 1.0, upper: float = 1.0, exponent: float = 0.0
) -> Finding:
    L, loss = 1 + trial.number % 3, LOSSES[trial.number % 4]
    alone = L == 1
    start = Start.drawn(
        trial, power=L - 1, samples=1 if alone else 4, width=4, layers=min(L, 2), loss=loss
    )
    if alone:
        with torch.no_grad():
            next(start.net.parameters()).copy_(1.2 * start.y * start.x / start.x.square().sum())
    else:
        start.move_near_optimum(trial, 0.1, loss)
    # Exponents and bounds with room are the same to three digits at a thousandth of the accuracy.
    flow = run_flow(start, -300.0, loss, rtol=1e-6 if alone else 1e-3)
    rows = [flow.rows[0], *flow.rows[1 :: max(len(flow.rows) // 200, 1)]]
    k = getattr(loss, "power", 1) * L  # f is about q^{k / L}
    gamma, depth = rows[0]["smoothed_margin"], np.array([-row["log_loss"] for row in rows[1:]])
    log_t = np.array([row["log_time"] for row in rows[1:]])
    log_G = log_growth(loss, L, -rows[0]["log_loss"], depth)
    x = torch.tensor([-row["log_loss"] for row in rows])
    B_0, B_1 = start.bounds.value, start.bounds.gradient
    S = (loss.f_prime(B_0 / gamma * loss.g(x)) * inverse_slope(loss, x)).max().item()
    below = math.log(lower * L**2 * gamma ** (2 / L)) + log_t - log_G
    above = log_G - math.log(upper * (B_1 * S) ** 2 * gamma ** (2 / L - 2)) - log_t
    late = log_t > 100  # exponents are those of the limit; early times bend the lines
    lines = depth - log_t, np.log([r["norm"] for r in rows[1:]])
    fits = [slope(np.log(log_t[late]), line[late]) for line in lines]
    off = [fits[0].off(2 - 2 / k + exponent) - 0.2, fits[1].off(1 / k + exponent) - 0.2]
    margins = np.array([row["smoothed_margin"] for row in rows[1:]])[late]
    if margins[-1] > 1.2 * margins[0]:
        off = []  # a margin that still grows bends both lines
    measured = (
        f"Loss ~ 1 / (t log(t)^{fits[0].value:.3f} +- {fits[0].error:.3f}) (claim {2 - 2 / k:.3f}),"
        f" rho ~ log(t)^{fits[1].value:.3f} (claim {1 / k:.3f})"
    )
    relative = [(gap / log_t)[log_t > 0] for gap in (below, above)]
    where = f"{loss.name} loss, flow to log10-loss -300, L = {L}"
    room = {"lower": math.exp(-below.max()), "upper": math.exp(-above.max())}
    return Finding.of_one(np.concatenate([*relative, off]), where, measured, **room)


@claim(
    "lyu-li/loss-growth",
    "with (B3.4)'s K, x / (2 K) <= g(x) / g'(x) <= 2 K x and y / (2 K) <= f(y) / f'(y) <= 2 K y"
    " from b_g on, so that f and g grow like powers from 1 / (2 K) to 2 K; and G(e^x) is between (4"
    " K^2)^-1 g(x / 2)^{2/L} int du / (log u)^2 from e^{x/2} and 4 K^2 g(x)^{2/L} int du /"
    " (log u)^2 from e^{b_g} to e^x: so G(z) z^-1 (log z)^2 g(log z)^{-2/L} and G^-1(y) y^-1 (log"
    " y)^-2 g(log y)^{2/L} are bounded",
    source=f"{PAPER}, Lemmas D.1 and D.4, Corollaries D.2 and D.3 with their proofs",
    hypotheses=(
        "exponential, logistic, e^{-q^3}, log(1 + e^{-q^3}) with the K and b_g that `check_b3`"
        " finds, b_g at least 1, where G begins; L from 1 to 4; x up to 1e4; the two quotients stay"
        " within a factor of 4 of their values at x = 1e4 from x = 100 on"
    ),
    tolerance=1e-8,
    because="Simpson's rule, in logarithms",
    trials=(4, 16),
    ascent=10,
)
def loss_growth(trial: Trial, *, K_factor: float = 1.0, exponent: float = 2.0) -> Finding:
    loss, L = LOSSES[trial.number % 4], 1.0 + trial.number // 4 % 4
    report = loss.check_b3()
    K, b_g = K_factor * report.K, max(report.b_g, 1.0)
    x = torch.logspace(math.log10(2 * b_g + 2), 4, 200, dtype=torch.float64)
    y = loss.g(x)
    shares = [y / inverse_slope(loss, x) / x, x / loss.f_prime(y) / y]
    spread = torch.cat([part.log().abs() for part in shares]).numpy() - math.log(2 * K)
    log_x, log_g = x.log().numpy(), y.log().numpy()
    # Corollaries D.2 and D.3, as slopes of log g against log x between any two of the grid.
    slopes = np.abs(np.log(np.diff(log_g) / np.diff(log_x))) - math.log(2 * K)
    z = x.numpy()
    log_G = log_growth(loss, L, b_g, z)
    inner = log_growth(EXPONENTIAL, math.inf, b_g, z)  # int du / (log u)^2
    half = np.array([log_growth(EXPONENTIAL, math.inf, v / 2, np.array([v]))[0] for v in z])
    low = -math.log(4 * K**2) + 2 / L * loss.g(x / 2).log().numpy() + half - log_G
    high = log_G - math.log(4 * K**2) - 2 / L * log_g - inner
    quotient = log_G - z + exponent * log_x - 2 / L * log_g
    y_ = torch.from_numpy(log_G)
    inverse = (
        z - log_G - exponent * np.log(np.maximum(log_G, 1.0)) + 2 / L * loss.g(y_).log().numpy()
    )
    far = z > 100
    bounded = [np.abs((part - part[-1])[far]) - math.log(4) for part in (quotient, inverse)]
    found, where = np.concatenate([spread, slopes, low, high, *bounded]), f"{loss.name} loss"
    most = max(spread.max(), slopes.max(), low.max() / 2, high.max() / 2)  # there K is squared
    return Finding.of(found, f"{where}, L = {L:g}, K = {report.K:.3g}", K=math.exp(-most))
