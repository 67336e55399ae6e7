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
        self.relu, same = nn.ReLU(), inputs == outputs
        self.shortcut = nn.Sequential(*([] if same else _normalized(inputs, outputs, 1, stride)))

    def forward(self, h: Tensor) -> Tensor:
        """Return the block's output for h of shape (N, inputs, height, width)."""
        return self.relu(self.residual(h) + self.shortcut(h))


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
    digits = (X.flatten(1), y)
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
    """Print a table of what each rescaling changes; the first leaves the net as it is."""
    columns = ["numbers", "factor", f'margins["{leading}"]', "of all samples", "input margins"]
    columns += ["with each ReLU's side held", "q_min", 'margins["global"]', "deviation"]
    print(f"| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|")
    for title, variant in _variants(net):
        X, y = data[0].to(next(variant.parameters()).dtype), data[1]
        # The exponents are those of the net as trained, also where an eps is not negligible.
        answer, before, sides = nm.analyse(variant.eval(), X), None, None
        for name, rescale in rescalings.items():
            changed = copy.deepcopy(variant)
            rescale(changed)
            sides = sides or _find_sides(changed, X[:MEASURED])
            report = nm.measure(changed, (X, y), homogeneity=answer)
            deviation = answer.ignoring_biases().check(changed, X).deviation
            free = _input_margins(changed, X, y)
            _hold_sides(changed, sides)
            after = (report.margins[leading].per_sample, free, _input_margins(changed, X, y))
            before = before or after
            cells = [f"{change:.1e}" for change in _changes(before, after)]
            cells += [f"{report.q_min:.4g}", f"{report.normalized_margin:.3g}", f"{deviation:.1e}"]
            print(f"| {title} | {name} | {' | '.join(cells)} |", flush=True)


def _input_margins(net: nn.Module, X: Tensor, y: Tensor) -> Tensor:
    return nm.input_margins(net, (X[:MEASURED], y[:MEASURED]), progress=False).distances


@torch.no_grad()
def _find_sides(net: nn.Module, X: Tensor) -> dict[str, Tensor]:
    """Which inputs of every ReLU are positive."""
    net, sides = copy.deepcopy(net), {}
    for name, module in net.named_modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(
                lambda _, inputs, __, name=name: sides.update({name: inputs[0] > 0})
            )
    net(X)
    return sides


def _hold_sides(net: nn.Module, sides: dict[str, Tensor]) -> None:
    """Let every ReLU pass those inputs that were positive, whatever their sign is now."""
    for name, side in sides.items():
        net.get_submodule(name).register_forward_hook(
            lambda _, inputs, output, side=side: (
                inputs[0] * side if len(output) == len(side) else output
            )
        )


def _changes(before: Sequence[Tensor], after: Sequence[Tensor]) -> list[Tensor]:
    """Relative changes: of the smallest margin, of all margins, and the largest of distances."""
    old, new = before[0], after[0]
    # As deviations are: relative to the largest.
    over_all = (new - old).abs().max() / old.abs().max()
    distances = [(b / a - 1).abs().max() for a, b in zip(before[1:], after[1:], strict=True)]
    return [(new.min() / old.min() - 1).abs(), over_all, *distances]


if __name__ == "__main__":
    main()
