"""The loss's own multipliers, and how near to a KKT point they are proved to be (Lemma C.8)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..core import logspace
from ..losses import Exponential, Logistic
from ..margins import soft_margins
from ..nets.shared import join_shares
from .problem import Problem, inner_product, norm_of


class LossMultipliers(NamedTuple):
    """The multipliers of Lemma C.8, in numbers."""

    alignment: float  # the cosine between theta and -grad(loss); NaN where the gradient is 0
    delta: float  # the largest lambda (s - 1)
    bound: float | None  # the lemma's bound of delta, or None where its hypotheses fail


def measure_loss_multipliers(problem: Problem) -> LossMultipliers:
    """Measure the multipliers of Lemma C.8 at theta~.

    They are proportional to the slopes of the loss at theta itself, and scaled so that their
    combination of gradients has length ||theta~||. At theta a gap is q_min times that at theta~.

    Derivation of the bound: with M constraints and weights w = -l'(s) (times the softmax), the
    lemma's proof gives sum lambda (s~ - 1) <= gamma~^{-2/L} / L * sum w (s - q_min) g'(x) / (g(x)
    Loss), x = log 1/Loss. Let f(q) be a function of h = q^p. As p q^{p-1} (q - q_min) <= p (h -
    h_min), w (s - q_min) sums to at most (M - 1) p e^{-h_min} / e; e^{-h_min} <= Loss for the
    exponential loss and <= e^Loss - 1 for the logistic loss, whose own g / g' leaves e^Loss. As g /
    g' has a factor p too, none is left: the bound is that of p = 1 with g(x)^p for g(x).

    Of another loss, w (s - q_min) <= Loss R v e^{-v}, v = f(s) - f(q_min), R the largest f'(s) /
    f'(r) for q_min <= r <= s: by (B3.4) at most K to the power of log2(q_max / q_min), rounded up,
    with the K that `check_b3` measures.
    """
    q_min, log_loss, loss = problem.report.q_min, problem.report.log_loss, problem.loss
    heaviest = 0.0

    # Weights are relative to the whole loss: at a loss of 1e-1000 the slopes themselves underflow.
    def weigh(gaps: Tensor) -> Tensor:
        nonlocal heaviest
        s = q_min * gaps
        q = soft_margins(s)
        weights = torch.exp(loss.log_slope(q) - log_loss)[:, None]
        if s.shape[1] > 1:
            weights = weights * torch.exp(q[:, None] - s)
        terms = (weights * (gaps - 1)).where(torch.isfinite(gaps), 0.0)
        heaviest = max(heaviest, terms.max().item())
        return weights

    gradient = problem.constraints.loss_gradient(weigh)
    heaviest = max(join_shares(lambda: heaviest))
    length = norm_of(gradient)
    if not (length > 0 and math.isfinite(length)):
        return LossMultipliers(math.nan, math.nan, None)
    alignment = inner_product(problem.target, gradient) / (problem.norm * length)
    return LossMultipliers(
        min(alignment, 1.0), heaviest * problem.norm / length, _bound_delta(problem)
    )


def _bound_delta(problem: Problem) -> float | None:
    """Compute the bound that `measure_loss_multipliers` derives, where its hypotheses hold."""
    report, loss = problem.report, problem.loss
    smoothed = loss.inverse_link(report.log_loss)
    if not smoothed > 0:
        return None
    power = getattr(loss, "power", 0) if isinstance(loss, (Exponential, Logistic)) else 0
    if problem.constraints.outputs > 1 and power != 1:
        return None  # the softmax does not go with s^p
    if power:
        by_logistic = isinstance(loss, Logistic)
        rising = math.exp(min(math.exp(report.log_loss), 1.0)) if by_logistic else 1.0
        depth = smoothed**power
    else:
        facts = loss.check_b3()
        if not facts.holds or loss.f(report.q.min()) <= facts.b_g:
            return None
        doublings = math.ceil(math.log2(report.q.max().item() / report.q_min))
        x = -logspace.as_float64(report.log_loss)
        rising, depth = facts.K**doublings, smoothed * loss.f_prime(loss.g(x)).item()
    # gamma~ rho^L = l^{-1}(Loss), so gamma~^{-2/L} is (||theta~|| (q_min / l^{-1}(Loss))^{1/L})^2.
    squared = problem.norm**2 * logspace.scaled_ratio(
        1.0, 2 / problem.order * math.log(smoothed / report.q_min)
    )
    return (problem.constraints.count - 1) * rising * squared / (math.e * problem.order * depth)
