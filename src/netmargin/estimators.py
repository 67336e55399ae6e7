"""The max-margin solvers with scikit-learn's face."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import kernels
from .core.arguments import check_flag, check_number
from .core.deadline import Deadline
from .errors import DataError, Interrupted
from .result import SoftSolution, Solution, Status
from .solvers import f1_max_margin, f1_soft_margin, kernel_max_margin, kernel_soft_margin
from .solvers.contradictions import contradicting_pairs, recommended_cost


class _MaxMarginClassifier(ClassifierMixin, BaseEstimator):
    """One problem for two classes, one against the rest for more; subclasses solve it.

    C=None asks for a hard margin; a number, for a soft one with that cost of hinge loss. time_limit
    counts for the whole of `fit`. Fitted attributes: classes_, solutions_ (one per problem),
    margin_ and gap_ (of the only problem, or one per class), support_ (samples with dual weight in
    any problem).
    """

    def fit(self, X, y):
        """Solve.

        X : (n, d), y : (n,) labels of any kind, at least two classes.

        Warns (sklearn.exceptions.ConvergenceWarning) where the time is up before a problem is
        solved, and where a hard margin does not exist, with the samples that contradict each other
        and a C to take. Raises `Interrupted`, a KeyboardInterrupt, at Ctrl-C.
        """
        deadline = Deadline(self.time_limit)
        check_number("C", self.C, above=0, optional=True)
        check_number("tol", self.tol, above=0, below=1)
        check_flag("bias", self.bias)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"All labels are {self.classes_[0]!r}: a classifier needs samples of more than one"
                " class."
            )
        self._prepare(X)
        positive = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        self.solutions_ = []
        for done, k in enumerate(positive):
            solution = self._solve(
                X, np.where(index == k, 1.0, -1.0), deadline.share(len(positive) - done)
            )
            if solution.status is Status.INTERRUPTED:
                raise Interrupted(
                    "fit was interrupted. The solvers, such as f1_max_margin, return the best so"
                    " far instead."
                )
            self.solutions_.append(solution)
        margins, gaps = (
            np.array([s.margin for s in self.solutions_]),
            np.array([s.gap for s in self.solutions_]),
        )
        binary = len(self.classes_) == 2
        self.margin_, self.gap_ = (margins[0], gaps[0]) if binary else (margins, gaps)
        self.support_ = np.unique(np.concatenate([s.support for s in self.solutions_]))
        self._warn(X, y, [self.classes_[k] for k in positive])
        return self

    def _warn(self, X: np.ndarray, y: np.ndarray, labels: list) -> None:
        """Say what a person must know who looks at no attribute.

        labels : of the problems.
        """
        ended = {status: [s for s in self.solutions_ if s.status is status] for status in Status}
        if ended[Status.NOT_SEPARABLE]:
            pairs = contradicting_pairs(X, y)
            reason = ended[Status.NOT_SEPARABLE][0].note.partition(" For a soft margin")[0]
            if len(pairs):  # with the labels that the caller knows
                i, j = pairs[0]
                more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
                reason = (
                    f"Samples {i} and {j} are equal, but their labels are {y[i]} and {y[j]}{more}:"
                    " correct or drop one of them."
                )
            constant = (
                "Scores"
                if len(labels) == 1
                else f"Scores of {len(ended[Status.NOT_SEPARABLE])} of {len(labels)} classes"
            )
            _warn_of_convergence(
                f"{constant} are constant, because no hard margin exists. {reason} Or pass C, for a"
                f" soft margin, for instance C={self._recommended_cost(X):g}: a larger one leaves"
                " fewer training errors, a smaller one a larger margin."
            )
        for status, what, remedy in (
            (Status.TIME_LIMIT, "The time limit", "Raise time_limit"),
            (
                Status.STALLED,
                "The precision of float64",
                "Raise tol, or scale the features to one size",
            ),
        ):
            if ended[status]:
                named = (
                    ""
                    if len(labels) == 1
                    else f" for {len(ended[status])} of {len(labels)} classes"
                )
                gap = max(s.gap for s in ended[status])
                _warn_of_convergence(
                    f"{what} ended the search{named} at a relative gap of {gap:.2g}, above"
                    f" tol={self.tol:g}. Scores are those of the best solution so far. {remedy}."
                )

    def decision_function(self, X) -> np.ndarray:
        """Scores, (N,) for two classes (positive for classes_[1]), (N, C) for more."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.stack([self._scores(s, X) for s in self.solutions_], axis=1)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Labels of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _prepare(self, X: np.ndarray) -> None:
        pass

    def _solve(
        self, X: np.ndarray, y: np.ndarray, time_limit: float | None
    ) -> Solution | SoftSolution:
        raise NotImplementedError

    def _recommended_cost(self, X: np.ndarray) -> float:
        raise NotImplementedError

    def _scores(self, solution, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def _warn_of_convergence(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=4)  # at the call of `fit`


class VariationNormClassifier(_MaxMarginClassifier):
    """The max-margin infinitely wide two-layer ReLU net: `solvers.f1_max_margin` (Chizat and Bach
    2020, (4)).

    C=None is the hard margin: data that cannot be separated then get margin_ 0, constant scores and
    a warning that names a C. A number C > 0 minimizes ||theta||^2 / 2 + C times the hinge losses
    (`solvers.f1_soft_margin`). n_neurons_ counts the neurons of all problems.
    time_limit : seconds for the whole of `fit`; each class gets an equal part of what is left. The
        net then is the best so far, with a warning.

    Examples
    --------
    >>> from netmargin.estimators import VariationNormClassifier
    >>> xor = VariationNormClassifier().fit([[1, 1], [-1, -1], [1, -1], [-1, 1]], ["same", "same", "other", "other"])
    >>> xor.predict([[2, 3], [-1, 2]]).tolist(), xor.n_neurons_
    (['same', 'other'], 4)
    """

    def __init__(self, *, C=None, bias=True, tol=1e-4, time_limit=None, pricing="auto", seed=0):
        self.C = C
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit
        self.pricing = pricing
        self.seed = seed

    @property
    def n_neurons_(self) -> int:
        """Neurons of all problems together."""
        return sum(len(s.weights) for s in self.solutions_)

    def _solve(self, X, y, time_limit):
        options = {
            "bias": self.bias,
            "tol": self.tol,
            "time_limit": time_limit,
            "pricing": self.pricing,
            "seed": self.seed,
        }
        return (
            f1_max_margin(X, y, **options)
            if self.C is None
            else f1_soft_margin(X, y, C=self.C, **options)
        )

    def _recommended_cost(self, X):
        return recommended_cost(float(np.sqrt((X**2).sum(1) + self.bias).mean()))

    def _scores(self, solution, X):
        return solution.decision_function(X)


class _KernelClassifier(_MaxMarginClassifier):
    def _prepare(self, X):
        self._X = X
        self._K = self._kernel(X, X)

    def _solve(self, X, y, time_limit):
        if self.C is None:
            return kernel_max_margin(self._K, y, tol=self.tol, time_limit=time_limit)
        return kernel_soft_margin(self._K, y, C=self.C, tol=self.tol, time_limit=time_limit)

    def _recommended_cost(self, X):
        return recommended_cost(float(np.diag(self._K).mean()))

    def _scores(self, solution, X):
        return solution.decision_function(self._kernel(X, self._X))

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class ReLUKernelClassifier(_KernelClassifier):
    """The max-margin classifier of F_2, nets with fixed uniform directions (Chizat and Bach 2020,
    (5)), without a free intercept.

    C, time_limit : as for `VariationNormClassifier`.

    Examples
    --------
    >>> from netmargin.estimators import ReLUKernelClassifier
    >>> ReLUKernelClassifier().fit([[0.0], [1.0], [3.0]], [0, 1, 1]).predict([[0.1], [2.0]]).tolist()
    [0, 1]
    """

    def __init__(self, *, C=None, bias=True, tol=1e-6, time_limit=None):
        self.C = C
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit

    def _kernel(self, A, B):
        return kernels.arc_cosine(A, B, bias=self.bias)


class NTKClassifier(_KernelClassifier):
    """The max-margin classifier in the tangent kernel space of a two-layer ReLU net (Wei et al.
    2019, Section 2).

    r_w and r_u are the initial scales of the second and first layer.
    C, time_limit : as for `VariationNormClassifier`.
    """

    def __init__(self, *, C=None, r_w=1.0, r_u=1.0, bias=True, tol=1e-6, time_limit=None):
        self.C = C
        self.r_w = r_w
        self.r_u = r_u
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit

    def _kernel(self, A, B):
        r_w, r_u = check_number("r_w", self.r_w), check_number("r_u", self.r_u)
        return kernels.ntk(A, B, r_w=r_w, r_u=r_u, bias=self.bias)
