"""The tangent-kernel view of KKT points: the support vector machine with the net's own gradients as
features.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arguments import check_choice, check_count
from ..core.batches import Data
from ..core.denormals import flush_denormals
from ..core.records import short_repr
from ..losses import CrossEntropy
from ..solvers import kernel_max_margin
from .problem import NORMS, Problem


@dataclass(frozen=True)
class TangentSVM:
    """min ||v||^2 / 2 subject to <grad s_nj, v> >= 1 at theta~: (Q) of Lyu and Li 2019, Lemma C.13.

    cosine : between its solution v and theta; 1 where theta is a KKT point.
    margin : 1 / ||v||.
    dual : (K,) weights of the constraints, sum 1.
    constraints : (K, 2), sample and class.
    gap : of the proved bracket of the margin.
    """

    cosine: float
    margin: float
    dual: np.ndarray
    constraints: Tensor
    gap: float

    __repr__ = short_repr


def tangent_svm(
    model: nn.Module, data: Data, *, norm: str = "global", max_constraints: int = 2000
) -> TangentSVM:
    """The hard-margin support vector machine without intercept with kernel <grad s, grad s'>, on
    the constraints of smallest s.

    At a KKT point theta~ of the max-margin problem its solution is theta~ / L (Lyu and Li 2019,
    Corollary 4.5 and Lemma C.13; for one output the kernel is the labelled empirical tangent
    kernel). Arguments and errors as for `certify`.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, 1.0]]))
    >>> round(nm.tangent_svm(net, ([[2.0, 0.0], [0.0, -2.0]], [1, -1])).cosine, 9)
    1.0
    """
    norm, max_constraints = (
        check_choice("norm", norm, NORMS),
        check_count("max_constraints", max_constraints),
    )
    with flush_denormals():
        problem = Problem.of(model, data, norm=norm, loss=CrossEntropy())
        count = min(max_constraints, problem.constraints.count)
        chosen = problem.constraints.smallest(
            torch.argsort(problem.report.q, stable=True)[:count], count
        )
        gram = problem.constraints.gradients(chosen).inner().cpu().numpy()
        values = problem.constraints.values_of(chosen).cpu().numpy()
    solution = kernel_max_margin((gram + gram.T) / 2, np.ones(count), tol=1e-9)
    # <theta~, v> by Euler: v is proportional to sum dual_k grad s_k, and <theta~, grad s_k> = L
    # s_k.
    length = float(np.sqrt(max(solution.dual @ gram @ solution.dual, 0.0)))
    cosine = problem.order * float(solution.dual @ values) / (problem.norm * length)
    return TangentSVM(
        cosine,
        solution.margin,
        solution.dual,
        torch.stack([chosen.samples, chosen.classes], 1).cpu(),
        solution.gap,
    )
