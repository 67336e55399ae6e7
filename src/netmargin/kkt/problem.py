"""The max-margin problem of a net on data, at the feasible multiple of its parameters."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..core.logspace import scaled_ratio
from ..errors import DataError, NotHomogeneousError, NotSeparatedError
from ..homogeneity import Homogeneity, Kind
from ..losses import Loss
from ..margins import MarginReport, measure
from ..nets.counted_weights import hold_frozen_weights
from ..nets.data import Data
from ..nets.forward_faults import SAMPLES, require_no_faults
from ..nets.model import require_differentiable
from ..nets.named_inputs import tensors_of
from ..nets.net_on_samples import NetOnSamples
from ..nets.whole_tensors import euclidean_norm
from .constraints import BATCH, Constraints
from .rounding import CLOSE, DRAWS, allow_for_rounding, draw_changes, largest_share, measure_spread
from .slopes import Vector

NORMS = ("global", "layers", "partial")
"""The norms of the max-margin problem; `certify` says what they mean."""


class Problem:
    """The max-margin problem (P) at theta~, the feasible multiple of a net's parameters.

    It raises the errors that `certify` names.

    constraints, report : the constraints, at theta~; the margins of the net itself.
    target, norm, order : theta~, with 0 for what the norm leaves out; ||theta~||; L of the target.
    q_rounding : the share of q_min by which rounding may change the margins near it.
    term_sizes : the sizes of the terms of the scores of every sample, up to one factor, (N,).
    """

    def __init__(
        self, model: nn.Module, data: Data, *, norm: str, loss: Loss, batch_size: int = BATCH
    ) -> None:
        scored, self.loss = NetOnSamples(model, data), loss
        twin, first = scored.twin, scored.first_inputs(SAMPLES)
        frozen = hold_frozen_weights(twin, "no max-margin problem")
        require_no_faults(twin, first)
        require_differentiable(twin, first)
        report = measure(twin, scored.samples, loss=loss, batch_size=batch_size, statistics="fixed")
        homogeneity = report.homogeneity
        try:
            require_homogeneity(twin, homogeneity, norm)
        except NotHomogeneousError as error:
            # No training cures that, so it is said first, and a negative margin with it.
            besides = f"\nBesides, {_explain_not_separated(report)}." if report.q_min <= 0 else ""
            held = f"\nHeld fixed, as it requires no gradient: {frozen[0]!r}." if frozen else ""
            raise NotHomogeneousError(f"{error}{held}{besides}") from None
        if report.q_min <= 0:
            raise NotSeparatedError(
                f"{_explain_not_separated(report)}, so no multiple of the net is feasible. "
                "Train until all are correct (nm.train), or leave these samples out."
            )
        names = tuple(n for n, _ in twin.named_parameters() if n not in homogeneity.ignored)
        self.constraints, self.report = Constraints(scored, names, batch_size), report
        members, groups = homogeneity.members, homogeneity.groups
        point = self.constraints.point
        growing = {n for name, k in groups.items() if k > 0 for n in members[name]}
        counted = set(point) if norm == "global" else growing
        # Parameters that the norm leaves out are not scaled: those with exponent 0 or below, except
        # that the global norm is of all parameters.
        self.order = float(sum(k for k in groups.values() if k > 0 or norm == "global"))
        self.term_sizes = self.constraints.term_sizes()
        self.q_rounding = _measure_rounding(self.constraints, report, self.term_sizes.cpu())
        # In logarithms, since q_min^{1/L} of a deep net may not fit in float64.
        log_q = math.log(report.q_min)
        if norm == "layers":  # layers become balanced: ||W_i||^2 = k_i, up to a common factor
            for name, k in groups.items():
                if k > 0:
                    length = norm_of({n: point[n] for n in members[name]})
                    factor = math.sqrt(float(k)) / length
                    log_q += float(k) * math.log(factor)
                    point |= {n: point[n] * factor for n in members[name]}
        factor = scaled_ratio(1.0, log_q / self.order)
        point = {n: p * factor if n in counted else p for n, p in point.items()}
        self.constraints.move_to(point)
        self.target = {n: p if n in counted else torch.zeros_like(p) for n, p in point.items()}
        self.norm = norm_of(self.target)
        require_in_range(self.norm * self.norm, scored)

    def residual(self, multipliers: Tensor, combine: Callable[[Tensor], Vector]) -> Vector:
        """theta~ minus the combination of gradients with these multipliers."""
        # Near 1: of tiny inputs they are so large that their products with weights would overflow.
        largest = multipliers.max().item()
        scale = 2.0 ** math.floor(math.log2(largest)) if largest > 0 else 1.0
        combination = combine(multipliers / scale)
        return {n: self.target[n] - scale * combination[n] for n in self.target}


def _measure_rounding(constraints: Constraints, report: MarginReport, term_sizes: Tensor) -> float:
    """The share of q_min by which rounding may change it; NotSeparatedError from 1 on."""
    sources, q_min = draw_changes(DRAWS), report.q_min
    once, sizes = (part.cpu() for part in constraints.nearest(sources[0]))
    spread, near = measure_spread(report.q, [once]), torch.argsort(report.q, stable=True)[:CLOSE]
    again = [constraints.nearest(source, near)[0].cpu() for source in sources]
    spread[near] = torch.maximum(spread[near], measure_spread(report.q[near], again))
    # A single change may be small by chance, but not those of all samples.
    spread = torch.maximum(spread, largest_share(spread, term_sizes) * term_sizes)
    errors = allow_for_rounding(spread, sizes)
    error = errors[(report.q <= 2 * q_min) | (report.q - errors <= q_min)].max().item()
    if error >= q_min:
        raise NotSeparatedError(
            f"The smallest margin, {q_min:.3g} of sample {int(report.q.argmin())}, is not told"
            f" apart from 0: the rounding of float64 may change it by {error:.3g}. Centre inputs"
            " that are large beside their differences before training, or leave these samples out."
        )
    return error / q_min


def require_in_range(squares: float, scored: NetOnSamples) -> None:
    """Raise DataError where squared lengths of theta~ or of gradients leave float64."""
    if not 0 < squares < math.inf:
        largest = max(part.abs().max().item() for part in tensors_of(scored.x))
        raise DataError(
            "The inputs, or a layer, are too small or too large for float64, which does not hold"
            f" squared lengths of weights or gradients. Divide all inputs by the largest,"
            f" {largest:.3g}, or make the layers about equally large."
        )


def norm_of(vector: Vector) -> float:
    """The Euclidean norm of a vector in parameter space."""
    return math.hypot(*map(euclidean_norm, vector.values()))


def inner_product(a: Vector, b: Vector) -> float:
    """The inner product of two vectors, over the parameters of the first."""
    return math.fsum((a[n] * b[n]).sum().item() for n in a)


def _explain_not_separated(report: MarginReport) -> str:
    """Say how many samples have no positive margin, and name the first."""
    wrong = torch.nonzero(report.q <= 0)[:, 0]
    return (
        f"{len(wrong)} of {report.n} samples have a margin that is not positive "
        f"(first: sample {wrong[0].item()}, margin {report.q[wrong[0]].item() + 0.0:.3g})"
    )


def require_homogeneity(twin: nn.Module, homogeneity: Homogeneity, norm: str) -> None:
    """Raise NotHomogeneousError where the net does not scale as the norm asks."""
    partial = ""
    if homogeneity.order is not None and homogeneity.order > 0 and not homogeneity.ignored:
        scaled = ", ".join(name for name, k in homogeneity.groups.items() if k > 0)
        partial = f' Or pass norm="partial": in {scaled} the net is homogeneous as it is.'
    fixed, kind = homogeneity.statistics_sentence, homogeneity.kind
    if norm == "layers" and kind is not Kind.MULTI_HOMOGENEOUS and not fixed:
        raise NotHomogeneousError(
            f'The layers cannot be scaled one by one: the net is {kind}. Use norm="global".'
        )
    if norm != "partial" or homogeneity.ignored:
        try:
            homogeneity.require_order(twin)
        except NotHomogeneousError as error:
            raise NotHomogeneousError(f"{error}{partial}") from None
    if homogeneity.order is None or not homogeneity.order > 0:
        raise NotHomogeneousError(
            f"The net is homogeneous in no part of its parameters:\n  {homogeneity.reasons}"
        )
