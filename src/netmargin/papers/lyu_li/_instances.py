"""Instances of several claims of Lyu and Li 2019: points, flows, and runs near the optimum."""

import math

import numpy as np
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


def examine_points(
    trial: Trial,
    loss: Loss | None = None,
    *,
    mean: bool = False,
    order_factor: float = 1.0,
    **options,
) -> tuple[Points, dict[str, Tensor], str]:
    """Draw points that separate their samples; what claims combine there; the setting in words.

    By name: x = log 1/Loss, -grad log Loss in parts, nu / Loss, `rate` = d/dt log gamma~ / Loss =
    (g' / g) |grad|^2 / Loss^2 - L^2 nu / (Loss rho^2) with the `size` of its terms, of which `up`
    is the first, and |tangential part of -grad log Loss|^2 Loss / nu; gamma~ of the `mean` loss.
    """
    loss = loss or LOSSES[trial.number % 4]
    # Differences of f are to be exact to 1e-13: f up to 1000.
    points = Points.drawn(trial, deepest=1000.0 ** (1 / getattr(loss, "power", 1)), **options)
    gaps = points.gaps()
    q = soft_margins(gaps)
    logs = log_loss(loss, q)
    descent = {n: -g for n, g in points.gradient(logs).items()}
    x = -logs.detach()
    if gaps.shape[-1] > 1:  # cross-entropy
        joint = torch.logsumexp(-gaps, -1)
        shares = torch.exp(joint - torch.nn.functional.softplus(joint) + x[:, None])
        nu = (shares * (torch.softmax(-gaps, -1) * gaps).sum(-1)).sum(1)
    else:
        nu = (torch.exp(loss.log_slope(q) + x[:, None]) * q).sum(1)
    nu, radial = nu.detach(), points.inner(points.theta, descent).detach()
    square = points.inner(descent, descent).detach()
    rho2 = points.inner(points.theta, points.theta).detach()
    depth = x + math.log(len(points.x)) if mean else x
    up = inverse_slope(loss, depth) / loss.g(depth) * square
    down = (order_factor * points.order) ** 2 * nu / rho2
    found = {"keep": separated(loss, -x), "x": x, "nu": nu, "radial": radial, "square": square}
    found |= {"rho2": rho2, "up": up, "rate": up - down, "size": up + down}
    # Rounding can make the tangential part of a radial velocity negative.
    found["tangential"] = (square - radial**2 / rho2).clamp(min=0) / nu
    found |= {"descent " + n: d for n, d in descent.items()}
    return points, found, f"{loss.name} loss, {points.setting()}"


def run_flow(net: nn.Module, data: tuple[Tensor, Tensor], depth: float, **options) -> Trajectory:
    """Run the gradient flow of the exponential loss down to a log10-loss."""
    until = LogLossBelow(depth)
    return gradient_flow(net, data, until=until, loss=Exponential(), progress=False, **options)


def run_relu_flow(
    trial: Trial, names: tuple[str, ...], *, rtol: float = 1e-8
) -> tuple[list[np.ndarray], str]:
    """Run the gradient flow of a two-layer ReLU net; quantities where its loss is below 1."""
    flow = run_flow(*start_separated(trial, power=1), -20, rtol=rtol)
    rows = [row for row in flow.rows if row["log_loss"] < 0]
    where = f"flow of a two-layer ReLU net on 6 points, {len(rows)} steps"
    return [np.array([row[name] for row in rows]) for name in names], where


def has_flow(trial: Trial) -> bool:
    """Whether a trial follows a flow, which takes seconds: six of a full run, others pointwise."""
    return trial.number % 5 == 4 and trial.number < 30


def start_separated(
    trial: Trial, *, power: int, samples: int = 6, width: int = 5
) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Make a net of powers of ReLUs (0: linear) and points that it labels, of loss just below 1."""
    random, order = trial.torch_random, power + 1
    deep = mlp([3, width, 1], bias="none", power=power) if power else None
    net = (deep or nn.Linear(3, 1, bias=False)).double()
    x = torch.zeros(0, 3, dtype=torch.float64)
    with torch.no_grad():
        for p in net.parameters():
            p.normal_(generator=random)
        while len(x) < samples:
            # Not too near to the boundary, or the scale that separates them is huge.
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
    """Ascend the margin, add noise by each layer's norm, scale to a summed loss just below 1."""
    maximize_margin(net, (x, y), iterations=200, progress=False)
    random = trial.torch_random
    with torch.no_grad():
        good, q = [p.clone() for p in net.parameters()], -torch.ones(())
        while q <= 0:  # some directions leave the separated region
            for p, at in zip(net.parameters(), good, strict=True):
                size = noise * at.norm() / math.sqrt(at.numel())
                p.copy_(at + size * torch.randn(at.shape, generator=random, dtype=at.dtype))
            q, noise = (y * net(x)[:, 0]).min(), 0.9 * noise
        for p in net.parameters():
            p.mul_(((math.log(len(x)) + 0.2) / q) ** (1 / order))
