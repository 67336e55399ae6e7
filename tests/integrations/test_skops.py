"""Estimators in skops' files, which hold data and no code."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from netmargin.estimators import NTKClassifier, VariationNormClassifier, VariationNormRegressor

skops = pytest.importorskip("skops.io", reason="skops is not installed")
pytestmark = pytest.mark.integrations


@pytest.mark.parametrize(
    "estimator",
    [
        NTKClassifier(),
        NTKClassifier(C=None),
        NTKClassifier(multi_class="joint"),
        VariationNormClassifier(tol=0.1),
        VariationNormRegressor(tol=0.1),
    ],
    ids=["soft", "hard", "joint", "variation norm", "regressor"],
)
def test_only_types_of_this_library_are_to_be_trusted(estimator):
    X, y = load_iris(return_X_y=True)
    fitted = estimator.fit(X[::3], y[::3])
    kept = skops.dumps(fitted)
    trusted = skops.get_untrusted_types(data=kept)
    assert all(name.startswith("netmargin.") for name in trusted)
    again = skops.loads(kept, trusted=trusted)
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.solutions_[0].bracket == fitted.solutions_[0].bracket
