import pytest
import torch

import netmargin as nm


@pytest.fixture(scope="session")
def digits():
    """200 digits in float64, all classes."""
    X, y = nm.datasets.digits(limit=200)
    return X.double(), y


@pytest.fixture(scope="session")
def separated(digits):
    """A ReLU net that classifies `digits` correctly."""
    torch.manual_seed(0)
    model = nm.models.mlp([64, 32, 10]).double()
    nm.train(model, digits, until=nm.LogLossBelow(-3), progress=False)
    return model
