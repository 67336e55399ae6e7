"""Do margins stay where they are when a net is rescaled along its symmetries?

Two nets are trained. In a ResNet-20 with BatchNorm the convolutions are multiplied, and its
statistics estimated again; in an MLP with biases in every layer psi multiplies weights by c and the
biases of layer i by c^i. Neither changes any decision.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import cycle

import torch
from torch import Tensor, nn

import netmargin as nm

IMAGES, MEASURED = 500, 100
"""Images of CIFAR-10 that the ResNet sees, and those at whose inputs it is differentiated: nine
backward passes in float64 for each.
"""
EPOCHS, BATCH, RATE = 100, 50, 0.1
"""Two CPU minutes, in which the ResNet fits its images; the rate falls to 0 like a cosine."""
FACTORS = (0.1, 1 / 3, 3.0, 10.0)
NO_EPS = 1e-300
"""An eps that no variance in float64 notices."""


class Block(nn.Module):
    """A residual block relu(norm(conv(relu(norm(conv(h))))) + shortcut(h))."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.residual = nn.Sequential(
            *_normalized(inputs, outputs, 3, stride), nn.ReLU(), *_normalized(outputs, outputs, 3)
        )
        same = inputs == outputs
        self.shortcut = nn.Sequential(*([] if same else _normalized(inputs, outputs, 1, stride)))

    def forward(self, h: Tensor) -> Tensor:
        """Return the block's output for h of shape (N, inputs, height, width)."""
        return (self.residual(h) + self.shortcut(h)).relu()


def make_resnet20() -> nn.Sequential:
    """ResNet-20 of He et al. 2015, with a convolution and BatchNorm where the shape changes."""
    layers, channels = [*_normalized(3, 16, 3), nn.ReLU()], 16
    for width in (16, 32, 64):
        for block in range(3):
            layers.append(Block(channels, width, 2 if width > 16 and block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def main() -> None:
    """Train both nets, rescale them, and print what changed."""
    try:
        images, (X, y) = nm.datasets.cifar10(limit=IMAGES), nm.datasets.mnist(limit=1000)
    except nm.DataError as error:
        print(f"left out: {error}")
        return
    torch.manual_seed(0)
    resnet, started = make_resnet20(), time.process_time()
    _train(resnet, images)
    seconds = time.process_time() - started
    print(f"ResNet-20 on {IMAGES} images of CIFAR-10, {seconds:.0f} CPU seconds of training")
    factors = {f"{c:.3g}": [c] for c in (1.0, *FACTORS)}
    factors["each its own"] = [10**power for power in torch.linspace(-1, 1, 21).tolist()]
    _compare(
        resnet,
        images,
        "partial",
        {
            name: partial(rescale_convolutions, X=images[0], factors=c)
            for name, c in factors.items()
        },
    )
    torch.manual_seed(0)
    digits = X.flatten(1), y
    mlp = nm.models.mlp([784, 100, 100, 10], bias="all")
    nm.train(mlp, digits, until=nm.LogLossBelow(-4), progress=False)
    print("MLP 784-100-100-10 with biases everywhere on 1,000 images of MNIST")
    exponents = nm.analyse(mlp, digits[0]).quasi_exponents
    assert exponents is not None
    psi = {f"{c:.3g}": partial(apply_psi, exponents=exponents, factor=c) for c in (1.0, *FACTORS)}
    _compare(mlp, digits, "quasi", psi)


def _normalized(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    """A convolution without bias, and BatchNorm."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


def _train(net: nn.Module, data: tuple[Tensor, Tensor]) -> None:
    X, y = data
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(X)).split(BATCH):
            loss = nn.functional.cross_entropy(net(X[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


@torch.no_grad()
def rescale_convolutions(net: nn.Module, X: Tensor, factors: Sequence[float]) -> None:
    """Multiply each convolution by one of the factors in turn, and let torch estimate the
    statistics of the norms again, with all images as one batch.
    """
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    for convolution, factor in zip(convolutions, cycle(factors), strict=False):
        convolution.weight.mul_(factor)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the average over all batches, of which there is one
    net.train()(X.to(next(net.parameters()).dtype))
    net.eval()


@torch.no_grad()
def apply_psi(net: nn.Module, exponents: Mapping[str, Fraction], factor: float) -> None:
    """Multiply weights by the factor, and biases by its powers."""
    least = min(exponent for exponent in exponents.values() if exponent)
    for name, parameter in net.named_parameters():
        parameter.mul_(factor ** float(exponents[name] / least))


def _variants(net: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The net as it is, in float64, and there without any eps."""
    yield "float32", net
    yield "float64", copy.deepcopy(net).double()
    bare = copy.deepcopy(net).double()
    guarded = [module for module in bare.modules() if hasattr(module, "eps")]
    for module in guarded:
        module.eps = NO_EPS
    if guarded:
        yield f"float64, eps {NO_EPS:g}", bare


def _compare(
    net: nn.Module,
    data: tuple[Tensor, Tensor],
    leading: str,
    rescalings: Mapping[str, Callable[[nn.Module], None]],
) -> None:
    """Print a table: what each rescaling changes, the first being the net that is compared with."""
    columns = ["numbers", "factor", f'margins["{leading}"]', "change", "change over all samples"]
    columns += ["input margins, change", "q_min", 'margins["global"]', "deviation"]
    print(f"| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|")
    for title, variant in _variants(net):
        before = None
        for name, rescale in rescalings.items():
            changed = copy.deepcopy(variant)
            rescale(changed)
            after = _measure(changed, data)
            before = before or after
            print(f"| {title} | {name} | {_row(leading, before, after)} |", flush=True)


def _measure(
    net: nn.Module, data: tuple[Tensor, Tensor]
) -> tuple[nm.MarginReport, nm.InputMargins]:
    X, y = data[0].to(next(net.parameters()).dtype), data[1]
    near = nm.input_margins(net, (X[:MEASURED], y[:MEASURED]), progress=False)
    return nm.measure(net, (X, y)), near


def _row(leading: str, before: tuple, after: tuple) -> str:
    """The cells of one rescaling: values, and largest relative changes."""
    (old, new), (old_near, new_near) = (
        (before[0].margins[leading], after[0].margins[leading]),
        (before[1].distances, after[1].distances),
    )
    value = f"{new.value:.6g} | {abs(new.value / old.value - 1):.1e}"
    # As deviations are: relative to the largest.
    spread = (new.per_sample - old.per_sample).abs().max() / old.per_sample.abs().max()
    distances = ((new_near - old_near) / old_near).abs().max()
    report = after[0]
    return (
        f"{value} | {spread:.1e} | {distances:.1e} | {report.q_min:.4g}"
        f" | {report.normalized_margin:.3g} | {report.homogeneity.deviation:.1e}"
    )


if __name__ == "__main__":
    main()
