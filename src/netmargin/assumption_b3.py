"""Numerical check of assumption (B3) of Lyu and Li 2019 on a loss l(q) = e^{-f(q)}."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .core.arguments import check_number
from .core.records import short_repr

_RESOLUTION = 2000
_ROUNDING = 1e-9
_PROBE_STEP = 1e-5
_PROBES = (0.37, 0.73, 1.9, 4.3, 11.3, 67.0)
"""Margins beyond b_f at which a loss is probed, and by their negatives below 0: of all sizes that
training meets, and no round numbers, where a loss in pieces would have its kinks.
"""
_PROBE_TOLERANCE = 1e-4
"""Relative. Central differences in float64 are good to about 1e-9 there; a wrong formula is off by
far more.
"""


@dataclass(frozen=True)
class B3Report:
    """What (B3) looks like up to `largest_q`: b_f as given, the smallest usable b_g, the constant
    K, and what fails.

    (B3.2), f' > 0, is required beyond b_f, where the proofs use it; `caveats` say where it fails
    below, as for e^{-q^3} at 0.
    """

    b_f: float
    b_g: float
    K: float
    largest_q: float
    violations: tuple[str, ...]
    caveats: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def holds(self) -> bool:
        """True if no part of (B3) was seen to fail on the tested range."""
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
    """Check f' = df/dq, g = f^{-1}, and (B3.2) to (B3.4) on a logarithmic grid of (b_f,
    largest_q).
    """
    b_f, largest_q = (
        check_number("b_f", b_f, at_least=0),
        check_number("largest_q", largest_q, above=0),
    )
    q = b_f + torch.logspace(
        -3, torch.log10(torch.tensor(largest_q)).item(), _RESOLUTION, dtype=torch.float64
    )
    slope, violations = f_prime(q), []

    step = _PROBE_STEP * q
    difference = (f(q + step) - f(q - step)) / (2 * step)
    if not torch.allclose(difference, slope, rtol=1e-4, atol=1e-8):
        violations.append(
            "f' is not the derivative of f near q ="
            f" {_first(q, ~torch.isclose(difference, slope, 1e-4, 1e-8))}"
        )
    inverted = torch.isclose(g(f(q)), q, rtol=1e-6)
    if not inverted.all():
        violations.append(f"g is not the inverse of f near q = {_first(q, ~inverted)}")
    if not (slope > 0).all():
        violations.append(f"(B3.2) f' is not positive at q = {_first(q, ~(slope > 0))}")

    product = slope * q
    falls = product[1:] < product[:-1] * (1 - _ROUNDING)
    if falls.any():
        violations.append(
            f"(B3.3) f'(q) q decreases after q = {_first(q[:-1], falls)}; try a larger b_f"
        )
    late = q > largest_q / 10
    if not product[-1] > product[late][0] * 1.05:
        violations.append(
            "(B3.3) f'(q) q does not tend to infinity: it grows less than 5% over the last decade"
            " of q"
        )

    start = torch.tensor([b_f, 2 * b_f], dtype=torch.float64)
    f_start = f(start)
    b_g = max(2 * f_start[0].item(), f_start[1].item(), 0.0)
    theta = torch.linspace(0.5, 0.999, 40, dtype=torch.float64)[:, None]
    y = q[f(q) > b_g][::10]
    x = f(y)
    ratios = [_slope_ratio(f_prime, y, theta), _slope_ratio(lambda v: 1 / f_prime(g(v)), x, theta)]
    K = 1.0 if len(y) else float("nan")
    for text, ratio in (
        zip(("f'(y) <= K f'(theta y)", "g'(x) <= K g'(theta x)"), ratios, strict=True)
        if len(y)
        else ()
    ):
        K = max(K, ratio.max().item())
        early, full = ratio[: 2 * len(ratio) // 3].max(), ratio.max()
        if not (torch.isfinite(full) and full <= 1.5 * early.clamp(min=1)):
            violations.append(
                f"(B3.4) no bounded K with {text}: it reached {full.item():.3g} and grows with q"
            )
    below = torch.cat(
        [
            -torch.logspace(-3, 2, 200, dtype=torch.float64).flip(0),
            torch.linspace(0, b_f, 50, dtype=torch.float64),
        ]
    )
    rising = f_prime(below) > 0
    caveats = (
        ()
        if rising.all()
        else (
            (
                f"but f' is not positive at q = {_first(below, ~rising)}: only margins above that"
                " are covered"
            ),
        )
    )
    return B3Report(b_f, b_g, K, largest_q, tuple(violations), caveats)


def find_flaw(
    f: Callable[[Tensor], Tensor],
    f_prime: Callable[[Tensor], Tensor],
    g: Callable[[Tensor], Tensor],
    log_slope: Callable[[Tensor], Tensor],
    b_f: float,
) -> str:
    """The first contradiction between f, f', g and log(-l') at a few margins, in one sentence;
    empty where there is none.

    f may be undefined (NaN or infinite) at negative margins, where nothing is compared. g is
    compared beyond b_f only.
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
        points = q[beyond] if name == "g" else q
        try:
            values[name] = function(points)
        except Exception as error:  # whatever the caller's own code raises
            return (
                f"{name} raised {type(error).__name__} on a float64 tensor of shape"
                f" {tuple(points.shape)}: {error}"
            )
        value = values[name]
        if (
            not isinstance(value, Tensor)
            or value.shape != points.shape
            or value.dtype is not torch.float64
        ):
            shown = (
                f"{value.dtype} of shape {tuple(value.shape)}"
                if isinstance(value, Tensor)
                else type(value).__name__
            )
            return (
                f"{name} must map a float64 tensor to a float64 tensor of the same shape,"
                f" elementwise; it returned {shown}"
            )
    if torch.isnan(values["f"][beyond]).any():
        return (
            f"f is NaN at margin {_first(q, beyond & torch.isnan(values['f']))}, beyond b_f ="
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
        got = values[name][known[beyond]] if name == "g" else values[name][torch.isin(q, points)]
        wrong = ~torch.isclose(got, wanted, rtol=_PROBE_TOLERANCE, atol=_PROBE_TOLERANCE**2)
        if wrong.any():
            point, given, right = (x[wrong][0].item() for x in (points, got, wanted))
            return (
                f"{name} is wrong at margin {point:.6g}: it gives {given:.6g}, and {what}"
                f" {right:.6g}"
            )
    falling = known & beyond & (slope < 0)
    if falling.any():
        return (
            f"f falls at margin {_first(q, falling)}, so the loss e^{{-f}} would reward small"
            " margins; f must rise beyond b_f"
        )
    return ""


def _slope_ratio(derivative: Callable[[Tensor], Tensor], points: Tensor, theta: Tensor) -> Tensor:
    """max over theta of derivative(point) / derivative(theta point), for each point."""
    return (derivative(points)[None] / derivative(theta * points[None])).amax(0)


def _first(q: Tensor, where: Tensor) -> str:
    return f"{q[where][0].item():.4g}"
