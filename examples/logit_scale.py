"""The effect of the size of the parameters on attacks: python -m examples.logit_scale

A homogeneous net and its multiples classify alike, so their true L2 robustness is the same. Attacks
run on the nets as they are find other radii for each; `nm.robustness`, which divides the scores by
the median margin first, does not.
"""

import argparse
import copy

import foolbox
import numpy as np
import torch

import netmargin as nm

FACTORS = (1e-3, 1e-1, 10, 1e3)
"""Multiples of the trained parameters: wide enough that every attack shows what it depends on."""

PLAIN = {
    "DeepFool": lambda: foolbox.attacks.L2DeepFoolAttack(),
    "DDN": lambda: foolbox.attacks.DDNAttack(),
    "Carlini-Wagner": lambda: foolbox.attacks.L2CarliniWagnerAttack(
        binary_search_steps=6, steps=100
    ),
}


def scale_parameters(net: torch.nn.Module, factor: float) -> torch.nn.Module:
    """A copy of the net with all parameters multiplied."""
    net = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= factor
    return net


def find_plain_radii(
    net: torch.nn.Module, X: torch.Tensor, y: torch.Tensor, attack: str
) -> np.ndarray:
    """The radii that foolbox finds on the net as it is, infinite where it fails."""
    model = foolbox.PyTorchModel(net.eval(), bounds=(0, 1), device="cpu")
    _, points, success = PLAIN[attack]()(model, X, y, epsilons=None)
    return torch.where(success, (points - X).flatten(1).norm(dim=1), torch.inf).numpy()


def main() -> None:
    """Print, for each attack and factor, median radius and largest relative change of a radius."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=100)
    options = parser.parse_args()
    torch.manual_seed(0)
    net, (X, y) = nm.models.mlp([64, 64, 10]), nm.datasets.digits(limit=options.n)
    nm.train(net, (X, y), until=nm.LogLossBelow(-2), progress=False)
    methods = {name: lambda net, name=name: find_plain_radii(net, X, y, name) for name in PLAIN}
    methods["nm.robustness"] = lambda net: (
        nm.robustness(net, (X, y), box=(0, 1), progress=False).upper
    )
    print(f"{'':16} {'median at 1':>12}" + "".join(f"{f'x {factor:g}':>22}" for factor in FACTORS))
    for name, radii in methods.items():
        first = radii(net)
        cells = []
        for factor in FACTORS:
            now = radii(scale_parameters(net, factor))
            both = np.isfinite(now) & np.isfinite(first)
            worst = np.abs(now[both] / first[both] - 1).max() if both.any() else np.nan
            cells.append(f"{np.median(now):8.4f} {worst:7.1e} {int((~np.isfinite(now)).sum()):3d}x")
        print(
            f"{name:16} {np.median(first):12.4f}" + "".join(f"{cell:>22}" for cell in cells),
            flush=True,
        )
    print(
        "median radius, largest relative change of a radius, and how many samples the attack could"
        " not turn"
    )


if __name__ == "__main__":
    main()
