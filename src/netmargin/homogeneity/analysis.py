"""The analysis of a net: one forward pass under the rules, then a numerical check of the answer."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ..core.arguments import check_choice
from ..errors import ModelError
from ..nets.accepted_models import check_model
from ..nets.advice import explain_forward_errors
from ..nets.data import Choice, takes_data
from ..nets.forward_faults import describe_strange, find_company
from ..nets.model import (
    able_to_float64,
    call_with,
    device_and_dtype,
    require_finite,
    require_scores_before_sigmoid,
)
from ..nets.score_outputs import zero_absent
from . import normalization_rules, rules, sum_rules  # noqa: F401  (register their rules)
from .answer import Homogeneity
from .degree import CONSTANT, AnyDegree, Degree, Unknown
from .derivation import Derivation
from .follower import Follower
from .measurements import Measurements
from .samples import count_samples, find_inputs, plan_as_it_is
from .sentences import describe_statistics
from .trace import Trace
from .validation import confirm_both, observe, settle
from .vocabulary import Evidence


@takes_data
def analyse(
    model: nn.Module, x: Any, *, statistics: str = "follow", scores: Choice | None = None
) -> Homogeneity:
    """Find out how the outputs of a net scale with its parameters.

    A net is homogeneous of order L if Phi(c theta; x) = c^L Phi(theta; x) for all c > 0. The rules
    of all operations are applied in one forward pass on a few samples of `x`, in the mode that the
    model is in, and a numerical check in float64 confirms the exponents. Where an operation has no
    rule, the answer rests on that check only, and says so. Small numbers that guard roots and
    quotients (eps) are neglected where the outputs miss the exponents by at most 1%.

    Parameters
    ----------
    model : torch.nn.Module
        A module that maps one tensor (or one tuple of tensors) to one tensor of scores. It is not
        changed.
    x : array_like or tensor of shape (n, ...), tuple of them, or data as `measure` takes them
        A batch of inputs; a few samples suffice. Of a pair (X, y) with labels y, and of a loader,
        the first are used; another tuple holds the inputs of a net that takes a tuple.
    statistics : {"follow", "fixed"}, default "follow"
        Whether the means and variances that BatchNorm stores, and uses in evaluation mode, follow
        the parameters as if they were estimated again (a mean scales like its signal, a variance
        like the square), so that the normalized values do not scale; or stay as they are, as they
        do for whoever differentiates the net in evaluation mode.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    Homogeneity
        The kind of homogeneity, the order, the exponent of every group of parameters, and what
        blocks homogeneity in the others. It holds no model and no data.

    Raises
    ------
    ModelError
        The model has no parameters, its parameters or outputs are not finite, or its outputs are
        not one tensor.
    DataError
        The model rejects the inputs.
    ArgumentError
        Another argument cannot be used.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> first, last = torch.nn.Linear(3, 5), torch.nn.Linear(5, 1)
    >>> h = nm.analyse(torch.nn.Sequential(first, torch.nn.ReLU(), last), torch.ones(2, 3))
    >>> h.kind.name, [b.module for b in h.blockers]
    ('PARTIAL', ['2'])
    >>> {name: str(exponent) for name, exponent in h.quasi_exponents.items()}
    {'0.weight': '1/2', '0.bias': '1/2', '2.weight': '1/2', '2.bias': '1'}
    >>> h.ignoring_biases().groups
    {'0': 1, '2': 1}
    >>> h.deviation < 1e-12
    True

    Source: Lyu and Li 2019, Section 4.4 and Appendix G; two-homogeneity 2024, Section 3.4.
    """
    check_choice("statistics", statistics, ("follow", "fixed"))
    model, x = find_inputs(check_model(model), x)
    # First, as it refuses lazy parameters, which cannot be looked at.
    able = able_to_float64(model)
    require_finite(model)
    answer = _analyse(able, x, follow=statistics == "follow")
    if able is model:
        return answer
    device, _ = device_and_dtype(model)
    note = f"Everything in float64 was computed on the CPU: the device {device.type!r} has none."
    return replace(answer, notes=(*answer.notes, note))


def _analyse(model: nn.Module, x: Any, *, follow: bool) -> Homogeneity:
    """Follow a net that can be computed in float64 where it lies, and settle what is found."""
    measured = Measurements(model, x)
    trace, degree, warning = _follow(model, measured.traced, follow=follow)
    names = tuple(name for name, _ in model.named_parameters())
    notes = describe_statistics(model, trace.statistics)
    if isinstance(degree, Unknown):
        answer = observe(trace, names, degree, measured)
        return replace(answer, notes=(*notes, *answer.notes), warning=warning)
    derivation = Derivation(
        names,
        # Outputs that are exactly 0 scale with every power; as a constant they have no order.
        degree if isinstance(degree, Degree) else CONSTANT,
        tuple(trace.constraints),
        tuple(trace.observed),
        tuple(trace.casts),
        trace.statistics,
    )
    numbers = trace.numbers / count_samples(measured.traced)
    measured.measure_as_it_is_on(*plan_as_it_is(model, numbers))
    del trace  # and with it all values of the pass, before more are computed
    # Where only biases are in the way, the net without them is settled as well: margins of such
    # nets are measured like that (Lyu and Li 2019, J.1).
    without = derivation.bias_free
    exact = confirm_both(derivation, without, measured) if without else None
    answer = settle(derivation, measured, exact)
    answer = replace(answer, notes=(*notes, *answer.notes), warning=warning)
    if (
        without is None
        or answer.evidence is Evidence.CONTRADICTED
        or not {b.bias for b in answer.blockers} <= set(without.ignored)  # epsilons block as well
    ):
        return answer
    free = settle(without, measured, exact)
    free = replace(free, notes=(free.bias_sentence, *notes, *free.notes))
    return replace(answer, _bias_free=free)


def _follow(model: nn.Module, x: Any, *, follow: bool) -> tuple[Trace, AnyDegree, str]:
    """Run the model on x; return the trace, the degree of the outputs, and a warning or ""."""
    # The fused kernel of transformer layers is one opaque operation that no rule could follow.
    fused_attention = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)

    # Batch norms update their running statistics: in copies, so that the model stays as it is.
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}

    follower = Follower(Trace(model, x, buffers if follow else {}))
    try:
        with torch.no_grad(), torch.random.fork_rng():
            try:
                with follower.following(model):
                    outputs = call_with(model, buffers, x)
            except Exception:
                # Once more without the trace: if the net fails as well, its error is explained to
                # the user; if not, a rule failed, and that error goes up as it is.
                with explain_forward_errors(x):
                    call_with(model, buffers, x)
                raise
            if not torch.isfinite(zero_absent(outputs)).all():
                raise ModelError(
                    "The model's outputs hold NaN or infinite values on finite inputs. Check its"
                    " weights."
                )
            require_scores_before_sigmoid(model, x, outputs)
            warning = describe_strange(model, follower.trace.strange)
            training = any(module.training for module in model.modules())
            rows = outputs.ndim in (1, 2) and len(outputs) == count_samples(x)
            # In training samples may see each other, as those of batch statistics do.
            if rows and not training and not isinstance(x, tuple) and not warning:
                warning = find_company(model, x, outputs, [1])
    finally:
        torch.backends.mha.set_fastpath_enabled(fused_attention)
    return follower.trace, follower.finish(outputs), warning
