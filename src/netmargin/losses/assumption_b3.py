"""Numerical check of assumption (B3) of Lyu and Li 2019 on a loss l(q) = e^{-f(q)}."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.arguments import check_number
from ..core.saved_records import Record

_GRID_POINTS = 2000
"""Margins of the logarithmic grid from 1e-3 up; neighbours differ by 0.8% on the default range."""
_MONOTONE_SLACK = 1e-9
"""Relative fall of f'(q) q between neighbours that counts as rounding, cancellation included."""
_PROBE_STEP = 1e-5
"""Relative step of central differences: near the cube root of float64's precision, which balances
their truncation and their rounding.
"""
_DERIVATIVE_TOLERANCE, _LEAST_DERIVATIVE = 1e-4, 1e-8
"""Relative and absolute difference from a central difference that counts as its error: about 1e-10
where f is smooth, and more where it bends within a step; a wrong formula is off by far more.
"""
_INVERSE_TOLERANCE = 1e-6
"""Relative difference of g(f(q)) from q that counts as rounding: inverses lose digits where f is
flat.
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
_PROBE_TOLERANCE = 1e-4
"""Relative. Central differences in float64 are good to about 1e-9 there; a wrong formula is off by
far more.
"""


@dataclass(frozen=True)
class B3Report(Record):
    """The findings of a numerical check of (B3) on margins up to `largest_q`.

    (B3.2), f' > 0, is required beyond b_f, where the proofs use it.

    Attributes
    ----------
    b_f : float
        The margin beyond which (B3) was checked, as given.
    b_g : float
        The smallest usable constant b_g of (B3).
    K : float
        The smallest constant K of (B3.4) on the tested range.
    largest_q : float
        The largest margin that was tested.
    violations : tuple of str
        One sentence for each part of (B3) that fails.
    caveats : tuple of str
        Where f' > 0 fails below b_f, as for e^{-q^3} at 0.
    """

    b_f: float
    b_g: float
    K: float
    largest_q: float
    violations: tuple[str, ...]
    caveats: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no part of (B3) was seen to fail on the tested range."""
        return not self.violations

    def __str__(self) -> str:
        if self.holds:
            constants = f"b_f = {self.b_f:g}, b_g = {self.b_g:g}, K = {self.K:.4g}"
            return "; ".join(
                [f"(B3) holds up to q = {self.largest_q:g} with {constants}", *self.caveats]
            )
        return "(B3) fails: " + "; ".join(self.violations)


def check_b3(
    f: Callable[[Tensor], Tensor],
    f_prime: Callable[[Tensor], Tensor],
    g: Callable[[Tensor], Tensor],
    b_f: float,
    *,
    largest_q: float,
) -> B3Report:
    """Check f' = df/dq, g = f^{-1}, and (B3.2) to (B3.4) on a logarithmic grid.

    Parameters
    ----------
    f : callable
        The function f of the loss e^{-f}, elementwise on float64 tensors.
    f_prime : callable
        Its derivative, of the same kind.
    g : callable
        Its inverse, of the same kind.
    b_f : float
        The margin from which the grid starts; at least 0.
    largest_q : float
        The length of the grid.

    Returns
    -------
    B3Report
        Constants, and what fails: evidence on the grid, not a proof.

    Raises
    ------
    ArgumentError
        If b_f is negative or largest_q is not positive.

    Source: Lyu and Li 2019, assumption (B3).
    """
    b_f, largest_q = (
        check_number("b_f", b_f, at_least=0),
        check_number("largest_q", largest_q, above=0),
    )
    q = b_f + torch.logspace(
        -3, torch.log10(torch.tensor(largest_q)).item(), _GRID_POINTS, dtype=torch.float64
    )
    slope, violations = f_prime(q), []

    # The formulas first: where one is wrong, what follows from them says nothing of the loss.
    step = _PROBE_STEP * q
    difference = (f(q + step) - f(q - step)) / (2 * step)
    agrees = torch.isclose(difference, slope, _DERIVATIVE_TOLERANCE, _LEAST_DERIVATIVE)
    if not agrees.all():
        violations.append(f"f' is not the derivative of f near q = {_show_first(q, ~agrees)}")
    inverted = torch.isclose(g(f(q)), q, rtol=_INVERSE_TOLERANCE)
    if not inverted.all():
        violations.append(f"g is not the inverse of f near q = {_show_first(q, ~inverted)}")
    if not (slope > 0).all():
        violations.append(f"(B3.2) f' is not positive at q = {_show_first(q, ~(slope > 0))}")

    violations += _find_flaws_of_growth(q, slope, largest_q)
    b_g, K, unbounded = _bound_slope_ratios(f, f_prime, g, b_f, q)
    violations += unbounded
    return B3Report(b_f, b_g, K, largest_q, tuple(violations), _find_caveats(f_prime, b_f))


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


