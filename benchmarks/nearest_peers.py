"""The nearest misclassified inputs that peers find, in plain torch and float64: foolbox's L2
DeepFool, and descent of the margin, projected onto balls, from 20 random starts. Points of both are
moved towards the sample as long as they stay wrong.
"""

from collections.abc import Callable

import foolbox
import torch
from torch import Tensor, nn

Scores = Callable[[Tensor], Tensor]
RESTARTS, STEPS, BISECTIONS = 20, 30, 20
AT_ONCE = 10
"""Samples whose restarts go through the net at once."""


def compute_gap(net: Scores, x: Tensor, y: Tensor) -> Tensor:
    """The score of each class y less the largest other one, (N,)."""
    scores = net(x)
    others = scores.scatter(1, y[:, None], -torch.inf).amax(1)
    return scores.gather(1, y[:, None]).squeeze(1) - others


def measure_wrong(net: Scores, x: Tensor, y: Tensor, points: Tensor) -> Tensor:
    """Distances from x, (N,), infinite where points have the class y."""
    with torch.no_grad():
        wrong = compute_gap(net, points, y) <= 0
    return (points - x).flatten(1).norm(dim=1).masked_fill(~wrong, torch.inf)


def move_back(net: Scores, x: Tensor, y: Tensor, points: Tensor) -> Tensor:
    """The distances of points after bisections of the way to x, infinite as above."""
    low = torch.zeros(len(x), *[1] * (x.ndim - 1), dtype=torch.float64)
    high = torch.ones_like(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        wrong = measure_wrong(net, x, y, x + middle * (points - x)).isfinite().reshape(low.shape)
        low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
    return measure_wrong(net, x, y, x + high * (points - x))


def descend(net: Scores, x: Tensor, y: Tensor, radii: Tensor) -> Tensor:
    """The distances of the nearest points that descents in balls of these radii find, (N,)."""
    x, y = x.repeat_interleave(RESTARTS, 0), y.repeat_interleave(RESTARTS)
    radii = radii.repeat_interleave(RESTARTS).reshape(-1, *[1] * (x.ndim - 1))

    def rescale(steps: Tensor, most: float = torch.inf) -> Tensor:
        norms = steps.flatten(1).norm(dim=1).reshape(radii.shape).clamp(min=1e-300)
        return steps * (radii / norms).clamp(max=most)

    step = rescale(torch.randn_like(x)) * torch.rand_like(radii)
    for count in range(STEPS):
        step.requires_grad_()
        (slope,) = torch.autograd.grad(compute_gap(net, x + step, y).sum(), step)
        stride = 0.5 * 0.02 ** (count / STEPS)
        step = rescale(step.detach() - stride * rescale(slope), most=1)
    return move_back(net, x, y, x + step).reshape(-1, RESTARTS).amin(1)


def find_by_deepfool(net: Scores, x: Tensor, y: Tensor) -> Tensor:
    """The distances that DeepFool finds, infinite for none; it knows no box."""
    size, module = 100 * float(x.abs().max()), nn.Module().eval()
    module.forward = net
    attacked = foolbox.PyTorchModel(module, bounds=(-size, size), device="cpu")
    points = foolbox.attacks.L2DeepFoolAttack()(attacked, x, y, epsilons=None)[0]
    return move_back(net, x, y, points)


def find_by_descent(net: Scores, x: Tensor, y: Tensor, known: Tensor) -> Tensor:
    """The distances that descents find in balls of 1.05 times those known, and then of .99 times
    the least so far until none is nearer than the ball; infinite for none.
    """
    found, left, share = torch.full_like(known, torch.inf), torch.arange(len(x)), 1.05
    while len(left):
        least = torch.minimum(known, found)[left]
        parts = [i.split(AT_ONCE) for i in (x[left], y[left], share * least)]
        tried = torch.cat([descend(net, *part) for part in zip(*parts, strict=True)])
        found[left] = torch.minimum(found[left], tried)
        if share < 1:
            left = left[tried < 0.99 * least]
        share = 0.99
    return found
