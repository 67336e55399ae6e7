"""The infinitely wide two-layer ReLU net as an estimator of scikit-learn."""

import numpy as np

from ..result import Status
from ..solvers import f1_max_margin, f1_soft_margin
from ..solvers.contradictions import recommended_cost
from .classifier import MaxMarginClassifier


class VariationNormClassifier(MaxMarginClassifier):
    """The max-margin infinitely wide two-layer ReLU net, as a classifier of scikit-learn.

    C=None is the hard margin, `solvers.f1_max_margin`: data that cannot be separated then get
    margin_ 0, constant scores and a warning that names a C. A number C minimizes ||theta||^2 / 2 +
    C times the hinge losses, `solvers.f1_soft_margin`.

    Parameters
    ----------
    C : float or None, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC`; None for a hard margin.
    bias : bool, default True
        Whether neurons have a bias.
    tol : float, default 1e-4
        Relative gap to the proved bound up to which the status of a problem is OPTIMAL.
    time_limit : float, optional
        Seconds after which the whole of `fit` ends with the best nets so far and a warning; each
        class gets an equal part of what is left. No limit by default.
    pricing : {"auto", "complete", "local"}
        How it is proved that no neuron is missing, as in `solvers.f1_max_margin`.
    seed : int, default 0
        Seed of the starts of local search.

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
        tol=1e-4,
        time_limit=None,
        pricing="auto",
        seed=0,
    ):
        self.C = C
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.time_limit = time_limit
        self.pricing = pricing
        self.seed = seed

    @property
    def n_neurons_(self) -> int:
        """The number of neurons of all problems together."""
        return sum(len(s.weights) for s in self.solutions_)

    def _solve(self, X, labels, caps, tol, deadline, before):
        options = {"bias": self.bias, "tol": tol, "pricing": self.pricing, "seed": self.seed}
        solutions = []
        for done, y in enumerate(labels.T):
            # What a class does not need of its part is there for the next ones.
            limit = deadline.share(labels.shape[1] - done)
            solutions.append(
                f1_max_margin(X, y, time_limit=limit, **options)
                if caps is None
                else f1_soft_margin(X, y, C=self.C, time_limit=limit, **options)
            )
            if solutions[-1].status is Status.INTERRUPTED:
                break
        return solutions

    def _recommend_cost(self, X):
        return recommended_cost(float(np.sqrt((X**2).sum(1) + self.bias).mean()))

    def _compute_scores(self, X):
        return np.column_stack([s.decision_function(X) for s in self.solutions_])
