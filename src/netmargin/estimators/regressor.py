"""Regression by two-layer ReLU nets of least variation norm."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.arguments import check_flag, check_number
from ..core.caller import warn_caller
from ..core.deadline import Deadline
from ..core.matrices import check_sample_weight
from ..errors import DataError, Interrupted
from ..result import Status
from ..solvers import min_norm_interpolation
from ..solvers.regularized import f1_squared
from .variation_norm import SparseNets, merge_samples


class VariationNormRegressor(SparseNets, RegressorMixin, BaseEstimator):
    """The infinitely wide two-layer ReLU net with the least squared loss and variation norm, which
    has few neurons: a lasso over all neurons.

    It minimizes the mean of (f(x_n) - y_n)^2 / 2 + alpha ||theta||^2 / 2, once y is centred and of
    mean square 1. alpha=0 is the net of least norm through all the points,
    `solvers.min_norm_interpolation`. Several targets are fitted one by one.

    Parameters
    ----------
    alpha : float, default 0.01
        Price of the norm, >= 0, as in `sklearn.linear_model.Lasso` for a target of mean square 1:
        it is multiplied by the root mean square of each target, so that their units do not matter.
    fit_intercept : bool, default True
        Whether the mean of y is taken off first, at no price.
    bias, tol, time_limit, pricing, random_state, verbose : optional
        As of `VariationNormClassifier`.

    Attributes
    ----------
    solutions_ : list
        The nets, one for each target: `.atoms` and `.weights` are the neurons.
    gap_ : float or ndarray
        The relative gaps of the proved brackets; wide for pricing="local".
    intercept_ : ndarray
        What was taken off the targets.

    Examples
    --------
    >>> from netmargin.estimators import VariationNormRegressor
    >>> tent = VariationNormRegressor(alpha=1e-4).fit([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0])
    >>> tent.predict([[0.0], [0.5]]).round(2).tolist()
    [1.0, 0.5]

    Beyond the papers.
    """

    def __init__(
        self,
        *,
        alpha=0.01,
        fit_intercept=True,
        bias=True,
        tol=1e-2,
        time_limit=None,
        pricing="local",
        random_state=0,
        verbose=False,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.tol = tol
        self.time_limit = time_limit
        self.pricing = pricing
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Several targets are taken."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Fit samples X (n, d) with values y (n,) or (n, k) and weights `sample_weight` (n,) >= 0.

        For alpha=0 weights only leave out samples, those of weight 0. It warns
        (sklearn.exceptions.ConvergenceWarning) where a search ended before its tolerance. Returns
        the regressor itself. Raises DataError for data and ArgumentError for parameters that the
        solvers refuse; Ctrl-C raises `Interrupted`.
        """
        deadline = Deadline(self.time_limit)
        alpha = check_number("alpha", self.alpha, at_least=0)
        center = check_flag("fit_intercept", self.fit_intercept)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weights = check_sample_weight(sample_weight, len(y))
        values = y.reshape(len(y), -1)[weights > 0]
        X, weights = X[weights > 0], weights[weights > 0]
        first, _, weights = merge_samples(X, values, weights)
        X, values = X[first], values[first]
        self.intercept_ = np.average(values, axis=0, weights=weights) * center
        values = values - self.intercept_
        options = self._read_options()
        vars(self).pop("solutions_", None)
        solutions = []
        for done, target in enumerate(values.T):
            options["time_limit"] = deadline.share(values.shape[1] - done)
            spread = float(np.sqrt(np.average(target**2, weights=weights))) or 1.0
            price = {"regularization": alpha * spread, "sample_weight": weights}
            solutions.append(
                f1_squared(X, target, **price, **options)
                if alpha > 0
                else min_norm_interpolation(X, target, norm="l1", **options)
            )
            if solutions[-1].status is Status.INTERRUPTED:
                raise Interrupted("fit was interrupted: the regressor is not fitted.")
            if solutions[-1].status is Status.NOT_ATTAINABLE:
                raise DataError(
                    "No function takes these values: equal inputs have different values. Pass an"
                    " alpha above 0."
                )
        self.solutions_ = solutions
        self._single = y.ndim == 1
        gaps = [s.gap for s in solutions]
        self.gap_ = np.float64(gaps[0]) if self._single else np.array(gaps)
        self._warn()
        return self

    def _warn(self) -> None:
        """Warn of searches that ended early."""
        for status, remedy in (
            (Status.TIME_LIMIT, "The time limit ended the search: raise time_limit."),
            (Status.NOT_REACHED, "No net through all points was found: pass an alpha above 0."),
        ):
            if any(s.status is status for s in self.solutions_):
                warn_caller(
                    f"{remedy} Predictions are those of the best net so far.", ConvergenceWarning
                )

    def predict(self, X) -> np.ndarray:
        """Values (N,) or (N, k) of inputs X (N, d)."""
        check_is_fitted(self, "solutions_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        values = np.column_stack([s.decision_function(X) for s in self.solutions_])
        values += self.intercept_
        return values[:, 0] if self._single else values
