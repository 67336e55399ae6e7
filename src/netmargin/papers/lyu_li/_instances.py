"""Instances on which several claims of Lyu and Li 2019 are examined: random points, flows, and runs
near the optimum.
"""

import math

import torch
from torch import Tensor, nn

from ...ascent.maximize_margin import maximize_margin
from ...flow.gradient_flow import Trajectory, gradient_flow
from ...losses import Exponential, Logistic, Loss
from ...models import mlp
from ...training.stopping import LogLossBelow
from ..ledger.points import Points, inverse_slope, log_loss, separated, soft_margins
from ..ledger.trial import Trial

PAPER = "Lyu and Li 2019"

# The two losses of the paper, with f(q) about q and about q^3: where f is linear, all terms with
# f'' vanish, so that an error in them would pass.
LOSSES: tuple[Loss, ...] = (Exponential(), Logistic(), Exponential(3), Logistic(3))

SEPARATED = "summed loss below l(b_f) (B4); net locally Lipschitz and L-homogeneous (A1, A2)"

ROUNDING = "sums of at most a few hundred float64 terms, divided by the sizes of both sides"


def examine_points(trial: Trial, loss: Loss, **options) -> tuple[Points, dict[str, Tensor]]:
    """Draw random points that separate their samples, and evaluate there what the claims combine.

    Returns the points and, by name: x = log 1/Loss, -grad log Loss in parts, the ratio
    g'(x) / g(x), and nu / Loss.
    """
    # Differences of f are to be exact to 1e-13: f up to 1000.
    points = Points.drawn(trial, deepest=1000.0 ** (1 / getattr(loss, "power", 1)), **options)
    gaps = points.gaps()
    cross_entropy = gaps.shape[-1] > 1
    q = soft_margins(gaps)
    logs = log_loss(loss, q)
    descent = {n: -g for n, g in points.gradient(logs).items()}
    x = -logs.detach()
    if cross_entropy:
        shares = torch.exp(
            torch.logsumexp(-gaps, -1)
            - torch.nn.functional.softplus(torch.logsumexp(-gaps, -1))
            + x[:, None]
        )
        nu = (shares * (torch.softmax(-gaps, -1) * gaps).sum(-1)).sum(1)
    else:
        nu = (torch.exp(loss.log_slope(q) + x[:, None]) * q).sum(1)
    keep = separated(loss, -x)
    found = {
        "keep": keep,
        "x": x,
        "ratio": inverse_slope(loss, x) / loss.g(x),
        "nu": nu.detach(),
        "radial": points.inner(points.theta, descent).detach(),
        "square": points.inner(descent, descent).detach(),
        "rho2": points.inner(points.theta, points.theta).detach(),
    }
    return points, found | {"descent " + n: d for n, d in descent.items()}


def measure_growth(at: dict[str, Tensor], order: float) -> tuple[Tensor, Tensor]:
    """Evaluate d/dt log gamma~ / Loss = (g' / g) |grad|^2 / Loss^2 - L^2 nu / (Loss rho^2), and the
    size of its terms.
    """
    up, down = at["ratio"] * at["square"], order**2 * at["nu"] / at["rho2"]
    return up - down, up + down


def run_relu_flow(trial: Trial, *, depth: float = -20, rtol: float = 1e-8) -> Trajectory:
    """Run the gradient flow of a two-layer ReLU net on 6 points, with the exponential loss."""
    net, data = start_separated(trial, power=1)
    return gradient_flow(
        net, data, until=LogLossBelow(depth), loss=Exponential(), rtol=rtol, progress=False
    )


def start_separated(
    trial: Trial, *, power: int, samples: int = 6, width: int = 5
) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Make a random net without biases and points that it labels itself, scaled to a summed
    exponential loss just below 1.

    power : of the ReLUs; 0 for a linear net.
    """
    random = trial.torch_random
    net = (
        mlp([3, width, 1], bias="none", power=power) if power else nn.Linear(3, 1, bias=False)
    ).double()
    x, order = torch.zeros(0, 3, dtype=torch.float64), power + 1
    with torch.no_grad():
        for p in net.parameters():
            p.normal_(generator=random)
        while (
            len(x) < samples
        ):  # not too near to the boundary, or the scale that separates them is huge
            more = torch.randn(64, 3, generator=random, dtype=torch.float64)
            outputs = net(more)[:, 0].abs()
            x = torch.cat([x, more[outputs > 0.5 * outputs.median()]])[:samples]
        outputs = net(x)[:, 0]
        for p in net.parameters():
            p.mul_(((math.log(samples) + 0.2) / outputs.abs().min()) ** (1 / order))
    return net, (x, torch.where(outputs > 0, 1, -1))


def move_near_optimum(
    net: nn.Module, x: Tensor, y: Tensor, trial: Trial, *, order: int, noise: float
) -> None:
    """Ascend the margin, add noise of that share of each layer's norm, and scale to a summed
    exponential loss just below 1.
    """
    maximize_margin(net, (x, y), iterations=200, progress=False)
    random = trial.torch_random
    with torch.no_grad():
        good, q = [p.clone() for p in net.parameters()], -torch.ones(())
        while q <= 0:  # some directions leave the separated region
            for p, at in zip(net.parameters(), good, strict=True):
                p.copy_(
                    at
                    + noise
                    * at.norm()
                    / math.sqrt(at.numel())
                    * torch.randn(at.shape, generator=random, dtype=at.dtype)
                )
            q, noise = (y * net(x)[:, 0]).min(), 0.9 * noise
        for p in net.parameters():
            p.mul_(((math.log(len(x)) + 0.2) / q) ** (1 / order))
