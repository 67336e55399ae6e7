"""The least regularized logistic loss of infinitely wide two-layer ReLU nets, by column
generation.
"""

import time

import clarabel
import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, xlogy

from ..core.arguments import check_flag, check_number
from ..core.cone_program import minimize
from ..core.matrices import binary_data, warn_of_size
from ..losses import Logistic
from ..result import Status
from .columns.generation import Options
from .f1 import check_power, read_options
from .pricing.bounds import Prover
from .pricing.local import price_locally
from .progress import Progress
from .solution import LogisticVariationNormSolution

_COLUMNS_PER_ROUND = 32
_STARTS = 128
_PATIENCE = 4
_DUST = (1e-9, 1e-6, 1e-4)
_NEWTON_STEPS = 20
_STILL = 1e-14
_MOST_ROUNDS = 500


def f1_logistic(
    X,
    y,
    *,
    regularization: float,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
    power: int = 1,
) -> LogisticVariationNormSolution:
    """min of mean_n log(1 + exp(-y_n f(x_n))) + regularization nu(sphere), f(x) = int b relu(a .
    x~)^power d nu(a, b), over nonnegative measures nu on the sphere.

    It is the infimum over two-layer nets of any width of the mean loss + regularization ||theta||^2
    (power 2: without the output signs), to which perturbed Wasserstein gradient flow is compared.
    As regularization -> 0, f / nu(sphere) tends to the solution of `f1_max_margin`, where the data
    separate.

    regularization : lambda > 0. Other parameters as for `f1_max_margin`; tol bounds the relative
        gap between the objective and its proved lower bound mean_n H(p_n), H the binary entropy in
        nats, of weights p with |mean_n p_n y_n relu(u . x~_n)| <= 2 lambda for all unit u (power 2:
        lambda, and squares).
    `dual` : (n,), p / n.

    Raises
    ------
    DataError : data of a wrong shape or kind.
    ArgumentError : lambda <= 0, and the other arguments out of range.

    Examples
    --------
    >>> from netmargin.solvers import f1_logistic
    >>> one = f1_logistic([[1.0]], [1], regularization=0.1, bias=False)     # p = 2 lambda: objective H(0.2)
    >>> one.certified, round(one.objective, 6)
    (True, 0.500402)
    >>> f1_logistic([[1.0], [1.0]], [1, -1], regularization=0.1).mass        # contradictory labels: f = 0 is best
    0.0

    Source: Wei et al. 2018, Example 4.2 and Theorem E.4 (the mean, as in its proofs).
    """
    regularization, power = (
        check_number("regularization", regularization, above=0),
        check_power(power),
    )
    bias, progress, options = (
        check_flag("bias", bias),
        check_flag("progress", progress),
        read_options(tol, time_limit, pricing, seed),
    )
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The regularized logistic problem")
    if power == 2:
        data.require_squares()
    # Features of unit-norm points and neurons; a unit of weight alpha costs 2 lambda |z| (power 2:
    # lambda |z|^2) of mass.
    unit, cost = (
        (data.longest, 2 * regularization / data.longest)
        if power == 1
        else (data.longest**2, regularization / data.longest**2)
    )
    run = _Run(data.Z / data.size / (data.longest / data.size), data.y, cost, options, power)
    with Progress(progress, "regularized logistic loss") as shown:
        run.run(shown)
    used = np.flatnonzero(run.alphas)
    q = run.A[:, used] @ run.alphas[used]
    certified = run.status is Status.OPTIMAL
    return LogisticVariationNormSolution(
        objective=run.objective,
        lower_bound=min(run.lower, run.objective),
        certified=certified,
        status=run.status,
        dual=run.dual / len(q),
        seconds=run.seconds,
        atoms=np.column_stack([run.U[used], run.s[used]]) / (np.sqrt(2) if power == 1 else 1.0),
        weights=run.alphas[used] / unit * (2 if power == 1 else 1),
        bias=bias,
        power=power,
        log_loss=_log_mean_loss(q),
    )


