"""Numerical checks of a loss e^{-f}: do its formulas agree, and does (B3) of Lyu and Li hold?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core.arguments import check_number
from ..core.saved_records import Record

_Loss = Any
"""A `Loss`, whose own file imports this one."""
_GRID_POINTS = 2000
"""Margins of the logarithmic grid from 1e-3 up; neighbours differ by 0.8% on the default range."""
_MONOTONE_SLACK = 1e-9
"""Relative fall of f'(q) q between neighbours that counts as rounding, cancellation included."""
_STEP = 1e-5
"""Relative step of central differences: near the cube root of float64's precision, which balances
their truncation and their rounding.
"""
_TOLERANCE = 1e-4
"""Relative error of a formula that counts as that of its central difference: about 1e-9 where f is
smooth, and more where it bends within a step; a wrong formula is off by far more.
"""
_INVERSE_TOLERANCE = 1e-6
"""Relative difference of g(f(q)) from q that counts as rounding on the grid: inverses lose digits
where f is flat. At the probes, which every loss has to pass, it is `_TOLERANCE`.
"""
_LEAST_GROWTH = 1.05
"""Least factor by which f'(q) q must grow over the last decade of margins to count as unbounded; a
numerical check cannot see a limit, and slower growth than this is not told from none.
"""
_BOUNDED_GROWTH = 1.5
"""Factor by which the largest slope ratio of the last third may exceed that before and still count
as bounded. Measured: 1.0 for every loss of the library; 4.2 for f = e^{sqrt q} and 8.0 for f =
e^{log(1 + q)^2}, which have no bound, up to q = 100.
"""
_PROBES = (0.37, 0.73, 1.9, 4.3, 11.3, 67.0)
"""Margins beyond b_f at which a loss is probed, and by their negatives below 0: of all sizes that
training meets, and no round numbers, where a loss in pieces would have its kinks.
"""


@dataclass(frozen=True)
class B3Report(Record):
    """The findings of a numerical check of (B3) on margins from `b_f` to `largest_q`.

    (B3.2), f' > 0, is required beyond b_f, where the proofs use it.
    """

    b_f: float
    b_g: float  # the smallest constant of (B3) on the tested range
    K: float  # that of (B3.4)
    largest_q: float
    violations: tuple[str, ...]  # one sentence for each part of (B3) that fails
    caveats: tuple[str, ...] = ()  # where f' > 0 fails below b_f, as for e^{-q^3} at 0

    @property
    def holds(self) -> bool:
        """Whether no part of (B3) was seen to fail on the tested range."""
        return not self.violations

    def __str__(self) -> str:
        if self.holds:
            constants = f"b_f = {self.b_f:g}, b_g = {self.b_g:g}, K = {self.K:.4g}"
            found = f"(B3) holds up to q = {self.largest_q:g} with {constants}"
            return "; ".join([found, *self.caveats])
        return "(B3) fails: " + "; ".join(self.violations)


def check_b3(loss: _Loss, largest_q: float) -> B3Report:
    """Check f' = df/dq, g = f^{-1}, and (B3.2) to (B3.4) on a logarithmic grid of this length."""
    largest_q = check_number("largest_q", largest_q, above=0)
    end = torch.log10(torch.tensor(largest_q, device="cpu")).item()
    q = loss.b_f + torch.logspace(-3, end, _GRID_POINTS, dtype=torch.float64, device="cpu")
    # The formulas first: where one is wrong, what follows from them says nothing of the loss.
    flaw, slope = _compare_formulas(loss, q, _INVERSE_TOLERANCE), loss.f_prime(q)
    violations = [flaw] if flaw else []
    if not (slope > 0).all():
        violations.append(f"(B3.2) f' is not positive at q = {_show_first(q, ~(slope > 0))}")
    violations += _find_flaws_of_growth(q, slope, largest_q)
    b_g, K, unbounded = _bound_slope_ratios(loss, q)
    violations += unbounded
    return B3Report(loss.b_f, b_g, K, largest_q, tuple(violations), _find_caveats(loss))


def _find_flaws_of_growth(q: Tensor, slope: Tensor, largest_q: float) -> list[str]:
    """Sentences where f'(q) q falls on the grid, or hardly grows at its end: (B3.3)."""
    violations = []
    product = slope * q
    falls = product[1:] < product[:-1] * (1 - _MONOTONE_SLACK)
    if falls.any():
        violations.append(
            f"(B3.3) f'(q) q decreases after q = {_show_first(q[:-1], falls)}; try a larger b_f"
        )
    late = q > largest_q / 10
    if not product[-1] > product[late][0] * _LEAST_GROWTH:
        violations.append(
            "(B3.3) f'(q) q does not tend to infinity: it grows less than 5% over the last decade"
            " of q"
        )
    return violations


