"""The smallest epsilon at which a net is an (epsilon, delta)-KKT point of the max-margin
problem.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.arguments import check_choice, check_count, check_number, check_seed
from ..core.batches import Data
from ..core.denormals import flush_denormals
from ..errors import ModelError
from ..losses import Exponential, Logistic, Loss, as_loss
from .certificate import Completeness, KKTCertificate
from .constraints import Chosen, Vector
from .multipliers import multipliers
from .problem import NORMS, Problem, inner_product, norm_of

_FIRST = 800
_GROWTH = 2
_EULER = 1e-6
_DUST = 1e-10
_WINDOWS = (1e-6, 1e-4, 1e-2, 0.1)
_AS_GOOD = 1e-15


def certify(
    model: nn.Module,
    data: Data,
    *,
    norm: str = "global",
    loss: Loss | str | nn.Module | None = None,
    radius: float = 0.0,
    tol: float = 5e-3,
    max_constraints: int = 2000,
    seed: int = 0,
) -> KKTCertificate:
    """Is this net a KKT point of the max-margin problem, and which training samples does it rest
    on?

    (P): min ||theta||^2 / 2 subject to s_nj(theta) >= 1, with s_nj = Phi_{y_n} - Phi_j for all j !=
    y_n, or y_n Phi for a net with one output. Its KKT points are the limits of gradient flow (Lyu
    and Li 2019, Theorem 4.4 and Appendix F).

    The smallest epsilon over multipliers lambda >= 0 is a nonnegative least squares problem on the
    inner products of constraint gradients, whose linear term is L s by Euler's theorem. Constraints
    near the margin enter first; forward-mode passes over all constraints bring in those that lower
    epsilon most, until the rest are proved not to matter: with residual r = theta~ - sum lambda h,
    the vector r - tau theta~, tau = max <r, h> / (L s), is feasible in the dual, and bounds every
    epsilon from below.

    Parameters
    ----------
    model : a net that classifies all samples correctly, homogeneous in the sense that `norm` asks
        for. It is not changed; the computation is in float64 at its parameters, in evaluation mode.
    data : a pair (X, y), or an iterable of (x, y) batches, which is read once and held in memory.
    norm : "global", of all parameters. "layers": the problem with the product of layer norms
        instead, which is (P) after the layers of a multi-homogeneous net are rescaled to ||W_i||^2
        proportional to k_i (a KKT point is balanced like that). "partial": min ||w||^2 / 2 over the
        parameters w with positive exponent only; in the others the gradient of the Lagrangian is to
        vanish.
    loss : of which the alignment and the multipliers of Lemma C.8 are reported; cross-entropy
        (logistic for one output) by default.
    radius : > 0 adds gradients from points within radius ||theta||: max-margin ReLU nets sit on
        kinks, where one gradient is not enough.
    tol : how far the relative epsilon may be from the smallest over all constraints.
    max_constraints : how many may take part; memory and time grow with its square.
    seed : of the points within the radius.

    Raises
    ------
    NotSeparatedError : some margin is not positive.
    NotHomogeneousError : no homogeneity of the kind that `norm` asks for; later biases that are all
        0 count as absent.
    DataError, ModelError, ArgumentError : as `measure`; ModelError for a model with noise, too.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, 1.0]]))                # the max-margin direction of these two points
    >>> certificate = nm.certify(net, ([[2.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> certificate.epsilon < 1e-12, certificate.multipliers.tolist(), certificate.support.tolist()
    (True, [0.25, 0.25], [0, 1])
    """
    norm, loss = check_choice("norm", norm, NORMS), as_loss(loss)
    radius, tol = (
        check_number("radius", radius, at_least=0),
        check_number("tol", tol, above=0, below=1),
    )
    max_constraints, seed = check_count("max_constraints", max_constraints), check_seed(seed)
    started = time.monotonic()
    with flush_denormals():
        problem = Problem.of(model, data, norm=norm, loss=loss)
        search = _Search(problem, tol, max_constraints)
        status = search.run()
        found = search.judged()
        by_loss = _loss_multipliers(problem)
        radius_epsilon, share = found.epsilon, None
        if radius > 0:
            from .subgradients import kink_share, within_radius

            radius_epsilon = within_radius(
                problem, search.chosen, search.multipliers, radius=radius, seed=seed
            )
            share = kink_share(problem, search.chosen, found.multipliers, radius)
    order = torch.argsort(found.multipliers, descending=True, stable=True)
    order = order[found.multipliers[order] > 0]
    return KKTCertificate(
        epsilon=found.epsilon,
        epsilon_lower=min(search.lower, found.epsilon),
        delta=found.delta,
        norm=problem.norm,
        order=problem.order,
        q_min=problem.report.q_min,
        constraints=torch.stack(
            [search.chosen.samples[order], search.chosen.classes[order]], 1
        ).cpu(),
        multipliers=found.multipliers[order].cpu(),
        alignment=by_loss.alignment,
        loss_epsilon=problem.norm * math.sqrt(max(2 - 2 * by_loss.alignment, 0.0)),
        loss_delta=by_loss.delta,
        lemma_delta=by_loss.bound,
        completeness=status,
        radius=radius,
        radius_epsilon=min(radius_epsilon, found.epsilon),
        kink_share=share,
        seconds=time.monotonic() - started,
        samples=problem.report.n,
        _gram=search.gram,
        _values=search.values,
    )


@dataclass
class _Judged:
    epsilon: float
    delta: float
    multipliers: Tensor


class _Search:
    """Constraints that take part, their inner products, and the best multipliers; `lower` is the
    proved bound of epsilon.
    """

    def __init__(self, problem: Problem, tol: float, most: int):
        self._problem, self._tol, self._most = problem, tol, most
        self.lower = 0.0

    def run(self) -> Completeness:
        problem, constraints = self._problem, self._problem.constraints
        first = min(_FIRST, self._most)
        nearest = torch.argsort(problem.report.q, stable=True)[
            :first
        ]  # no other sample has one of the `first` smallest gaps
        self._begin(constraints.smallest(nearest, first))
        while True:
            residual = problem.residual(
                self._gradients.combination(self.multipliers, problem.target)
            )
            if len(self.chosen) == constraints.count:
                self.lower, _ = self._bound(residual)
                return (
                    Completeness.ALL
                    if norm_of(residual) - self.lower <= self._tol * problem.norm
                    else Completeness.OPEN
                )
            full = len(self.chosen) >= self._most
            if not full:
                likely, entering = self._bound(residual, torch.float32)
                grown = self.chosen.joined(entering)
                full = (
                    len(grown) == len(self.chosen)
                    or norm_of(residual) - likely <= self._tol * problem.norm
                )
            if full:
                self.lower, entering = self._bound(residual)
                grown = self.chosen.joined(entering)
                if norm_of(residual) - self.lower <= self._tol * problem.norm:
                    return Completeness.PROVED
                if len(grown) == len(self.chosen) or len(self.chosen) >= self._most:
                    return Completeness.OPEN
            room = min(self._most, _GROWTH * len(self.chosen))
            self._extend(Chosen(*(part[len(self.chosen) : room] for part in vars(grown).values())))

    def judged(self) -> _Judged:
        """Epsilon and delta of the multipliers, as near to the margin as they can be, without dust;
        recomputed.
        """
        self._prefer_near()
        p = self.multipliers
        p = torch.where(p > _DUST * p.max(), p, 0.0)
        residual = self._problem.residual(
            self._problem.constraints.weighted_gradient(self.chosen, p)
        )
        excess = torch.from_numpy(np.maximum(self.values - 1, 0.0)).to(p.device)
        return _Judged(norm_of(residual), (p * excess).max().item(), p)

    def _begin(self, chosen: Chosen) -> None:
        constraints = self._problem.constraints
        self.chosen, self._gradients = chosen, constraints.gradients(chosen)
        self.gram = self._gradients.inner().cpu().numpy()
        self.values = constraints.values_of(chosen).cpu().numpy()
        by_euler = torch.from_numpy(self._problem.order * self.values).to(chosen.samples.device)
        direct = self._gradients.along(self._problem.target)
        if not torch.allclose(direct, by_euler, rtol=_EULER, atol=_EULER * self._problem.norm):
            worst = int((direct - by_euler).abs().argmax())
            raise ModelError(
                f"Euler's theorem fails: <theta, grad s> = {direct[worst].item():.9g} but L s ="
                f" {by_euler[worst].item():.9g}. The gradients of the model are not those of its"
                " outputs (a detached or custom operation), or it is not homogeneous: the eps of"
                " normalization layers counts where their inputs are small."
            )
        self._solve()

    def _extend(self, new: Chosen) -> None:
        constraints = self._problem.constraints
        entering = constraints.gradients(new)
        across = self._gradients.inner(entering).cpu().numpy()
        self.gram = np.block([[self.gram, across], [across.T, entering.inner().cpu().numpy()]])
        self._gradients = self._gradients.joined(entering)
        self.values = np.append(self.values, constraints.values_of(new).cpu().numpy())
        self.chosen = self.chosen.joined(new)
        self._solve()

    def _solve(self) -> None:
        self.gram = (self.gram + self.gram.T) / 2
        p = multipliers(self.gram, self._problem.order * self.values)
        self.multipliers = torch.from_numpy(p).to(self.chosen.samples.device)

    def _prefer_near(self) -> None:
        """Where the smallest epsilon leaves a choice, as inside the cone of the gradients, take
        constraints near the margin only.
        """
        linear, p = self._problem.order * self.values, self.multipliers.cpu().numpy()
        value = 0.5 * p @ (self.gram @ p) - linear @ p
        for window in _WINDOWS:
            near = np.flatnonzero(self.values <= 1 + window)
            if len(near) and self.values[p > 0].max() > 1 + window:
                gram = self.gram[np.ix_(near, near)]
                few = multipliers(gram, linear[near])
                if (
                    0.5 * few @ (gram @ few) - linear[near] @ few
                    <= value + _AS_GOOD * self._problem.norm**2
                ):
                    p = np.zeros(len(p))
                    p[near] = few
                    self.multipliers = torch.from_numpy(p).to(self.multipliers.device)
                    return

    def _bound(self, residual: Vector, dtype: torch.dtype = torch.float64) -> tuple[float, Chosen]:
        """A lower bound of epsilon by a pass over all constraints, proved in float64, and those
        that promise most.
        """
        constraints, order = self._problem.constraints, self._problem.order
        worst = 0.0

        def merits():
            nonlocal worst
            for part, gaps, slopes in constraints.slopes(residual, dtype):
                ratio = torch.where(torch.isfinite(gaps), slopes / (order * gaps), -math.inf)
                worst = max(worst, ratio.max().item())
                yield part, torch.where(ratio > 0, ratio, -math.inf)

        entering = constraints.best(merits(), self._most)
        square = self._problem.norm**2
        inner, length = inner_product(self._problem.target, residual), norm_of(residual) ** 2
        above = inner - worst * square
        below = length - 2 * worst * inner + worst**2 * square
        return (above / math.sqrt(below) if above > 0 and below > 0 else 0.0), entering


@dataclass(frozen=True)
class _ByLoss:
    alignment: float
    delta: float
    bound: float | None


def _loss_multipliers(problem: Problem) -> _ByLoss:
    """Lemma C.8's multipliers: proportional to the slopes of the loss at theta itself, lengthened
    to ||theta~||.

    At theta a gap is q_min times that at theta~. Derivation of the bound: with M constraints and
    weights w = -l'(s) (times the softmax), the lemma's proof gives sum lambda (s~ - 1) <=
    gamma~^{-2/L} / L * sum w (s - q_min) / (l^{-1}(Loss) Loss), and w (s - q_min) sums to at most
    (M - 1) e^{-q_min} / e; e^{-q_min} <= Loss for the exponential loss and <= e^Loss - 1 for the
    logistic loss, whose own g / g' leaves e^Loss.
    """
    q_min, log_loss, loss = problem.report.q_min, problem.report.log_loss, problem.loss
    heaviest = 0.0

    def weigh(gaps: Tensor) -> Tensor:
        nonlocal heaviest
        s = q_min * gaps
        q = s[:, 0] if s.shape[1] == 1 else -torch.logsumexp(-s, 1)
        weights = torch.exp(loss.log_slope(q) - log_loss)[:, None]
        if s.shape[1] > 1:
            weights = weights * torch.exp(q[:, None] - s)
        heaviest = max(
            heaviest,
            (weights * (gaps - 1)).where(torch.isfinite(gaps), torch.zeros(())).max().item(),
        )
        return weights

    gradient = problem.constraints.loss_gradient(weigh)
    length = norm_of(gradient)
    if not (length > 0 and math.isfinite(length)):
        return _ByLoss(math.nan, math.nan, None)
    alignment = inner_product(problem.target, gradient) / (problem.norm * length)
    return _ByLoss(min(alignment, 1.0), heaviest * problem.norm / length, _lemma_delta(problem))


def _lemma_delta(problem: Problem) -> float | None:
    report, loss = problem.report, problem.loss
    smoothed = loss.inverse_link(report.log_loss)
    known = isinstance(loss, (Exponential, Logistic)) and loss.power == 1
    if not known or not smoothed > 0:
        return None
    factor = math.exp(min(math.exp(report.log_loss), 1.0)) if isinstance(loss, Logistic) else 1.0
    # gamma~ rho^L = l^{-1}(Loss), so gamma~^{-2/L} is (||theta~|| (q_min / l^{-1}(Loss))^{1/L})^2.
    squared = problem.norm**2 * logspace.scaled_ratio(
        1.0, 2 / problem.order * math.log(smoothed / report.q_min)
    )
    return (problem.constraints.count - 1) * factor * squared / (math.e * problem.order * smoothed)
