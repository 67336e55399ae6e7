"""The tangent-kernel view of KKT points: a support vector machine on the net's own gradients."""

from dataclasses import dataclass
from decimal import ROUND_CEILING

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arguments import check_choice, check_count, check_seed
from ..core.progress import Progress
from ..core.records import Certainty, Row, Table, number
from ..core.saved_records import Record
from ..losses import CrossEntropy
from ..nets.data import Choice, Data, takes_data
from ..nets.model import with_gradients
from ..result import Status
from ..solvers import kernel_max_margin
from .multipliers import multipliers
from .problem import NORMS, Problem, require_in_range
from .subgradients import check_radius, within_radius

_RELATIVE_GAP = 1e-9
"""Gap to which the machine is solved: an angle of 1e-4 between v and theta still differs from 0."""


@dataclass(frozen=True)
class TangentSVM(Record):
    """The solution v of min ||v||^2 / 2 subject to <grad s_nj, v> >= 1 at theta~.

    Source: Lyu and Li 2019, (Q) in Lemma C.13.
    """

    cosine: float  #: The cosine between v and theta, 1 where theta is a KKT point
    margin: float  #: 1 / ||v||
    dual: np.ndarray  #: (K,): Weights of the constraints, with sum 1
    constraints: Tensor  #: (K, 2): Their samples and classes; class -1 for a net with one output
    gap: float  #: Relative gap of the proved bracket of the margin
    status: Status  #: How `solvers.kernel_max_margin` ended

    def _table(self) -> Table:
        """How near theta is to a KKT point, and the machine that says so."""
        rows: list[Row] = [
            ("cosine of v and theta", (f"{self.cosine:.9f}", Certainty.MEASURED)),
            "1: theta is a KKT point of the largest margin. Else certify says how far from one.",
            ("margin, 1 / ||v||", (number(self.margin), Certainty.MEASURED)),
            ("its relative gap, at most", (number(self.gap, ROUND_CEILING), Certainty.PROVED)),
            ("support", f"{np.count_nonzero(self.dual):,} of {len(self.dual):,} constraints"),
            ("status", str(self.status)),
        ]
        return Table("Support vector machine on the gradients of a net", rows)


@takes_data
@with_gradients
def tangent_svm(
    model: nn.Module,
    data: Data,
    *,
    norm: str = "global",
    radius: float = 0.0,
    max_constraints: int = 2000,
    seed: int = 0,
    scores: Choice | None = None,
) -> TangentSVM:
    """Solve the hard-margin support vector machine on the gradients of a net's own constraints.

    min ||v||^2 / 2 subject to <grad s_nj, v> >= 1, without intercept, over the constraints of
    smallest s at theta~ = theta / q_min^{1/L}. At a KKT point theta~ of the max-margin problem v is
    theta~ / L. For a net with one output the kernel is the labelled empirical tangent kernel.

    Parameters
    ----------
    model : torch.nn.Module
        A net that classifies all samples correctly, homogeneous in the sense that `norm` asks for.
        It is not changed.
    data : pair (X, y), or iterable of (x, y) batches
        Inputs and labels, as for `measure`; batches are read once and held in memory.
    norm : {"global", "layers", "partial"}, default "global"
        As for `certify`.
    radius : float, default 0.0
        If positive, the gradient of each constraint with a multiplier, or nearly on the margin, is
        an average of gradients within this share of ||theta~||, below 1, of theta~, as at the kinks
        of ReLU nets a KKT point asks for: that of the best multipliers of `certify`. Other
        constraints are left out.
    max_constraints, seed, scores : optional
        As for `certify`.

    Returns
    -------
    TangentSVM
        The cosine between v and theta, the margin 1 / ||v|| and the dual weights; float64.

    Raises
    ------
    NotSeparatedError
        Some margin is not positive.
    NotHomogeneousError, DataError, ModelError, ArgumentError
        The net, the data or another argument cannot be used, as in `certify`.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, 1.0]]))
    >>> round(nm.tangent_svm(net, ([[2.0, 0.0], [0.0, -2.0]], [1, -1])).cosine, 9)
    1.0

    Source: Lyu and Li 2019, Corollary 4.5 and Lemma C.13.
    """
    norm = check_choice("norm", norm, NORMS)
    radius = check_radius(radius)
    max_constraints, seed = check_count("max_constraints", max_constraints), check_seed(seed)
    problem = Problem(model, data, norm=norm, loss=CrossEntropy())
    count = min(max_constraints, problem.constraints.count)
    nearest = torch.argsort(problem.report.q, stable=True)[:count]
    chosen = problem.constraints.smallest(nearest, count)
    gram = problem.constraints.gradients(chosen).inner().cpu().numpy()
    # <theta~, grad s> by Euler.
    slopes = problem.order * problem.constraints.values_of(chosen).cpu().numpy()
    require_in_range(float(np.diag(gram).max()), problem.constraints.scored)
    gram = (gram + gram.T) / 2
    if radius > 0:
        first = torch.from_numpy(multipliers(gram, slopes)).to(chosen.samples.device)
        wide = within_radius(problem, chosen, first, radius=radius, seed=seed, display=Progress())
        if wide.columns is not None:
            chosen, (gram, slopes) = wide.near, wide.columns.averages()
    solution = kernel_max_margin(gram, np.ones(len(gram)), tol=_RELATIVE_GAP)
    # v is proportional to sum dual_k grad s_k.
    length = float(np.sqrt(max(solution.dual @ gram @ solution.dual, 0.0)))
    cosine = float(solution.dual @ slopes) / (problem.norm * length)
    pairs = torch.stack([chosen.samples, chosen.classes], 1).cpu()
    return TangentSVM(cosine, solution.margin, solution.dual, pairs, solution.gap, solution.status)
