"""Instances of several claims of Lyu and Li 2019: points, flows, and runs near the optimum."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.integrate import simpson
from scipy.optimize import brentq
from torch import Tensor, nn

from ...ascent.maximize_margin import maximize_margin
from ...flow.gradient_flow import Trajectory, gradient_flow
from ...flow.theory_rate import SmoothnessBounds
from ...losses import Exponential, Logistic, Loss
from ...margins import score_gaps, soft_margins
from ...models import mlp
from ...training.stopping import LogLossBelow, StoppingRule
from ..ledger.points import Points, inverse_slope, log_loss, make_linear_net, separated
from ..ledger.trial import Trial, excess

PAPER = "Lyu and Li 2019"

# The two losses of the paper, with f(q) about q and about q^3: where f is linear, all terms with
# f'' vanish, so that an error in them would pass.
EXPONENTIAL = Exponential()
LOSSES: tuple[Loss, ...] = (EXPONENTIAL, Logistic(), Exponential(3), Logistic(3))

SEPARATED = "summed loss below l(b_f) (B4); net locally Lipschitz and L-homogeneous (A1, A2)"

ROUNDING = "sums of at most a few hundred float64 terms, divided by the sizes of both sides"


def examine_points(
    trial: Trial,
    loss: Loss | None = None,
    *,
    mean: bool = False,
    order_factor: float = 1.0,
    **options: Any,
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


def run_flow(
    start: "Start",
    depth: float,
    loss: Loss = EXPONENTIAL,
    *,
    rules: Sequence[StoppingRule] = (),
    **options: Any,
) -> Trajectory:
    """Run the gradient flow of a loss down to a log10-loss, or until a rule ends it before."""
    until = [*rules, LogLossBelow(depth)]
    return gradient_flow(start.net, start.data, until=until, loss=loss, progress=False, **options)


def run_relu_flow(
    trial: Trial, names: tuple[str, ...], *, rtol: float = 1e-8
) -> tuple[list[np.ndarray], str]:
    """Run the gradient flow of a two-layer ReLU net; quantities where its loss is below 1."""
    flow = run_flow(Start.drawn(trial, power=1), -20, rtol=rtol)
    rows = [row for row in flow.rows if row["log_loss"] < 0]
    where = f"flow of a two-layer ReLU net on 6 points, {len(rows)} steps"
    return [np.array([row[name] for row in rows]) for name in names], where


def log_growth(loss: Loss, order: float, start: float, depth: np.ndarray) -> np.ndarray:
    """Natural log of G(e^x) of Lemma B.6, from log 1/Loss_0 = start on, at each x > start."""
    # By Simpson's rule in w = log u, over the last 60: what lies below is e^-60 of it.
    w = np.linspace(np.maximum(start, depth - 60), depth, 4001)
    of_w = torch.from_numpy(w)
    g, slope = loss.g(of_w).numpy(), inverse_slope(loss, of_w).numpy()
    return depth + np.log(simpson(np.exp(w - depth) * slope**2 * g ** (2 / order - 2), x=w, axis=0))


def find_kkt_points(
    net: "Start",
    run: Sequence[np.ndarray],
    starts: Sequence[float],
    shares: Sequence[float],
    *,
    start: float = 1.0,
    window: float = 1.0,
    epsilon: float = 1.0,
    delta: float = 1.0,
    loss: Loss = EXPONENTIAL,
) -> list[float]:
    """What Theorem A.9 promises of windows that end within a run: the best state of each, over it.

    `run`: depth, log rho, log gamma, epsilon and delta; t_0 where the depth g(log 1/Loss)^p of a
    loss of q^p passes `starts`; epsilon in units of C_1 by `shares`. At most 0 where it holds.
    """
    power = getattr(loss, "power", 1)
    L, violations = net.order, []
    for share, first in product(shares, np.searchsorted(run[0], starts)):
        depth, log_rho, log_gamma, epsilons, deltas = (part[first:] for part in run)
        gamma = math.exp(log_gamma[0])
        Delta = (log_gamma[-1] - log_gamma[0]) / L / (2 * share**2)
        # Of logistic losses e^Loss at t_0, where Loss <= e^-depth.
        rising = math.exp(math.exp(-depth[0])) if isinstance(loss, Logistic) else 1.0
        C_1 = math.sqrt(2) / gamma ** (1 / L)
        C_2 = rising * (len(net.x) - 1) / (math.e * L) / gamma ** (2 / L)
        # From just after the start to where the window ends well before the run does.
        for needed in np.geomspace(1.05 * depth[0], 0.3 * depth[-1], 6):
            r = start * (math.log(needed) / power - log_gamma[0]) / L
            whole = (log_rho > r) & (log_rho < r + Delta)
            # Windows within the run; of four states, as the best time may be between two of them.
            if log_rho[-1] > r + Delta and whole.sum() >= 4:
                inside = whole & (log_rho < r + window * Delta)
                parts = (epsilons, epsilon * share * C_1), (deltas, delta * C_2 / needed)
                worse = np.maximum(*(excess(*part) for part in parts))
                violations.append(float(np.min(worse[inside], initial=math.inf)))
    return violations


def has_flow(trial: Trial) -> bool:
    """Whether a trial follows a flow, which takes seconds: six of a full run, others pointwise."""
    return trial.number % 5 == 4 and trial.number < 30


class State(NamedTuple):
    """A net at one time of a flow or a descent."""

    theta: Tensor
    velocity: Tensor  # -grad log Loss
    log_loss: float
    log_rho: float
    beta: float
    q: Tensor
    epsilon: float  # with the multipliers of Lemma C.8
    delta: float


@dataclass(frozen=True)
class Start:
    """A net of powers of ReLUs, or of linear layers, and points that it labels rightly."""

    net: nn.Module
    x: Tensor
    y: Tensor
    order: float
    bounds: SmoothnessBounds  # those of a net with one output

    @classmethod
    def drawn(
        cls,
        trial: Trial,
        *,
        power: int,
        samples: int = 6,
        width: int = 5,
        layers: int = 2,
        outputs: int = 1,
        loss: Loss = EXPONENTIAL,
        spread: float = 0.0,
    ) -> "Start":
        """Draw weights (power 0: linear layers) and points; a summed loss just below l(b_f)."""
        random, widths = trial.torch_random, [3, *[width] * (layers - 1), outputs]
        made = mlp(widths, bias="none", power=power) if power else make_linear_net(widths)
        net = made.double()
        x, degree = torch.zeros(0, 3, dtype=torch.float64), max(power, 1)
        with torch.no_grad():
            for p in net.parameters():
                p.normal_(generator=random)
            while len(x) < samples:
                # Not too near to the boundary, or the scale that separates them is huge.
                more = torch.randn(64, 3, generator=random, dtype=torch.float64)
                if spread:  # unit vectors of one label near a common one: margins near B_0
                    more = nn.functional.normalize(torch.ones(3) + spread * more)
                scores = net(more) if outputs > 1 else net(more) * torch.tensor([0.5, -0.5])
                best, label = scores.topk(2, 1).values, scores.argmax(1)
                gap = best[:, 0] - best[:, 1]
                kept = gap > 0.5 * gap.median()
                if spread:
                    kept &= label == label[0]
                x = torch.cat([x, more[kept]])[:samples]
            y = net(x).argmax(1) if outputs > 1 else torch.where(net(x)[:, 0] > 0, 1, -1)
        order = float(sum(degree**i for i in range(layers)))
        bounds = SmoothnessBounds.of_layers(x, degree, layers)
        start = cls(net, x, y, order, bounds)
        start.scale_to(loss.log_threshold - 0.2, loss)
        return start

    @property
    def data(self) -> tuple[Tensor, Tensor]:
        """The points and their labels."""
        return self.x, self.y

    def load(self, weights: dict[str, Tensor]) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
        """Put the net at other weights; it and its data."""
        self.net.load_state_dict(weights)
        return self.net, self.data

    def q(self) -> Tensor:
        """The margins, soft ones of several outputs, (N,)."""
        return soft_margins(score_gaps(self.net(self.x), self.y))

    def scale_to(self, log_loss: float, loss: Loss = EXPONENTIAL) -> None:
        """Scale all weights so that the summed loss has this natural log."""
        with torch.no_grad():
            gaps = score_gaps(self.net(self.x), self.y)

            def off(log_factor: float) -> float:
                return loss.log_sum(soft_margins(math.exp(log_factor) * gaps)) - log_loss

            factor = math.exp(brentq(off, -50, 50) / self.order)
            for p in self.net.parameters():
                p.mul_(factor)

    def move_near_optimum(self, trial: Trial, noise: float, loss: Loss = EXPONENTIAL) -> None:
        """Ascend the margin, add noise by each layer's norm, scale as `drawn` does."""
        maximize_margin(self.net, self.data, iterations=200, progress=False)
        random = trial.torch_random
        with torch.no_grad():
            good, q = [p.clone() for p in self.net.parameters()], -torch.ones(())
            while q <= 0:  # some directions leave the separated region
                for p, at in zip(self.net.parameters(), good, strict=True):
                    size = noise * at.norm() / math.sqrt(at.numel())
                    p.copy_(at + size * torch.randn(at.shape, generator=random, dtype=at.dtype))
                q, noise = score_gaps(self.net(self.x), self.y).min(), 0.9 * noise
        self.scale_to(loss.log_threshold - 0.2, loss)

    def state(self, loss: Loss = EXPONENTIAL) -> State:
        """Evaluate a loss where the weights are now."""
        parameters = list(self.net.parameters())
        margins = self.q()
        total = torch.logsumexp(-loss.f(margins), 0)
        velocity = -nn.utils.parameters_to_vector(torch.autograd.grad(total, parameters))
        theta, q = nn.utils.parameters_to_vector(parameters).detach(), margins.detach()
        rho, length, least = theta.norm().item(), velocity.norm().item(), q.min().item()
        scale, log_loss = least ** (-1 / self.order), total.item()
        weighted = (torch.exp(loss.log_slope(q) - log_loss) * (q - least)).max().item()
        beta = (theta @ velocity).item() / (rho * length)
        epsilon = scale * (theta - rho / length * velocity).norm().item()
        delta = scale**2 * rho / length * weighted
        return State(theta, velocity, log_loss, math.log(rho), beta, q, epsilon, delta)