def _bound_slope_ratios(
    f: Callable[[Tensor], Tensor],
    f_prime: Callable[[Tensor], Tensor],
    g: Callable[[Tensor], Tensor],
    b_f: float,
    q: Tensor,
) -> tuple[float, float, list[str]]:
    """The constants b_g and K of (B3.4) on the grid q, and a sentence where no K is in sight."""
    violations = []
    # (B3.4) asks for b_g >= max(2 f(b_f), f(2 b_f)), and for K at every theta in [1/2, 1).
    start = torch.tensor([b_f, 2 * b_f], dtype=torch.float64)
    f_start = f(start)
    b_g = max(2 * f_start[0].item(), f_start[1].item(), 0.0)
    theta = torch.linspace(0.5, 0.999, 40, dtype=torch.float64)[:, None]
    # One margin in ten is enough for a ratio that changes slowly, and costs a tenth.
    y = q[f(q) > b_g][::10]
    x = f(y)
    ratios = [
        _maximize_slope_ratio(f_prime, y, theta),
        _maximize_slope_ratio(lambda v: 1 / f_prime(g(v)), x, theta),
    ]
    K = 1.0 if len(y) else float("nan")
    for text, ratio in (
        zip(("f'(y) <= K f'(theta y)", "g'(x) <= K g'(theta x)"), ratios, strict=True)
        if len(y)
        else ()
    ):
        K = max(K, ratio.max().item())
        # Any finite grid has a largest ratio: that K is bounded shows in the ratio's not growing
        # any more at large margins.
        early, full = ratio[: 2 * len(ratio) // 3].max(), ratio.max()
        if not (torch.isfinite(full) and full <= _BOUNDED_GROWTH * early.clamp(min=1)):
            violations.append(
                f"(B3.4) no bounded K with {text}: it reached {full.item():.3g} and grows with q"
            )
    return b_g, K, violations


def _find_caveats(f_prime: Callable[[Tensor], Tensor], b_f: float) -> tuple[str, ...]:
    """A sentence where f' is not positive at a margin below b_f; nothing where it is."""
    below = torch.cat(
        [
            -torch.logspace(-3, 2, 200, dtype=torch.float64).flip(0),
            torch.linspace(0, b_f, 50, dtype=torch.float64),
        ]
    )
    rising = f_prime(below) > 0
    if rising.all():
        return ()
    where = _show_first(below, ~rising)
    return (f"but f' is not positive at q = {where}: only margins above that are covered",)


def find_flaw(
    f: Callable[[Tensor], Tensor],
    f_prime: Callable[[Tensor], Tensor],
    g: Callable[[Tensor], Tensor],
    log_slope: Callable[[Tensor], Tensor],
    b_f: float,
) -> str:
    """The first contradiction between f, f', g and log(-l') at a few margins, in one sentence.

    Empty where there is none. f may be undefined (NaN or infinite) at negative margins, where
    nothing is compared. g is compared beyond b_f only.
    """
    probes = torch.tensor(_PROBES, dtype=torch.float64)
    q = torch.cat([b_f + probes, -probes])
    beyond = q > b_f
    values = {}
    functions = {
        "f": f,
        "f_prime": f_prime,
        "log_slope": log_slope,
        "g": lambda points: g(f(points)),
    }
    for name, function in functions.items():
        value = _evaluate(name, function, q[beyond] if name == "g" else q)
        if isinstance(value, str):  # a function that cannot be evaluated makes the rest pointless
            return value
        values[name] = value
    if torch.isnan(values["f"][beyond]).any():
        return (
            f"f is NaN at margin {_show_first(q, beyond & torch.isnan(values['f']))}, beyond b_f ="
            f" {b_f:g}"
        )
    step = _PROBE_STEP * q
    slope = (f(q + step) - f(q - step)) / (2 * step)
    known = torch.isfinite(values["f"]) & torch.isfinite(slope)
    comparisons = (
        ("f_prime", q[known], slope[known], "the difference quotient of f there is"),
        (
            "log_slope",
            q[known & (slope > 0)],
            (torch.log(slope) - values["f"])[known & (slope > 0)],
            "log f' - f there is",
        ),
        ("g", q[beyond & known], q[beyond & known], "the inverse of f there is"),
    )
    for name, points, wanted, what in comparisons:
        # g was evaluated at the margins beyond b_f only, the others at all of them.
        got = values[name][known[beyond]] if name == "g" else values[name][torch.isin(q, points)]
        wrong = ~torch.isclose(got, wanted, rtol=_PROBE_TOLERANCE, atol=_PROBE_TOLERANCE**2)
        if wrong.any():
            point, given, right = (x[wrong][0].item() for x in (points, got, wanted))
            return (
                f"{name} is wrong at margin {point:.6g}: it gives {given:.6g}, and {what}"
                f" {right:.6g}"
            )
    # Last, since a wrong f' explains more than that f falls.
    falling = known & beyond & (slope < 0)
    if falling.any():
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


def _maximize_slope_ratio(
    derivative: Callable[[Tensor], Tensor], points: Tensor, theta: Tensor
) -> Tensor:
    """The maximum over theta of derivative(point) / derivative(theta point), for each point."""
    return (derivative(points)[None] / derivative(theta * points[None])).amax(0)


def _show_first(q: Tensor, where: Tensor) -> str:
    """The first margin where a condition holds, for a message."""
    return f"{q[where][0].item():.4g}"