class _Run:
    """Columns A (n, k), y_i s_j relu(u_j . z_i)^power of neurons U with signs s, their weights, and
    the best bracket so far.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, cost: float, options: Options, power: int):
        self._Z, self._y, self._cost, self._options, self._power = Z, y, cost, options, power
        self._random = np.random.default_rng(options.seed)
        self._deadline = (
            np.inf if options.time_limit is None else time.monotonic() + options.time_limit
        )
        self._prover = Prover(Z, power, options.pricing, self._deadline)
        self.U, self.s, self.A = np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros((len(Z), 0))
        self.alphas, self.objective = np.zeros(0), float(np.log(2))
        self.lower, self.dual = 0.0, np.zeros(len(Z))

    def run(self, shown: Progress) -> None:
        started = time.monotonic()
        try:
            self.status = self._generate(shown)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except TimeoutError:
            self.status = Status.TIME_LIMIT
        if self.lower == 0:
            slopes = self._slopes()
            self._offer(slopes, self._prover.relaxed(slopes * self._y / len(slopes)))
        self.seconds = time.monotonic() - started

    def _generate(self, shown: Progress) -> Status:
        attempts, tol = 0, self._options.tol
        for rounds in range(1, _MOST_ROUNDS + 1):
            p = self._slopes()
            prices = p * self._y / len(p)
            U, values = self._search(prices)
            best = max(np.abs(values).max(initial=0.0), self._cost)
            shown.show(rounds, self.objective, max(self.lower, self._bound(p, best)))
            before = self.objective
            # What search knows says that the bracket may close, or the weights no longer improve:
            # prove.
            if self.objective - self._bound(p, best) <= 0.5 * tol * self.objective or attempts:
                found = self._prover.price(
                    prices,
                    floor=self._cost,
                    found=best,
                    tol=tol,
                    count=_COLUMNS_PER_ROUND,
                    thoroughly=True,
                    report=lambda upper: None,
                )
                self._offer(p, found.upper_bound)
                if self.objective - self.lower <= tol * self.objective:
                    return Status.OPTIMAL
                U = np.concatenate([U, found.directions])
            self._add(U, prices)
            self._solve()  # a fraction of a second; what the search found is of use then
            if time.monotonic() > self._deadline:
                return Status.TIME_LIMIT
            attempts = 0 if self.objective < before * (1 - 0.01 * tol) else attempts + 1
            if attempts > _PATIENCE:
                break
        return Status.STALLED if self._prover.exact else Status.LOCALLY_OPTIMAL

    def _slopes(self) -> np.ndarray:
        return expit(-(self.A @ self.alphas))

    def _search(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        normal = self._random.normal(size=(_STARTS, self._Z.shape[1]))
        starts = np.concatenate([self.U[self.alphas > 0], self._Z, -self._Z, normal])
        starts = starts[np.linalg.norm(starts, axis=1) > 0]
        if len(starts) > 8 * _STARTS:
            starts = starts[self._random.choice(len(starts), 8 * _STARTS, replace=False)]
        return price_locally(self._Z, prices, starts, count=_COLUMNS_PER_ROUND, power=self._power)

    def _bound(self, p: np.ndarray, largest: float) -> float:
        """The dual objective at p, scaled until no neuron promises more than its cost."""
        p = p * min(1.0, self._cost / largest) if largest > 0 else p
        return float(-(xlogy(p, p) + xlogy(1 - p, 1 - p)).mean())

    def _offer(self, p: np.ndarray, largest: float) -> None:
        bound = self._bound(p, largest * (1 + 1e-12))
        if bound > self.lower:
            self.lower, self.dual = bound, p * min(1.0, self._cost / largest) if largest > 0 else p

    def _add(self, U: np.ndarray, prices: np.ndarray) -> None:
        """New neurons beside those with weight, each with the output sign that pays."""
        kept = self.alphas > 0
        values = np.maximum(U @ self._Z.T, 0.0) ** self._power @ prices
        signs = np.where(values >= 0, 1.0, -1.0)
        columns = signs * self._y[:, None] * np.maximum(self._Z @ U.T, 0.0) ** self._power
        self.U, self.s = np.concatenate([self.U[kept], U]), np.concatenate([self.s[kept], signs])
        self.A, self.alphas = (
            np.hstack([self.A[:, kept], columns]),
            np.concatenate([self.alphas[kept], np.zeros(len(U))]),
        )

    def _solve(self) -> None:
        """Weights of the present neurons by Newton's method, a quadratic program per step; judged,
        and kept if they are better than the ones so far.
        """
        alphas, k = self.alphas, len(self.alphas)
        for _ in range(_NEWTON_STEPS):
            slope, roots = self._model(np.arange(k), alphas)
            # In units of the cost and of the total weight, so that the solver's tolerances mean the
            # same for all costs.
            size = max(float(alphas.sum()), 1.0)
            roots = roots * np.sqrt(size / self._cost)
            found, _ = minimize(
                slope / self._cost - roots.T @ (roots @ alphas) / size,
                -sparse.identity(k),
                np.zeros(k),
                [clarabel.NonnegativeConeT(k)],
                quadratic=sparse.csc_matrix(roots.T @ roots),
                tol=1e-10,
                deadline=self._deadline,
            )
            step = np.maximum(found, 0.0) * size - alphas
            length = next(
                (
                    h
                    for h in 0.5 ** np.arange(12.0)
                    if self._value(alphas + h * step) < self._value(alphas)
                ),
                0.0,
            )
            if not length:
                break
            before, alphas = self._value(alphas), alphas + length * step
            if before - self._value(alphas) <= _STILL * before or time.monotonic() > self._deadline:
                break
        for threshold in _DUST:
            self._judge(
                self._newton(np.where(alphas > threshold * alphas.max(initial=0.0), alphas, 0.0))
            )

    def _model(self, used: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The objective's slope in the weights in use, and a root of its Hessian."""
        A, p = self.A[:, used], expit(-(self.A @ alphas))
        return self._cost - A.T @ p / len(p), np.sqrt(p * (1 - p) / len(p))[:, None] * A

    def _newton(self, alphas: np.ndarray) -> np.ndarray:
        """The optimum over the neurons that have weight, as long as their weights stay positive;
        others leave.
        """
        for _ in range(_NEWTON_STEPS):
            used = np.flatnonzero(alphas)
            slope, roots = self._model(used, alphas)
            step = np.linalg.lstsq(roots.T @ roots, -slope, rcond=1e-12)[0]
            shrinking = step < 0
            length = min(
                1.0, (-alphas[used] / np.where(shrinking, step, -1.0))[shrinking].min(initial=1.0)
            )
            moved = np.zeros_like(alphas)
            moved[used] = np.maximum(alphas[used] + length * step, 0.0)
            moved[moved <= 1e-12 * moved.max(initial=0.0)] = 0.0
            if not np.isfinite(moved).all() or self._value(moved) > self._value(alphas):
                break
            alphas = moved
        return alphas

    def _value(self, alphas: np.ndarray) -> float:
        return float(np.exp(_log_mean_loss(self.A @ alphas))) + self._cost * float(alphas.sum())

    def _judge(self, alphas: np.ndarray) -> None:
        """Keep these weights if they are better than the ones so far, or as good and fewer."""
        objective = self._value(alphas)
        fewer = np.count_nonzero(alphas) < np.count_nonzero(self.alphas)
        if objective < self.objective or (fewer and objective <= self.objective * (1 + 1e-14)):
            self.alphas, self.objective = alphas, objective


def _log_mean_loss(q: np.ndarray) -> float:
    return Logistic().log_sum(torch.from_numpy(q)) - float(np.log(len(q)))
