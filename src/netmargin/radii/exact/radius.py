"""The exact radius of one sample: a proved radius that meets the nearest misclassified input."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...core.deadline import Deadline
from .ball import CompactChain, enclose
from .chain import Chain, pull_back
from .inequality import Proof
from .node_search import Finding
from .proof import list_functionals
from .quadratics import bound_length
from .region_relaxation import Question
from .tree import Answer, search_rival

_SHARE_OF_TOL = 0.98
"""Share of the tolerance at which proofs are tried: the rest is for rounding of the radius."""
_SHRINKAGES = 6
"""Smaller radii at most that are tried where the whole ball cannot be proved; two are usual."""
_CARE = 0.998
"""Factor below the radius at which the bound is expected to vanish."""
_LEAST_SHRINKAGE = 0.5
"""Smallest factor of one such step: a bound far below 0 says little about the next radius."""
_GROWTH = 1.5
"""Factor of the radius while no misclassified input is known."""
_LARGEST_GUESS = 1e7
"""Times the first guess up to which it grows: an answer beyond is of no use."""
_MOST_ROUNDS = 400
"""Radii that are tried: each ends with a nearer misclassified input, a larger proved ball, or the
search. A few are usual, and fifty are from a poor attack.
"""
_MOST_OPEN_ROUNDS = 2
"""Radii in a row that stay open before a search without a misclassified input gives up: one may be
touched by the boundary, which is neither proved nor crossed then.
"""
_SMALLEST_RADIUS, _LARGEST_RADIUS = 1e-150, 1e150
"""Radii beyond these are not tried: their squares are no float64 numbers."""


@dataclass(frozen=True)
class Proved:
    """A proved radius of one sample."""

    lower: float  # no input nearer is misclassified: the judge accepted a proof for every rival
    upper: float  # the distance of the nearest misclassified input known
    over: bool = False  # whether the time limit stopped the search
    branched: bool = False  # whether some proof has more than one region


class RadiusSearch:
    """The search of the radius of one sample, its anchor (n_0,).

    label : its class, or its sign for a net with one output. upper : the distance of the nearest
    misclassified input known. refine : the distance of a misclassified input near one that may be.
    """

    def __init__(
        self,
        compacted: CompactChain,
        anchor: np.ndarray,
        label: int,
        upper: float,
        refine: Callable[[np.ndarray], float],
    ) -> None:
        self.compacted, self.anchor = compacted, np.asarray(anchor, np.float64).reshape(-1)
        self.upper, self.refine = upper, refine
        # Of each rival the largest radius that is proved, and its proof.
        self.proofs: dict[int, tuple[float, Proof]] = {}
        # What was found about whole balls of these radii that are not proved.
        self.roots: dict[int, tuple[float, Finding]] = {}
        weight = compacted.chain.weights[0]
        few = weight.shape[1] > len(weight)
        # The same factorization as the ball's, whose coordinates u = Q d these are.
        self.directions = np.linalg.qr(weight.T)[0] if few else None
        self.functionals = list_functionals(label, len(compacted.chain.weights[-1]))
        values = compacted.chain.evaluate(self.anchor[None])
        self.values = [z[0] for z in values]
        self.gaps = np.array([c @ self.values[-1] for c in self.functionals])
        self.rivals = [
            j for j, c in enumerate(self.functionals) if not _is_harmless(compacted.chain, c)
        ]

    def run(self, *, tol: float, exact: bool, time_limit: float | None) -> Proved:
        """Prove a radius: of whole balls alone, or exact, by trees; lower >= (1 - tol) upper is
        wanted.

        After `time_limit` seconds the best so far is returned.
        """
        deadline = Deadline(time_limit)

        def is_over() -> bool:
            return deadline.passed

        if not (self.gaps > 0).all():
            return Proved(0.0, 0.0)
        if not self.rivals:
            return Proved(math.inf, self.upper)
        first = guess = self._guess_radius()
        nearer = open_rounds = 0
        for _ in range(_MOST_ROUNDS):
            known = math.isfinite(self.upper)
            radius = self._choose_radius(tol, nearer) if known else guess
            if is_over() or not _SMALLEST_RADIUS < radius < _LARGEST_RADIUS:
                break
            before = self.upper
            try:
                settled = self._prove_all(radius, exact, is_over)
            except np.linalg.LinAlgError:  # LAPACK found no factors; what is proved stays
                break
            nearer = nearer + 1 if self.upper < before else 0
            if known and self.lower >= (1 - tol) * self.upper:
                break
            # No radius that is closer to a known input is easier. Without one, the boundary may
            # touch the ball: a larger one shows it.
            open_rounds = 0 if settled else open_rounds + 1
            if not settled and (known or open_rounds > _MOST_OPEN_ROUNDS):
                break
            guess *= 1.0 if known else _GROWTH
            if guess > _LARGEST_GUESS * first:
                break
        lower = min(self.lower, self.upper)
        branched = any(len(proof.leaves) > 1 for _, proof in self.proofs.values())
        over = deadline.passed and bool(lower < (1 - tol) * self.upper)
        return Proved(lower, self.upper, over, branched)

    @property
    def lower(self) -> float:
        """The largest radius for which every rival has a proof; 0 without one."""
        radii = [self.proofs[j][0] if j in self.proofs else 0.0 for j in self.rivals]
        return min(radii)

    def _choose_radius(self, tol: float, nearer: int) -> float:
        """The next radius below a known input; `nearer` rounds in a row have found a nearer one.

        After two rounds the share doubles: a poor input would be followed by hundreds.
        """
        share = _SHARE_OF_TOL * tol
        radius = (1 - min(share * 2 ** max(nearer - 1, 0), 0.5)) * self.upper
        between = math.sqrt(self.lower) * math.sqrt(self.upper)
        return float(min((1 - share) * self.upper, max(radius, between)))

    def _prove_all(self, radius: float, exact: bool, is_over: Callable[[], bool]) -> bool:
        """Prove a ball for all rivals, trees last; whether that, or a nearer input, came of it."""
        ball, waiting = enclose(self.compacted, self.anchor, radius), []
        # The nearest rivals first: they find misclassified inputs, if there are any.
        for j in sorted(self.rivals, key=lambda j: self.gaps[j]):
            if j in self.proofs and self.proofs[j][0] >= radius:
                continue
            if is_over():
                return False
            question = Question(ball, self.functionals[j])
            known, root = self.roots.get(j, (0.0, None))
            larger = root if known > radius else None
            answer = search_rival(question, self._try_point, is_over, larger=larger, most_regions=1)
            if self._take(j, radius, answer):
                return True
            if answer.proof is None:
                waiting.append(j)
        for j in waiting:
            self._shrink(j, radius, is_over)
        if not exact:
            return not waiting
        settled = True
        for j in waiting:
            if is_over():
                return False
            question = Question(ball, self.functionals[j])
            answer = search_rival(question, self._try_point, is_over, root=self.roots[j][1])
            if self._take(j, radius, answer):
                return True
            settled = settled and answer.proof is not None
        return settled

    def _take(self, j: int, radius: float, answer: Answer) -> bool:
        """Keep what a search about a rival came to; returns whether it found a nearer input."""
        if answer.proof is not None:
            self.proofs[j] = (radius, answer.proof)
        else:
            self.roots[j] = (radius, answer.root)
        return answer.nearer

    def _shrink(self, j: int, radius: float, is_over: Callable[[], bool]) -> None:
        """Prove a smaller ball for a rival, as a whole, by Newton steps on its bound."""
        root = self.roots[j][1]
        for _ in range(_SHRINKAGES):
            value, slope = root.value, root.slope
            step = 1 + value / slope if math.isfinite(value) and slope > 0 else 0.0
            radius *= max(_CARE * min(step, 1.0), _LEAST_SHRINKAGE)
            if is_over() or (j in self.proofs and self.proofs[j][0] >= radius):
                return
            question = Question(enclose(self.compacted, self.anchor, radius), self.functionals[j])
            answer = search_rival(question, lambda _: False, is_over, larger=root, most_regions=1)
            if answer.proof is not None:
                self.proofs[j] = (radius, answer.proof)
                return
            root = answer.root

    def _try_point(self, u: np.ndarray) -> bool:
        """Whether a point of the ball leads to a nearer misclassified input than is known."""
        d = u if self.directions is None else self.directions @ u
        distance = self.refine(self.anchor + d)
        nearer = distance < self.upper
        self.upper = min(self.upper, distance)
        return nearer

    def _guess_radius(self) -> float:
        """The distance of the boundary if the net were linear."""
        chain, distances, least = self.compacted.chain, [], []
        for j in self.rivals:
            functional = self.functionals[j]
            least.append(self.gaps[j] / bound_length(chain.weights[-1].T @ functional))
            slope = pull_back(functional, chain.weights, chain.slopes, self.values)
            steepness = bound_length(slope)
            distances.append(self.gaps[j] / steepness if steepness > 0 else math.inf)
        if math.isfinite(min(distances)):
            return min(distances)
        # Flat everywhere at the sample: the radius that norms of weights prove, whatever the unit.
        steepest = [bound_length(weight.reshape(-1)) for weight in chain.weights[:-1]]
        steepest += [float(np.abs(slope).max(initial=1.0)) for slope in chain.slopes]
        return float(min(least) / math.prod(steepest))


def _is_harmless(chain: Chain, functional: np.ndarray) -> bool:
    """Whether a gap is the same positive number for all inputs: its row of weights is 0."""
    weights, bias = functional @ chain.weights[-1], float(functional @ chain.biases[-1])
    errors = np.abs(functional) @ chain.weight_errors[-1]
    slack = float(np.abs(functional) @ chain.bias_errors[-1])
    return not weights.any() and not errors.any() and bias > slack
