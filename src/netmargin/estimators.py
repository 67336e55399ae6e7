"""The max-margin solvers with scikit-learn's face."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import kernels
from .errors import DataError
from .result import SoftSolution, Solution
from .solvers import f1_max_margin, f1_soft_margin, kernel_max_margin, kernel_soft_margin


class _MaxMarginClassifier(ClassifierMixin, BaseEstimator):
    """One problem for two classes, one against the rest for more; subclasses solve it.

    C=None asks for a hard margin; a number, for a soft one with that cost of hinge loss. Fitted attributes: classes_, solutions_ (one per
    problem), margin_ and gap_ (of the only problem, or one per class), support_ (samples with dual weight in any problem).
    """

    def fit(self, X, y):
        """Solve; X : (n, d), y : (n,) labels of any kind, at least two classes."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"All labels are {self.classes_[0]!r}: a classifier needs samples of more than one class.")
        self._prepare(X)
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self.solutions_ = [self._solve(X, np.where(index == k, 1.0, -1.0)) for k in positive]
        margins, gaps = np.array([s.margin for s in self.solutions_]), np.array([s.gap for s in self.solutions_])
        binary = len(self.classes_) == 2
        self.margin_, self.gap_ = (margins[0], gaps[0]) if binary else (margins, gaps)
        self.support_ = np.unique(np.concatenate([s.support for s in self.solutions_]))
        return self

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

    def _solve(self, X: np.ndarray, y: np.ndarray) -> Solution | SoftSolution:
        raise NotImplementedError

    def _scores(self, solution, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class VariationNormClassifier(_MaxMarginClassifier):
    """The max-margin infinitely wide two-layer ReLU net: `solvers.f1_max_margin` (Chizat and Bach 2020, (4)).

    C=None is the hard margin: data that cannot be separated then get margin_ 0 and constant scores. A number C > 0 minimizes ||theta||^2 / 2 + C times the hinge
    losses (`solvers.f1_soft_margin`). n_neurons_ counts the neurons of all problems.

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

    def _solve(self, X, y):
        options = {"bias": self.bias, "tol": self.tol, "time_limit": self.time_limit, "pricing": self.pricing, "seed": self.seed}
        return f1_max_margin(X, y, **options) if self.C is None else f1_soft_margin(X, y, C=self.C, **options)

    def _scores(self, solution, X):
        return solution.decision_function(X)


class _KernelClassifier(_MaxMarginClassifier):
    def _prepare(self, X):
        self._X = X
        self._K = self._kernel(X, X)

    def _solve(self, X, y):
        if self.C is None:
            return kernel_max_margin(self._K, y, tol=self.tol)
        return kernel_soft_margin(self._K, y, C=self.C, tol=self.tol)

    def _scores(self, solution, X):
        return solution.decision_function(self._kernel(X, self._X))

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class ReLUKernelClassifier(_KernelClassifier):
    """The max-margin classifier of F_2, nets with fixed uniform directions (Chizat and Bach 2020, (5)), without a free intercept.

    >>> from netmargin.estimators import ReLUKernelClassifier
    >>> ReLUKernelClassifier().fit([[0.0], [1.0], [3.0]], [0, 1, 1]).predict([[0.1], [2.0]]).tolist()
    [0, 1]
    """

    def __init__(self, *, C=None, bias=True, tol=1e-6):
        self.C = C
        self.bias = bias
        self.tol = tol

    def _kernel(self, A, B):
        return kernels.arc_cosine(A, B, bias=self.bias)


class NTKClassifier(_KernelClassifier):
    """The max-margin classifier in the tangent kernel space of a two-layer ReLU net (Wei et al. 2019, Section 2).

    r_w and r_u are the initial scales of the second and first layer.
    """

    def __init__(self, *, C=None, r_w=1.0, r_u=1.0, bias=True, tol=1e-6):
        self.C = C
        self.r_w = r_w
        self.r_u = r_u
        self.bias = bias
        self.tol = tol

    def _kernel(self, A, B):
        return kernels.ntk(A, B, r_w=self.r_w, r_u=self.r_u, bias=self.bias)
