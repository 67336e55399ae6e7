"""The max-margin solvers as classifiers of scikit-learn."""

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
from .result import MarginSolution, SoftSolution, Status
from .solvers import f1_max_margin, f1_soft_margin, kernel_max_margin, kernel_soft_margin
from .solvers.contradictions import contradicting_pairs, recommended_cost


class _MaxMarginClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that solves one problem for two classes, or one against the rest for more;
    subclasses say which problem.

    Fitted attributes: classes_ (C,), solutions_ (one `MarginSolution` or `SoftSolution` for each
    problem), margin_ and gap_ (of the only problem, or one per class), support_ (samples with dual
    weight in any problem).
    """

    def fit(self, X, y):
        """Solve the problems of samples X (n, d) with labels y (n,) of at least two classes.

        It warns (sklearn.exceptions.ConvergenceWarning) where the time is up before a problem is
        solved, and where a hard margin does not exist, with the samples that contradict each other
        and a C to take. Returns the classifier itself. Raises DataError for data and ArgumentError
        for parameters that the solvers refuse. Ctrl-C raises `Interrupted`; it is not fitted then.
        """
        # Parameters are checked here, not in __init__: scikit-learn sets them as they are.
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
        vars(self).pop("solutions_", None)  # those of a fit before are not those of these data
        self._prepare(X)
        positive = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        solutions = []
        for done, k in enumerate(positive):
            # What a class does not need of its part is there for the next ones.
            limit = deadline.share(len(positive) - done)
            solution = self._solve(X, np.where(index == k, 1.0, -1.0), limit)
            # A classifier without all of its problems would answer for the wrong classes.
            if solution.status is Status.INTERRUPTED:
                raise Interrupted("fit was interrupted: the classifier is not fitted.")
            solutions.append(solution)
        self.solutions_ = solutions
        margins = np.array([s.margin for s in self.solutions_])
        gaps = np.array([s.gap for s in self.solutions_])
        binary = len(self.classes_) == 2
        self.margin_, self.gap_ = (margins[0], gaps[0]) if binary else (margins, gaps)
        self.support_ = np.unique(np.concatenate([s.support for s in self.solutions_]))
        self._warn(X, y, [self.classes_[k] for k in positive])
        return self

    def _warn(self, X: np.ndarray, y: np.ndarray, labels: list) -> None:
        """Warn of what a person must know who looks at no attribute; `labels` are those of the
        problems.
        """
        ended = {status: [s for s in self.solutions_ if s.status is status] for status in Status}
        if ended[Status.NOT_SEPARABLE]:
            pairs = contradicting_pairs(X, y)
            reason = ended[Status.NOT_SEPARABLE][0].note.partition(" For a soft margin")[0]
            if len(pairs):  # named with the labels that the caller knows, not with -1 and +1
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
                f" soft margin, for instance C={self._recommend_cost(X):g}: a larger one leaves"
                " fewer training errors, a smaller one a larger margin."
            )
        scaled = "Raise tol, or scale the features to one size"
        for status, what, remedy in (
            (Status.TIME_LIMIT, "The time limit", "Raise time_limit"),
            (Status.STALLED, "The precision of float64", scaled),
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
        """Scores of X (N, d): (N,) for two classes, positive for classes_[1], (N, C) for more."""
        check_is_fitted(self, "solutions_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.stack([self._compute_scores(s, X) for s in self.solutions_], axis=1)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Labels (N,) of inputs X (N, d): those of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _prepare(self, X: np.ndarray) -> None:
        """Compute once what the problems of all classes share; nothing by default."""

    def _solve(
        self, X: np.ndarray, y: np.ndarray, time_limit: float | None
    ) -> MarginSolution | SoftSolution:
        """Solve one problem with labels y in {-1, +1}; subclasses must define it."""
        raise NotImplementedError

    def _recommend_cost(self, X: np.ndarray) -> float:
        """A C for features of this size; subclasses must define it."""
        raise NotImplementedError

    def _compute_scores(self, solution, X: np.ndarray) -> np.ndarray:
        """Scores (N,) of one solution; subclasses must define it."""
        raise NotImplementedError


def _warn_of_convergence(message: str) -> None:
    """Warn as scikit-learn does, with the line of the call of `fit`."""
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


class VariationNormClassifier(_MaxMarginClassifier):
    """The max-margin infinitely wide two-layer ReLU net, as a classifier of scikit-learn.

    C=None is the hard margin, `solvers.f1_max_margin`: data that cannot be separated then get
    margin_ 0, constant scores and a warning that names a C. A number C minimizes ||theta||^2 / 2 +
    C times the hinge losses, `solvers.f1_soft_margin`.

    Parameters
    ----------
    C : float, optional
        Cost of a unit of hinge loss, > 0; a hard margin by default.
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
    >>> xor = VariationNormClassifier().fit(X, y)
    >>> xor.predict([[2, 3], [-1, 2]]).tolist(), xor.n_neurons_
    (['same', 'other'], 4)

    Source: Chizat and Bach 2020, (4).
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
        """The number of neurons of all problems together."""
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

    def _recommend_cost(self, X):
        return recommended_cost(float(np.sqrt((X**2).sum(1) + self.bias).mean()))

    def _compute_scores(self, solution, X):
        return solution.decision_function(X)


