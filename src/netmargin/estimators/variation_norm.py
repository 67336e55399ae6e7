"""The infinitely wide two-layer ReLU net as a classifier of scikit-learn."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import ArgumentError
from ..result import Status
from ..solvers import f1_max_margin, f1_soft_margin
from ..solvers.contradictions import recommended_cost
from .classifier import MaxMarginClassifier, one_or_all

_SEEDS = 2**31
"""Seeds of the search are drawn below this."""


def merge_samples(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first (m,) of each group of equal samples, the groups (n,), and the sums of their weights
    (m,): a weight of 2 and two copies are the same problem, to the last digit.
    """
    _, first, group = np.unique(
        np.column_stack([X, y]), axis=0, return_index=True, return_inverse=True
    )
    group = group.reshape(-1)
    return first, group, np.bincount(group, weights)


class SparseNets:
    """What the classifier and the regressor of few neurons share."""

    solutions_: list

    @property
    def n_neurons_(self) -> int:
        """The number of neurons of all problems together."""
        return sum(len(s.weights) for s in self.solutions_)

    def _read_options(self: Any) -> dict[str, Any]:
        """The options of the solvers. Raises ArgumentError for what is no random state."""
        try:
            seed = int(check_random_state(self.random_state).randint(_SEEDS))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None;"
                f" got {self.random_state!r}"
            ) from error
        return {
            "bias": self.bias,
            "tol": self.tol,
            "pricing": self.pricing,
            "seed": seed,
            "progress": self.verbose,
        }


class VariationNormClassifier(SparseNets, MaxMarginClassifier):
    """The best infinitely wide two-layer ReLU net in the variation norm, which has few neurons.

    A number C minimizes ||theta||^2 / 2 + C times the hinge losses, `solvers.f1_soft_margin`.
    C=None is the hard margin, `solvers.f1_max_margin`: data that cannot be separated then get
    margin_ 0, constant scores and a warning that names a C.

    By default `fit` ends where local search finds no neuron that is worth 1% more, which takes
    seconds for hundreds of samples and minutes for thousands; pricing="auto" with a smaller `tol`
    goes on to prove it.

    Parameters
    ----------
    C, bias, class_weight : optional
        As of `ReLUKernelClassifier`.
    tol : float, default 1e-2
        Relative gap up to which the status is OPTIMAL, where the search ends: of the proved
        bracket, or of the one that local search believes in where nothing better can be proved.
    time_limit : float, optional
        Seconds after which the whole of `fit` ends with the best nets so far and a warning; each
        class gets an equal part of what is left. No limit by default.
    pricing : {"local", "auto", "complete"}
        Whether and how it is proved that no neuron is missing, as in `solvers.f1_max_margin`;
        "local" by default, which proves a loose bound.
    random_state : int, RandomState or None, default 0
        Seed of the starts of local search.
    verbose : bool, default False
        Whether to show rounds and brackets as they come.

    Attributes
    ----------
    solutions_ : list
        The nets, one for two classes or one for each: `solutions_[k].to_network()` is a torch
        module, `.atoms` and `.weights` its neurons.
    gap_ : float or ndarray of shape (C,)
        The relative gap of the proved bracket; wide for pricing="local".
    local_gap_ : float or ndarray of shape (C,)
        The relative gap that local search believes in; it proves nothing.

    Examples
    --------
    >>> from netmargin.estimators import VariationNormClassifier
    >>> X, y = [[1, 1], [-1, -1], [1, -1], [-1, 1]], ["same", "same", "other", "other"]
    >>> xor = VariationNormClassifier(C=None).fit(X, y)
    >>> xor.predict([[2, 3], [-1, 2]]).tolist(), xor.n_neurons_
    (['same', 'other'], 4)

    Source: Chizat and Bach 2020, (4).
    """

    def __init__(
        self,
        *,
        C=1.0,
        bias=True,
        class_weight=None,
        tol=1e-2,
        time_limit=None,
        pricing="local",
        random_state=0,
        verbose=False,
    ):
        self.C = C
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.time_limit = time_limit
        self.pricing = pricing
        self.random_state = random_state
        self.verbose = verbose

    @property
    def local_gap_(self):
        """The relative gaps that local search believes in, as `gap_`."""
        return one_or_all([s.local_gap for s in self.solutions_])

    def _solve(self, X, labels, caps, tol, deadline, before):
        options = self._read_options()
        weights = np.ones(len(X)) if caps is None else caps
        first, group, merged = merge_samples(X, labels, weights)
        shares = weights / merged[group]
        X, solutions, known = X[first], [], None
        for done, y in enumerate(labels[first].T):
            # What a class does not need of its time is left to the next ones, as are its neurons.
            options |= {"time_limit": deadline.share(labels.shape[1] - done), "neurons": known}
            solutions.append(
                f1_max_margin(X, y, **options)
                if caps is None
                else f1_soft_margin(
                    X, y, C=float(merged.max()), sample_weight=merged / merged.max(), **options
                )
            )
            if solutions[-1].status is Status.INTERRUPTED:
                return solutions
            known = np.concatenate([s.atoms[:, :-1] for s in solutions])
        return [replace(s, dual=s.dual[group] * shares) for s in solutions]

    def _recommend_cost(self, X):
        return recommended_cost(float(np.sqrt((X**2).sum(1) + bool(self.bias)).mean()))

    def _compute_scores(self, X):
        return np.column_stack([s.decision_function(X) for s in self.solutions_])
