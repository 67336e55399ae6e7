"""The margin of a net with biases in every layer: python -m examples.quasi_margin

Biases of later layers grow faster than the weights when the scores are scaled, so that no power of
the norm of all parameters explains the size of the scores. The usual normalized margin leaves these
biases out; the quasi-homogeneous one counts them. Does it rise after separation, as the theory of
homogeneous nets says of theirs? The theory does not cover this net: this prints what happens.
"""

import argparse
import copy
import itertools

import torch

import netmargin as nm

SHOWN = (0, -1, -2, -3, -5, -8, -12, -17, -23, -30)
"""Powers of ten of the loss at which a line is printed: closer together where more happens."""


def main() -> None:
    """Train a net on digits far beyond separation, print its margins, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--until", type=float, default=-30, help="log10 of the loss at the end")
    parser.add_argument("--limit", type=int, default=500, help="number of digits")
    parser.add_argument("--out", default="runs/quasi_margin", help="folder of the pictures")
    options = parser.parse_args()
    torch.manual_seed(0)
    X, y = nm.datasets.digits(limit=options.limit)
    data, net = (X.double(), y), nm.models.mlp([64, 64, 64, 10], bias="all").double()
    history = nm.train(net, data, until=nm.LogLossBelow(options.until), progress=False)
    print_curve(history)
    report = nm.measure(net, data, input_margins=True)
    print_invariance(net, data, report)
    print(report)
    print("\n".join(map(str, nm.figures.draw_run(history, report, options.out))))


def print_curve(history: nm.History) -> None:
    """Print margins where the loss first falls below each level, and how often the last fell."""
    print("log10-loss   epoch       q_min  biases left out  all counted   smoothed")
    for level in SHOWN:
        row = next((row for row in history.rows if row["log10_mean_loss"] <= level), None)
        if row is not None:
            print(
                f"{row['log10_mean_loss']:10.2f} {row['epoch']:7} {row['q_min']:11.4g}"
                f" {row['normalized_margin']:16.4e} {row['quasi_normalized_margin']:12.4e}"
                f" {row['quasi_smoothed_margin']:10.3e}"
            )
    after = [row["quasi_smoothed_margin"] for row in history.rows if row["q_min"] > 0]
    steps = [b / a - 1 for a, b in itertools.pairwise(value for value in after if value > 0)]
    falls = [step for step in steps if step < 0]
    print(
        f"once positive, the smoothed margin with all biases counted fell in {len(falls)} of"
        f" {len(steps)} epochs, by at most {-min(falls, default=0):.1e} of itself"
    )


def print_invariance(net: torch.nn.Module, data, report: nm.MarginReport) -> None:
    """Scale the net along its symmetry: the margin stays, the scores move by orders."""
    layers = [module for module in net if isinstance(module, torch.nn.Linear)]
    for c in (1e-3, 1e3):
        scaled = copy.deepcopy(net)
        with torch.no_grad():
            for i, layer in enumerate((m for m in scaled if isinstance(m, torch.nn.Linear)), 1):
                layer.weight.mul_(c ** (1 / len(layers)))
                layer.bias.mul_(c ** (i / len(layers)))
        moved = nm.measure(scaled, data)
        change = moved.margins["quasi"].value / report.margins["quasi"].value - 1
        print(
            f"scores times {c:g} along the symmetry: q_min {moved.q_min:.4g} in place of"
            f" {report.q_min:.4g}, quasi-normalized margin changed by {change:.0e}"
        )


if __name__ == "__main__":
    main()