def _bound_slope_ratios(loss: _Loss, q: Tensor) -> tuple[float, float, list[str]]:
    """The constants b_g and K of (B3.4) on the grid q, and a sentence where no K is in sight."""
    violations = []
    # (B3.4) asks for b_g >= max(2 f(b_f), f(2 b_f)), and for K at every theta in [1/2, 1).
    start = loss.f(torch.tensor([loss.b_f, 2 * loss.b_f], dtype=torch.float64, device="cpu"))
    b_g = max(2 * start[0].item(), start[1].item(), 0.0)
    theta = torch.linspace(0.5, 0.999, 40, dtype=torch.float64, device="cpu")[:, None]
    # One margin in ten is enough for a ratio that changes slowly, and costs a tenth.
    y = q[loss.f(q) > b_g][::10]
    if not len(y):
        return b_g, float("nan"), []
    x, K = loss.f(y), 1.0
    for text, ratios in (
        ("f'(y) <= K f'(theta y)", loss.f_prime(y) / loss.f_prime(theta * y)),
        ("g'(x) <= K g'(theta x)", loss.f_prime(loss.g(theta * x)) / loss.f_prime(loss.g(x))),
    ):
        ratio = ratios.amax(0)
        K = max(K, ratio.max().item())
        # Any finite grid has a largest ratio: that K is bounded shows in the ratio's not growing
        # any more at large margins.
        early, full = ratio[: 2 * len(ratio) // 3].max(), ratio.max()
        if not (torch.isfinite(full) and full <= _BOUNDED_GROWTH * early.clamp(min=1)):
            violations.append(
                f"(B3.4) no bounded K with {text}: it reached {full.item():.3g} and grows with q"
            )
    return b_g, K, violations


def _find_caveats(loss: _Loss) -> tuple[str, ...]:
    """A sentence where f' is not positive at a margin below b_f; nothing where it is."""
    negative = -torch.logspace(-3, 2, 200, dtype=torch.float64, device="cpu").flip(0)
    others = torch.linspace(0, loss.b_f, 50, dtype=torch.float64, device="cpu")
    below = torch.cat([negative, others])
    rising = loss.f_prime(below) > 0
    if rising.all():
        return ()
    where = _show_first(below, ~rising)
    return (f"but f' is not positive at q = {where}: only margins above that are covered",)


def find_flaw(loss: _Loss) -> str:
    """The first contradiction between f, f', g and log(-l') at a few margins, or ""."""
    probes = torch.tensor(_PROBES, dtype=torch.float64, device="cpu")
    return _compare_formulas(loss, torch.cat([loss.b_f + probes, -probes]), _TOLERANCE)


def _compare_formulas(loss: _Loss, q: Tensor, inverse_tolerance: float) -> str:
    """The first contradiction at the margins q, in one sentence, or ""."""
    # f may be undefined (NaN or infinite) at negative margins, where nothing is compared. g is
    # compared beyond b_f only.
    beyond = q > loss.b_f
    values = {}
    for name, function, points in (
        ("f", loss.f, q),
        ("f_prime", loss.f_prime, q),
        ("log_slope", loss.log_slope, q),
        ("g", lambda points: loss.g(loss.f(points)), q[beyond]),
    ):
        value = _evaluate(name, function, points)
        if isinstance(value, str):  # a function that cannot be evaluated makes the rest pointless
            return value
        values[name] = value
    f, f_prime, log_slope, of_g = values.values()
    inverse = q.clone()
    inverse[beyond] = of_g
    if (undefined := beyond & torch.isnan(f)).any():
        return f"f is NaN at margin {_show_first(q, undefined)}, beyond b_f = {loss.b_f:g}"
    step = _STEP * q
    slope = (loss.f(q + step) - loss.f(q - step)) / (2 * step)
    known = torch.isfinite(f) & torch.isfinite(slope)
    comparisons = {
        "f_prime": (f_prime, slope, known, "the difference quotient of f"),
        "log_slope": (log_slope, torch.log(f_prime) - f, known & (f_prime > 0), "log f' - f"),
        "g": (inverse, q, known & beyond, "the inverse of f"),
    }
    for name, (got, wanted, where, what) in comparisons.items():
        tolerance = inverse_tolerance if name == "g" else _TOLERANCE
        wrong = where & ~torch.isclose(got, wanted, rtol=tolerance, atol=_TOLERANCE**2)
        if wrong.any():
            point, given, right = (x[wrong][0].item() for x in (q, got, wanted))
            return (
                f"{name} is wrong at margin {point:.6g}: it gives {given:.6g}, and {what} there is"
                f" {right:.6g}"
            )
    # Last, since a wrong f' explains more than that f falls.
    if (falling := known & beyond & (slope < 0)).any():
        return (
            f"f falls at margin {_show_first(q, falling)}, so the loss e^{{-f}} would reward small"
            " margins; f must rise beyond b_f"
        )
    return ""


def _evaluate(name: str, function: Callable[[Tensor], Tensor], points: Tensor) -> Tensor | str:
    """The values of a caller's function, float64 of the shape of the points, or what is wrong."""
    try:
        value = function(points)
    except Exception as error:  # whatever the caller's own code raises
        return (
            f"{name} raised {type(error).__name__} on a float64 tensor of shape"
            f" {tuple(points.shape)}: {error}"
        )
    is_tensor = isinstance(value, Tensor)
    if is_tensor and value.shape == points.shape and value.dtype is torch.float64:
        return value
    shown = f"{value.dtype} of shape {tuple(value.shape)}" if is_tensor else type(value).__name__
    return (
        f"{name} must map a float64 tensor to a float64 tensor of the same shape, elementwise; it"
        f" returned {shown}"
    )


def _show_first(q: Tensor, where: Tensor) -> str:
    """The first margin where a condition holds, for a message."""
    return f"{q[where][0].item():.4g}"
