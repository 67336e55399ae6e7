"""A net in float64 with its samples: what public functions compute with, in one piece and in batches."""

import pytest
import torch
from torch import nn

from netmargin.errors import DataError
from netmargin.models import mlp
from netmargin.nets.net_on_samples import NetOnSamples
from netmargin.nets.threads import work_of

SIGNS = torch.tensor([1, 0, 1, 1, 0, 0, 1])
CLASSES = torch.tensor([2, 0, 1, 1, 0, 2, 1])
TOKENS = torch.arange(21).reshape(7, 3) % 5


@pytest.mark.parametrize(
    ("net", "X", "y", "encoded"),
    [
        (mlp([3, 4, 1]), torch.randn(7, 3), SIGNS, 2.0 * SIGNS.double() - 1),
        (mlp([3, 4, 3]), torch.randn(7, 3), CLASSES, CLASSES),
        (
            nn.Sequential(nn.Embedding(5, 2), nn.Flatten(), nn.Linear(6, 3)),
            TOKENS,
            CLASSES,
            CLASSES,
        ),
    ],
)
def test_batches_are_parts_of_the_whole(net, X, y, encoded):
    scored = NetOnSamples(net, [(X[:4], y[:4]), (X[4:], y[4:])])
    parts = list(scored.batches(3))
    assert [len(x) for x, _ in parts] == [3, 3, 1]
    assert torch.equal(torch.cat([x for x, _ in parts]), scored.x)
    assert torch.equal(torch.cat([labels for _, labels in parts]), scored.y)
    assert torch.equal(scored.y, encoded)
    assert scored.y.dtype == encoded.dtype
    assert torch.equal(scored.x, X.double() if X.is_floating_point() else X)
    assert (len(scored), scored.outputs) == (7, net(X).shape[1])
    assert scored.work == work_of(net, X)
    with torch.no_grad():
        assert torch.allclose(scored.twin(scored.first_inputs(7)), net(X).double(), atol=1e-6)
    assert {p.dtype for p in net.parameters()} == {torch.float32}


def test_labels_are_checked_when_they_are_asked_for():
    scored = NetOnSamples(mlp([3, 4, 2]), (torch.randn(7, 3), CLASSES))
    assert scored.x.dtype == torch.float64
    with pytest.raises(DataError, match="class indices 0 to 1"):
        _ = scored.y
