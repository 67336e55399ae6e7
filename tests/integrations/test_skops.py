"""Estimators in skops' files, which hold data and no code."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.test_estimators import KINDS

skops = pytest.importorskip("skops.io", reason="skops is not installed")
pytestmark = pytest.mark.integrations


@pytest.mark.parametrize("estimator", KINDS.values(), ids=KINDS)
def test_only_types_of_this_library_are_to_be_trusted(estimator):
    X, y = load_iris(return_X_y=True)
    fitted = estimator.fit(X[::3], y[::3])
    kept = skops.dumps(fitted)
    trusted = skops.get_untrusted_types(data=kept)
    assert all(name.startswith("netmargin.") for name in trusted)
    again = skops.loads(kept, trusted=trusted)
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.solutions_[0].bracket == fitted.solutions_[0].bracket
