"""Sliding columns: the best two-layer net, one output or several, by rounds in which neurons that
are worth more than they cost are added, all neurons descend together, and their weights are solved
for. Its gap is local: it says how hard was searched for a better neuron, and proves nothing.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.progress import Progress
from ...nets.threads import one_thread_of_blas
from ...result import Bracket, Status
from .activations import RELU, Activation
from .constraints import asks_for_values, keep_constraints, raise_margins
from .exact_weights import Cap, LinearWeights, most_neurons, weigh_exactly
from .losses import Loss, QuadraticLoss
from .multipliers import Multipliers
from .samples import Samples, respond
from .search import QUICK, QUICK_OF_SEVERAL, THOROUGH, Look, find_neurons
from .slide import slide
from .weights import weigh

# These numbers trade rounds against the time of a round, and were set by trial on digits, 5,000 and
# 100,000 x 20. The judge rests on none of them.

_ADDED, _ADDED_OF_SEVERAL, _WORTH = 32, 192, 0.02
"""Neurons added in a round for one output and for several, which have more maxima: with starts near
known ones, 192 led to an objective of 53.00 after 61 s on 5,000 x 20 with five classes, where 96
without led to 53.54. Those count whose surplus is above the last part of the largest one.
"""
_SEED_MASS, _DUST = 1e-2, 1e-3
"""The weight of a new neuron, in units of the mean one: enough to grow, too little to disturb; and
the weight below which neurons are dropped, or half of them would carry a fiftieth of it all.
"""
_EXACT_DUST = 1e-2
"""The same for weights that are exact, in units of the tolerance too: constraints hold by small
weights as well, and what is dropped costs them about as much.
"""
_POOLED = 8
"""Rounds whose new neurons exact weights know of: without them dual weights forget what they were
to be moved away from, and come back.
"""
_BEYOND = 100
"""Rounds with more neurons than exact weights can afford until the last ones are left out. Problems
that close with approximate weights did so in fewer; iris with a hard margin stayed at a gap of .45
for 400 rounds and 22 CPU seconds, where the first 375 neurons alone lead below .01.
"""
_MOST_LINEAR = 2000
"""Samples up to which weights are a linear program: a teacher's hard margin, 10,000 x 20, had a gap
of .9 after 16 CPU seconds, most of them its simplex method's, and of .34 after 22 without.
"""
_MOST_VALUES = 100
"""Values asked for up to which weights are exact: each has a multiplier, and none leaves. For those
of five neurons at 301 and 835 samples gaps were .41 and .99 after 23 and 100 CPU seconds, and are
.003 and .001 after 5 and 9.
"""
_STEADY = 0.3
"""How much of the best coefficients remains in those at which neurons are looked for where losses
have corners or outputs are several: exact ones leap from vertex to vertex, and those of several
outputs swing. Half of the gap after as many seconds, or on digits half as many neurons, after 17,
25 and 18 CPU seconds from three seeds (26 and 23 from the first two without it). In a
linear program it is drawn, with this mean: with one part alone some cycle, and of 30 small sets
with equality 3 stayed at gaps up to 1e-3 for 400 rounds.
"""
_SLIDES, _ROUNDS_A_SLIDE = 50, 2
"""Steps of all neurons in a slide, and the rounds from one to the next: a round without one costs
little, and its bound is better, as the neurons that were added stay where they were missed.
"""
_ROUNDS_A_RAISE = 40
"""Rounds from one net whose margins are raised to the next: one takes as long as eight rounds."""
_APART, _SAME = 1e-4, 1e-14
"""Neurons nearer than this in 1 - cosine are merged, or at an angle of the tolerance, but for
rounding: those missed by less would be refused, and three classes of the plane had gaps to 7e-5.
"""
_MANY, _FIRST_ROUNDS, _MEMORY = 3000, 2, 5
"""From so many samples on, and after the first rounds, samples far beyond their target in all of
the last rounds are left out of a round: without that memory they come back by thousands.
"""
_SINGLE = 1000
"""Samples from which on they are kept and multiplied in float32: fewer take no time."""
_TINY = 1e-100
"""The least value of a neuron that bounds are scaled by."""
_ROUNDING = 1e-6
"""A bound is this part above the objective by the rounding of float32 alone."""
_MOST_ROUNDS, _MOST_ROUNDS_OF_MANY = 400, 4000
"""An emergency brake. Hard margins of 100,000 samples gain after 400 rounds, 100 seconds, too."""
_HOPELESS = 1e10
"""A bound above this, or multipliers that are allowed to be, for inputs and targets of size 1, are
those of constraints that cannot be kept: they grow from round to round.
"""


@dataclass(frozen=True, kw_only=True)
class SlidNet:
    """Neurons W (k, D) of length 1 with outputs A (k, K), their objective in float64, and the lower
    bound by coefficients `dual` (n, K) if the look has missed no neuron.
    """

    W: np.ndarray
    A: np.ndarray
    objective: float
    local_bound: float
    dual: np.ndarray
    look: Look
    rounds: int
    status: Status

    @property
    def local_gap(self) -> float:
        """The relative gap if the look has missed no neuron."""
        return Bracket(min(self.local_bound, self.objective), self.objective).gap


def slide_columns(
    Z: np.ndarray,
    loss: Loss,
    *,
    activation: Activation = RELU,
    tol: float = 1e-2,
    deadline: float = np.inf,
    seed: int = 0,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    progress: bool = False,
) -> SlidNet:
    """Minimize sum_j |A_j| + loss over neurons of inputs Z (n, D), to a local gap of `tol` after a
    thorough look, or until the deadline (time.monotonic) or Ctrl-C, from the net `start`.
    """
    with one_thread_of_blas(), Progress(progress, "sliding neurons") as display:
        descent = _Descent(Samples(Z, loss, activation), tol, seed, start)
        status = Status.STALLED
        try:
            for rounds in range(_MOST_ROUNDS if len(Z) < _MANY else _MOST_ROUNDS_OF_MANY):
                descent.price()
                line = f"local gap {descent.best.local_gap:.1e}  {len(descent.W)} neurons"
                line += f"  {descent.in_use:,} samples in use"
                display.draw(rounds, None, line, "  (Ctrl-C returns the best so far)")
                if descent.best.local_gap <= tol and descent.judge() <= tol:
                    status = Status.LOCALLY_OPTIMAL
                    break
                # A first net is better than none, whatever the time.
                if rounds and time.monotonic() > deadline:
                    status = Status.TIME_LIMIT
                    break
                if descent.is_hopeless:
                    break
                descent.descend()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    return replace(descent.best, status=status)


class _Descent:
    """The present neurons W (k, D) with outputs A (k, K), and the best net so far."""

    def __init__(self, exact: Samples, tol: float, seed: int, start: Any) -> None:
        """`exact` are the samples in float64."""
        (n, D), K = exact.Z.shape, exact.loss.labels.outputs
        dtype = np.float32 if n >= _SINGLE else np.float64
        self._exact, self._samples = exact, replace(exact, Z=exact.Z.astype(dtype, copy=False))
        self._random, self._exact_dust = np.random.default_rng(seed), _EXACT_DUST * tol
        self._merged = 1 - min(_APART, max(tol**2, _SAME))
        self._added, self._look = (
            (_ADDED, QUICK) if K == 1 else (_ADDED_OF_SEVERAL, QUICK_OF_SEVERAL)
        )
        self.W, self.A = np.zeros((0, D)), np.zeros((0, K))
        if start is not None:
            self.W, self.A = start
        self._pool = self.W[:0]  # neurons that were missed in the last rounds
        self._recent, self._new = np.zeros((0, D)), (self.W[:0], self.A[:0])
        self._F = self._samples.outputs(self.W, self.A)
        many = asks_for_values(exact.loss) and n * K > _MOST_VALUES
        self._multipliers = (
            Multipliers(exact.loss, self._find_largest, many)
            if isinstance(exact.loss, QuadraticLoss) and exact.loss.exact
            else None
        )
        linear = self._multipliers and K == 1 and not many and n <= _MOST_LINEAR
        self._cap = Cap()
        self._linear = LinearWeights(exact, self._cap) if linear else None
        # The others of one output are smooth, and their weights exact anyway.
        self._exactly = linear or (isinstance(exact.loss, QuadraticLoss) and K > 1 and not many)
        leaping = self._multipliers and (linear or self._multipliers.capped)
        self._steadied = K > 1 or leaping
        self._rounds, self._last_near, self._beyond = 0, np.zeros(n, int), 0
        self._judged: list[np.ndarray] = []  # the best coefficients of thorough looks
        self.in_use = n
        self.best = SlidNet(
            W=self.W[:0],
            A=self.A[:0],
            objective=exact.loss.value(np.zeros((n, K))),
            local_bound=-np.inf,
            dual=np.zeros((n, K)),
            look=QUICK,
            rounds=0,
            status=Status.RUNNING,
        )
        self._offer_net()

    @property
    def is_hopeless(self) -> bool:
        """Whether the constraints cannot be kept."""
        # Once a net keeps them, multipliers that grow are those of values that bind each other.
        cap = self._cap.value if self.best.objective == np.inf else 0.0
        return max(self.best.local_bound, cap) > _HOPELESS

    @property
    def _smooth(self) -> Loss:
        """The loss of this round."""
        return self._multipliers.loss if self._multipliers else self._exact.loss

    def price(self) -> None:
        """Look for neurons of large value, which bound the objective and are added next."""
        C = self._smooth.slopes(self._F)
        if self._steadied:
            steady = self._random.uniform(0, 2 * _STEADY) if self._linear else _STEADY
            C = (1 - steady) * C + steady * self.best.dual
        W, G = self._find(C, self._look)
        self._largest = float(np.linalg.norm(G, axis=1).max(initial=0.0))
        self._offer_bound(C, G, self._look)
        self._recent = W[: self._added]
        self._seed(W, G)

    def _seed(self, W: np.ndarray, G: np.ndarray) -> None:
        """Choose those of the neurons W (m, D) with responses G (m, K) that are added next."""
        values = np.linalg.norm(G, axis=1)
        largest = values.max(initial=0.0)
        worth = values > 1 + _WORTH * max(largest - 1, 0.0)
        if len(self.W):
            worth &= (W @ self.W.T).max(1) < self._merged
        best = np.flatnonzero(worth)[: self._added]
        masses = np.linalg.norm(self.A, axis=1)
        mass = _SEED_MASS * (masses.mean() if len(masses) else 1 / max(largest, 1.0))
        self._new = W[best], mass * G[best] / values[best, None]

    def descend(self) -> None:
        """Add neurons, slide all if it is time, solve for their weights, and learn multipliers."""
        self._rounds += 1
        loss = self._smooth
        self._last_near[loss.near(self._F)] = self._rounds
        samples = replace(self._samples, loss=loss)
        if len(self._F) >= _MANY and self._rounds > _FIRST_ROUNDS:
            samples = samples.take(np.flatnonzero(self._last_near > self._rounds - _MEMORY))
        self.in_use = len(samples.Z)
        W, A = np.concatenate([self.W, self._new[0]]), np.concatenate([self.A, self._new[1]])
        before = W
        if len(W) and self._rounds % _ROUNDS_A_SLIDE == 1:
            W, A = slide(samples, W, A, _SLIDES)
            W, A = _tidy(W, A, self._merged)
        p = self._weigh_exactly(W, before) if self._exactly else None
        if p is None:
            self.W, self.A = _tidy(W, weigh(samples, W, A), self._merged) if len(W) else (W, A)
        self._F = self._samples.outputs(self.W, self.A)
        if self._multipliers:
            if p is None:
                smooth = self._multipliers.loss
                self._multipliers.learn_late(smooth.multipliers(self._F), self._largest)
            else:
                self._multipliers.learn(p)
        self._offer_net()

    def _weigh_exactly(self, W: np.ndarray, before: np.ndarray) -> np.ndarray | None:
        """Take exact weights of W (k, D) and helpers, if affordable; returns multipliers (n, R)."""
        if self._linear:
            known = np.unique(np.concatenate([W, before]), axis=0)
            W, A, p = self._linear.weigh(known, self.best.local_bound)
            self.W, self.A = _drop_dust(W, A, self._exact_dust)
            return p
        new = self._new[0]
        pool = _leave_out(self._pool, new, self._merged)
        self._pool = np.concatenate([new, pool])[: _POOLED * self._added]
        # A smooth loss falls in a slide; one with corners may rise, where neurons before it help.
        helpers = [before, self._pool] if self._multipliers else [self._pool]
        others = [_leave_out(these, W, self._merged) for these in helpers]
        candidates = np.concatenate([W, *others])
        most = most_neurons(self._exact)
        if len(candidates) > most:
            self._beyond += 1
            if self._beyond <= _BEYOND:
                return None
            candidates = candidates[:most]
        loss = self._exact.loss
        assert isinstance(loss, QuadraticLoss)
        if loss.exact:
            loss = self._cap.limit(loss)
        found = weigh_exactly(replace(self._exact, loss=loss), candidates)
        if found is None:
            return None
        A, p = found
        self._cap.rise(p, loss.target, self.best.local_bound)
        self.W, self.A = _drop_dust(candidates, A, self._exact_dust)
        return p

    def judge(self) -> float:
        """The local gap of the best net by a thorough look, the only one that counts from now on:
        what it finds is added next, and later looks take more starts.
        """
        C = self.best.dual
        W, _ = self._find(C, THOROUGH)
        # In float64, as the objective of the best net is.
        G = respond(self._exact.Z, C, W, self._exact.activation)
        self._judged.append(C)
        self.best = replace(self.best, local_bound=-np.inf)
        for dual in self._judged:  # the best of former looks, by what this one found as well
            met = respond(self._exact.Z, dual, W, self._exact.activation)
            # All of them were scaled by what was found before, which still holds.
            self._offer_bound(dual, met, THOROUGH, most=1.0)
        self._judged = [self.best.dual]
        self._seed(W, G)
        self._look_harder()
        return self.best.local_gap

    def _look_harder(self) -> None:
        """Take twice as many starts from now on."""
        self._look = replace(self._look, starts=min(2 * self._look.starts, THOROUGH.starts))

    def _find(self, C: np.ndarray, look: Look) -> tuple[np.ndarray, np.ndarray]:
        """Neurons of large value at C (n, K), largest first, with their responses."""
        known = np.concatenate([self._recent, self.W])
        Z, activation = self._samples.Z, self._samples.activation
        return find_neurons(Z, C, known, look, activation, self._random)

    def _find_largest(self, C: np.ndarray) -> float:
        """The largest value of a neuron at C (n, K)."""
        _, G = self._find(C, QUICK)
        return float(np.linalg.norm(G, axis=1).max(initial=0.0))

    def _offer_net(self) -> None:
        """Keep the present net if its objective is best."""
        W, A = self.W, self.A
        if self._rounds % _ROUNDS_A_RAISE == 0:
            W, A = raise_margins(self._exact, W, A)
        W, A, objective = keep_constraints(self._exact, W, A)
        # The last net is returned where none keeps the constraints.
        if objective <= self.best.objective:
            self.best = replace(self.best, W=W, A=A, objective=objective, rounds=self._rounds)
            self._refute_bound()

    def _offer_bound(self, C: np.ndarray, G: np.ndarray, look: Look, most: float = np.inf) -> None:
        """Keep a multiple up to `most` of C (n, K), at which a look met G, if its bound is best."""
        largest = max(float(np.linalg.norm(G, axis=1).max(initial=0.0)), _TINY)
        C = C * self._exact.loss.scale(C, min(most, 1 / largest))
        bound = self._exact.loss.bound(C)
        if bound > self.best.local_bound:
            self.best = replace(self.best, local_bound=bound, dual=C, look=look)
            self._refute_bound()

    def _refute_bound(self) -> None:
        """Forget a bound above the objective, whose look missed a neuron, and look harder."""
        if self.best.local_bound > self.best.objective * (1 + _ROUNDING):
            self.best = replace(self.best, local_bound=-np.inf)
            self._look_harder()


def _leave_out(W: np.ndarray, others: np.ndarray, cosine: float) -> np.ndarray:
    """The neurons W (k, D) that do not nearly coincide with others."""
    return W[(W @ others.T).max(1, initial=0.0) <= cosine, :]


def _tidy(W: np.ndarray, A: np.ndarray, cosine: float) -> tuple[np.ndarray, np.ndarray]:
    """Merge neurons of a larger cosine, and drop those without weight."""
    W, A = _drop_dust(W, A, _DUST)
    kept: list[int] = []
    free = np.ones(len(W), dtype=bool)
    merged = np.zeros_like(A)
    for index in range(len(W)):
        if free[index]:
            same = free & (W @ W[index] > cosine)
            merged[index] = A[same].sum(0)
            kept.append(index)
            free &= ~same
    return W[kept], merged[kept]


def _drop_dust(W: np.ndarray, A: np.ndarray, part: float) -> tuple[np.ndarray, np.ndarray]:
    """The neurons above this part of the mean weight, the largest first."""
    masses = np.linalg.norm(A, axis=1)
    order = np.argsort(-masses, kind="stable")
    order = order[masses[order] > part * masses.sum() / max(len(masses), 1)]
    return W[order], A[order]
