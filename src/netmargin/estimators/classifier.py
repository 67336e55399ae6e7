"""What all max-margin classifiers share: the face of scikit-learn."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.arguments import check_flag, check_number, check_optional
from ..core.caller import warn_caller
from ..core.deadline import Deadline
from ..core.matrices import SolverData, check_sample_weight
from ..errors import ArgumentError, DataError, Interrupted
from ..result import Status
from ..solvers.contradictions import contradicting_pairs


class MaxMarginClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that solves one problem, or one against the rest for each of several classes."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Solve the problems of samples X (n, d) with labels y (n,) of at least two classes.

        `sample_weight` (n,) are factors >= 0 of C; a hard margin leaves out samples of weight 0. It
        warns (sklearn.exceptions.ConvergenceWarning) where a problem is not solved, and where a
        hard margin does not exist, with samples that contradict each other and a C to take. Raises
        DataError for data and ArgumentError for parameters that the solvers refuse. Ctrl-C raises
        `Interrupted`; it is not fitted then.
        """
        # Parameters are checked here, not in __init__: scikit-learn sets them as they are.
        deadline = Deadline(self.time_limit)
        cost = check_optional(check_number, "C", self.C, above=0)
        tol = check_number("tol", self.tol, above=0, below=1)
        check_flag("bias", self.bias)
        if cost is None and self.class_weight is not None:
            raise ArgumentError(
                "class_weight are factors of C, and C=None is the hard margin, which has no cost:"
                " pass a number C, for instance C=1.0."
            )
        X, y = validate_data(self, X, y, dtype=np.float64)
        SolverData(X, y).require_squares()
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y)
            check_sample_weight(weights, len(y), "class_weight times sample_weight")
        kept = np.flatnonzero(weights)
        # A class whose samples all weigh nothing is one all the same, as in scikit-learn.
        classes, index = np.unique(y, return_inverse=True)
        X, y, weights, index = X[kept], y[kept], weights[kept], index[kept]
        if len(found := np.unique(y)) < 2:
            raise DataError(
                f"All labels{' of samples with weight' * (len(classes) > 1)} are"
                f" {found.tolist()[0]!r}: a classifier needs samples of more than one class."
            )
        before = self.__dict__.pop("solutions_", None)  # not those of these data
        self.classes_ = classes
        caps = None if cost is None else cost * weights
        solutions = self._solve(X, index, caps, tol, deadline, before)
        # A classifier without all of its problems would answer for the wrong classes.
        if any(s.status is Status.INTERRUPTED for s in solutions):
            raise Interrupted("fit was interrupted: the classifier is not fitted.")
        self.solutions_ = solutions
        self.margin_ = one_or_all([s.margin for s in solutions])
        self.gap_ = one_or_all([s.gap for s in solutions])
        self.support_ = kept[np.unique(np.concatenate([s.support for s in solutions]))]
        self._warn(X, y, kept)
        return self

    def _warn(self, X: np.ndarray, y: np.ndarray, kept: np.ndarray) -> None:
        """Warn of what nobody should miss; `kept` are the samples' numbers in the caller's data."""
        problems = len(self.solutions_)
        ended = {status: [s for s in self.solutions_ if s.status is status] for status in Status}
        if unseparated := ended[Status.NOT_SEPARABLE]:
            pairs = contradicting_pairs(X, y)
            reason = unseparated[0].note.partition(" For a soft margin")[0].strip()
            if len(pairs):  # named with the labels that the caller knows, not with -1 and +1
                i, j = pairs[0]
                more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
                reason = (
                    f"Samples {kept[i]} and {kept[j]} are equal, but their labels are {y[i]} and"
                    f" {y[j]}{more}: correct or drop one of them."
                )
            some = "" if problems == 1 else f" of {len(unseparated)} of {problems} classes"
            warn_caller(
                f"Scores{some} are constant, because no hard margin exists. {reason} Or pass C, for"
                f" a soft margin, for instance C={self._recommend_cost(X):g}: a larger one leaves"
                " fewer training errors, a smaller one a larger margin.",
                ConvergenceWarning,
            )
        scaled = "Raise tol, or scale the features to one size"
        for status, what, remedy in (
            (Status.TIME_LIMIT, "The time limit", "Raise time_limit"),
            (Status.STALLED, "The precision of float64", scaled),
        ):
            if ended[status]:
                named = "" if problems == 1 else f" for {len(ended[status])} of {problems} classes"
                gap = max(self._read_gap(s) for s in ended[status])
                warn_caller(
                    f"{what} ended the search{named} at a relative gap of {gap:.2g}, above"
                    f" tol={self.tol:g}. Scores are those of the best solution so far. {remedy}.",
                    ConvergenceWarning,
                )

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of X (N, d): (N,) for two classes, positive for classes_[1], (N, C) for more."""
        check_is_fitted(self, "solutions_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self._compute_scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Labels (N,) of inputs X (N, d): those of the largest score."""
        scores = self.decision_function(X)
        classes: np.ndarray = self.classes_
        return classes.take(scores > 0 if scores.ndim == 1 else scores.argmax(1))

    def _solve(
        self, X: Any, index: Any, caps: Any, tol: Any, deadline: Any, before: Any
    ) -> list[Any]:
        """Solve the problems of classes `index` (n,) with costs `caps` (n,) of a unit of loss, hard
        for None; `before` are the solutions of the last fit.
        """
        raise NotImplementedError

    def _read_gap(self, solution: Any) -> float:
        """The gap that `tol` is about."""
        return float(solution.gap)

    def _recommend_cost(self, X: np.ndarray) -> float:
        """A C for features of this size."""
        raise NotImplementedError

    def _compute_scores(self, X: np.ndarray) -> np.ndarray:
        """Scores (N, k) of inputs X (N, d) by the k problems."""
        raise NotImplementedError


def one_or_all(values: list[float]) -> Any:
    """The only number, or an array of several."""
    return np.float64(values[0]) if len(values) == 1 else np.array(values)
