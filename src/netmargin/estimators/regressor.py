"""Regression by two-layer ReLU nets of least variation norm."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.arguments import check_flag, check_number
from ..core.caller import warn_caller
from ..core.deadline import Deadline
from ..core.matrices import SolverData, check_sample_weight, split_lengths
from ..errors import DataError, Interrupted
from ..result import Status
from ..solvers import fit_two_layer_net, min_norm_interpolation
from ..solvers.regularized import f1_squared
from .variation_norm import SparseNets


@dataclass(kw_only=True, eq=False, repr=False)
class VariationNormRegressor(SparseNets, RegressorMixin, BaseEstimator):
    """The infinitely wide two-layer ReLU net with the least squared loss and variation norm, which
    has few neurons: a lasso over all neurons.

    It minimizes the mean of |f(x_n) - y_n|^2 / 2 + alpha ||theta||^2 / 2, once each target is
    centred and of mean square 1, as `solvers.fit_two_layer_net` does; several targets share their
    neurons. alpha=0 is the net of least norm through all the points.

    Parameters
    ----------
    alpha : float, default 0.01
        Price of the norm, >= 0, as in `sklearn.linear_model.Lasso` for a target of mean square 1:
        units of targets do not matter, those of features do, so scale them to unit variance.
    fit_intercept : bool, default True
        Whether the mean of y is taken off first, at no price.
    tol : float, default 1e-2
        Relative gap up to which the status is LOCALLY_OPTIMAL, as of `VariationNormClassifier`.
    bias, time_limit, warm_start, pricing, random_state, verbose : optional
        As of `VariationNormClassifier`; `pricing` proves nets of one target.

    Attributes
    ----------
    solutions_ : list
        The net of all targets in their units of mean square 1, a `solvers.TwoLayerFit`; with
        `pricing`, a solution of one target with `.atoms` and `.weights`.
    local_gap_, gap_, n_neurons_
        As of `VariationNormClassifier`.
    intercept_, scale_ : ndarray of shape (k,)
        What was taken off the targets, and their root mean squares then.

    Examples
    --------
    >>> from netmargin.estimators import VariationNormRegressor
    >>> tent = VariationNormRegressor(alpha=1e-4).fit([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0])
    >>> tent.predict([[0.0], [0.5]]).round(2).tolist()
    [1.0, 0.5]

    Beyond the papers.
    """

    alpha: Any = 0.01
    fit_intercept: Any = True
    bias: Any = True
    tol: Any = 1e-2
    time_limit: Any = None
    warm_start: Any = False
    pricing: Any = "local"
    random_state: Any = 0
    verbose: Any = False

    def __sklearn_tags__(self) -> Any:
        """Several targets are taken."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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
        SolverData(X, y).require_squares()
        y = np.asarray(y, dtype=np.float64)
        weights = check_sample_weight(sample_weight, len(y))
        values = y.reshape(len(y), -1)[weights > 0]
        X, weights = X[weights > 0], weights[weights > 0]
        self.intercept_ = np.average(values, axis=0, weights=weights) * center
        values = values - self.intercept_
        roots = np.sqrt(weights / weights.sum())
        spreads = split_lengths((roots[:, None] * values).T)[0]  # in float64 where squares are not
        self.scale_ = np.where(spreads > 0, spreads, 1.0)
        before = self.__dict__.pop("solutions_", None)
        net = self._solve(
            X, values / self.scale_, weights, alpha, self._read_options(deadline), before
        )
        if net.status is Status.INTERRUPTED:
            raise Interrupted("fit was interrupted: the regressor is not fitted.")
        if net.status is Status.NOT_ATTAINABLE:
            raise DataError(
                "No function takes these values: equal inputs have different values. Pass an alpha"
                " above 0."
            )
        reached = f"a relative gap of {self._read_gap(net):.2g}, above tol={self.tol:g}"
        for status, remedy in (
            (Status.STALLED, f"Float64 ended the search at {reached}: raise tol, or scale X."),
            (Status.TIME_LIMIT, "The time limit ended the search: raise time_limit."),
            (Status.NOT_REACHED, "No net through all points was found: pass an alpha above 0."),
        ):
            if net.status is status:
                warn_caller(
                    f"{remedy} Predictions are those of the best net so far.", ConvergenceWarning
                )
        self.solutions_, self.gap_, self._single = [net], net.gap, y.ndim == 1
        return self

    def _solve(
        self, X: Any, targets: Any, weights: Any, alpha: Any, options: Any, before: Any
    ) -> Any:
        """The net of targets (n, k) of mean square 1 with weights (n,), or through all of them."""
        if proof := self._prove(targets.shape[1] == 1, "nets of one target"):
            options |= proof
            if alpha == 0:
                return min_norm_interpolation(X, targets[:, 0], **options)
            price = {"regularization": alpha, "sample_weight": weights}
            return f1_squared(X, targets[:, 0], **price, **options)
        options["start"] = self._choose_start(before, X.shape[1], targets.shape[1])
        if alpha == 0:
            return fit_two_layer_net(X, targets, loss="equality", **options)
        options |= {"C": 1 / (alpha * weights.sum()), "sample_weight": weights}
        return fit_two_layer_net(X, targets, loss="squared", **options)

    def predict(self, X: Any) -> np.ndarray:
        """Values (N,) or (N, k) of inputs X (N, d)."""
        check_is_fitted(self, "solutions_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        values: np.ndarray = self.solutions_[0].decision_function(X).reshape(len(X), -1)
        values = values * self.scale_ + self.intercept_
        return values[:, 0] if self._single else values