class _KernelClassifier(_MaxMarginClassifier):
    """A classifier in the space of a kernel, which is computed once for all classes; subclasses say
    which kernel.
    """

    def _prepare(self, X):
        self._X = X
        self._K = self._compute_kernel(X, X)

    def _solve(self, X, y, time_limit):
        if self.C is None:
            return kernel_max_margin(self._K, y, tol=self.tol, time_limit=time_limit)
        return kernel_soft_margin(self._K, y, C=self.C, tol=self.tol, time_limit=time_limit)

    def _recommend_cost(self, X):
        return recommended_cost(float(np.diag(self._K).mean()))

    def _compute_scores(self, solution, X):
        return solution.decision_function(self._compute_kernel(X, self._X))

    def _compute_kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The kernel (N, n) of inputs A (N, d) and B (n, d); subclasses must define it."""
        raise NotImplementedError


class ReLUKernelClassifier(_KernelClassifier):
    """The max-margin classifier of F_2, of nets with fixed uniform directions.

    C=None is the hard margin, `solvers.kernel_max_margin`; a number C the soft one,
    `solvers.kernel_soft_margin`; both with the kernel `kernels.arc_cosine`.

    Parameters
    ----------
    C : float, optional
        Cost of a unit of hinge loss, > 0; a hard margin by default.
    bias : bool, default True
        Whether neurons have a bias.
    tol : float, default 1e-6
        Relative gap to the proved bound up to which the status of a problem is OPTIMAL.
    time_limit : float, optional
        Seconds after which the whole of `fit` ends, as in `VariationNormClassifier`.

    Examples
    --------
    >>> from netmargin.estimators import ReLUKernelClassifier
    >>> classifier = ReLUKernelClassifier().fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> classifier.predict([[0.1], [2.0]]).tolist()
    [0, 1]

    Source: Chizat and Bach 2020, (5).
    """

    def __init__(self, *, C=None, bias=True, tol=1e-6, time_limit=None):
        self.C = C
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit

    def _compute_kernel(self, A, B):
        return kernels.arc_cosine(A, B, bias=self.bias)


class NTKClassifier(_KernelClassifier):
    """The max-margin classifier in the tangent kernel space of a two-layer ReLU net.

    C=None is the hard margin, `solvers.kernel_max_margin`; a number C the soft one,
    `solvers.kernel_soft_margin`; both with the kernel `kernels.ntk`.

    Parameters
    ----------
    C : float, optional
        Cost of a unit of hinge loss, > 0; a hard margin by default.
    r_w : float, default 1.0
        Initial scale of the second layer.
    r_u : float, default 1.0
        Initial scale of the first layer.
    bias : bool, default True
        Whether neurons have a bias.
    tol : float, default 1e-6
        Relative gap to the proved bound up to which the status of a problem is OPTIMAL.
    time_limit : float, optional
        Seconds after which the whole of `fit` ends, as in `VariationNormClassifier`.

    Examples
    --------
    >>> from netmargin.estimators import NTKClassifier
    >>> classifier = NTKClassifier().fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> classifier.predict([[0.1], [2.0]]).tolist()
    [0, 1]

    Source: Wei et al. 2019, Section 2.
    """

    def __init__(self, *, C=None, r_w=1.0, r_u=1.0, bias=True, tol=1e-6, time_limit=None):
        self.C = C
        self.r_w = r_w
        self.r_u = r_u
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit

    def _compute_kernel(self, A, B):
        r_w, r_u = check_number("r_w", self.r_w), check_number("r_u", self.r_u)
        return kernels.ntk(A, B, r_w=r_w, r_u=r_u, bias=self.bias)
