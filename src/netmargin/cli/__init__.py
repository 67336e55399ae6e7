"""The command line: the verbs of the library, on the nets of the papers and on your own."""

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

import torch

from .. import datasets, losses
from ..errors import DataError, Interrupted, NetmarginError
from ..homogeneity import analyse
from ..l2_robustness.attacks import ATTACKS
from ..margins import in_mode, measure
from ..models import BIASES
from ..recipes import RECIPES
from ..training import load_weights
from ..training.checkpoint import write_atomically
from . import inputs
from .bounding import bound
from .inputs import positive
from .radii import robustness
from .reproducing import reproduce
from .showing import DRAWN, show
from .solving import solve
from .training import train
from .verifying import verify

_EXAMPLES = """examples:
  netmargin train digits-mlp --until-log10-loss -40
  NETMARGIN_DATA=data netmargin train mnist-cnn-small --limit 1000 --until-log10-loss -30
  netmargin train --factory mypackage.nets:make_model --data points.npz --epochs 200
  netmargin measure runs/digits-mlp/model.pt --factory digits-mlp --data digits
  netmargin certify runs/digits-mlp/model.pt --factory digits-mlp --data digits --radius 1e-3
  netmargin robustness runs/digits-mlp/model.pt --factory digits-mlp --data digits --box 0 1 --limit 200 --out runs/radii
  netmargin analyse --factory mypackage.nets:make_model --shape 3,32,32
  netmargin data show clusters --n 256 --d 15 --k 3 --out runs/clusters
  netmargin solve f1 --data runs/clusters/points.npz --time-limit 60
  netmargin bounds --data runs/clusters/points.npz
  netmargin verify --quick
  netmargin verify lyu-li/sandwich wei --html runs/ledger.html
  netmargin reproduce chizat-bach/fig2d --scale laptop
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 done, 1 the work failed, 2 wrong usage)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    try:
        return options.run(options) or 0
    except (NetmarginError, Interrupted) as error:
        print(f"netmargin: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="netmargin",
        description="Measure, maximize and certify the margins of neural networks.",
        epilog=_EXAMPLES,
        formatter_class=form,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    recipes = "recipes:\n" + "\n".join(f"  {name:20} {recipe.title}" for name, recipe in RECIPES.items())

    def verb(name: str, run, help: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=help, epilog=f"{recipes}\n\n{_EXAMPLES}", formatter_class=form)
        sub.set_defaults(run=run)
        sub.add_argument("--factory", help="your model as package.module:function, or the name of a recipe")
        sub.add_argument(
            "--bias", choices=BIASES, default="first", help="which layers of a recipe's net have a bias (default: first)"
        )
        sub.add_argument("--json", action="store_true", help="print the result as JSON")
        return sub

    def takes_data(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--data", help=f"{', '.join(datasets.BY_NAME)}, or an .npz file with arrays X and y")
        sub.add_argument("--split", choices=("train", "test"), default="train", help="part of a named data set (default: train)")
        sub.add_argument("--limit", type=positive(int), help="class-balanced subset of this size")
        sub.add_argument("--loss", choices=losses.BY_NAME, default="cross-entropy", help="default: cross-entropy")

    sub = verb("analyse", _analyse, "How a net's outputs scale with its parameters: order, groups, what blocks it.")
    sub.add_argument("recipe", nargs="?", help="name of a recipe")
    sub.add_argument("--data", help="a named data set or .npz file to take inputs from")
    sub.add_argument("--shape", help="shape of one input, such as 3,32,32 (random inputs)")

    sub = verb("measure", _measure, "Margins of a saved net on data, in every normalization.")
    sub.add_argument("weights", help="file with a state dict, or a checkpoint of a run")
    takes_data(sub)

    sub = verb("certify", _certify, "How far a saved net is from a max-margin point (KKT), and the samples it rests on.")
    sub.add_argument("weights", help="file with a state dict, or a checkpoint of a run")
    takes_data(sub)
    sub.add_argument(
        "--norm", choices=("global", "layers", "partial"), default="global", help="of which max-margin problem (default: global)"
    )
    sub.add_argument(
        "--radius", type=positive(float), default=0.0, help="take gradients from within this share of ||theta||, for nets on kinks"
    )
    sub.add_argument(
        "--max-constraints", type=positive(int), default=2000, metavar="K", help="how many may take part (default: 2000)"
    )
    sub.add_argument(
        "--out", type=Path, help="folder for certificate.json, the trade-off curve and, for images, the support vectors"
    )

    sub = verb(
        "robustness",
        robustness,
        "How far inputs must move in L2 to be misclassified: certified and attacked radii of saved nets, side by side.",
    )
    sub.add_argument("weights", nargs="+", help="files with state dicts or checkpoints, such as one net at several times")
    takes_data(sub)
    sub.add_argument(
        "--box",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="values that inputs may take, such as 0 1 for images (default: all)",
    )
    sub.add_argument("--attacks", nargs="+", choices=ATTACKS, default=ATTACKS, help="which to run (default: all)")
    sub.add_argument("--certified-only", action="store_true", help="no attacks, which need foolbox")
    sub.add_argument("--carlini-wagner-steps", type=positive(int), default=300, metavar="N", help="default: 300")
    sub.add_argument("--batch-size", type=positive(int), default=100, help="samples attacked at once (default: 100)")
    sub.add_argument("--out", type=Path, help="folder for results and curves; the same call goes on from the batches that it holds")
    sub.add_argument("--quiet", action="store_true", help="no progress line")

    sub = verb("train", train, "Train past float underflow, watching the margins.")
    sub.add_argument("recipe", nargs="?", help="name of a recipe")
    takes_data(sub)
    sub.add_argument("--until-log10-loss", type=float, metavar="X", help="stop below this log10 of the mean loss, such as -40")
    sub.add_argument(
        "--epochs", type=int, metavar="N", help="stop after N accepted epochs (default: 100 if no other rule is given)"
    )
    sub.add_argument(
        "--constant-lr", type=positive(float), metavar="RATE", help="plain SGD with this rate instead of the loss-based rule"
    )
    sub.add_argument("--batch-size", type=positive(int), help="default: that of the recipe, or 100")
    sub.add_argument("--seed", type=int, default=0, help="of initial weights and shuffling (default: 0)")
    sub.add_argument("--out", type=Path, help="folder of the run (default: runs/NAME); a run that it holds is continued")
    sub.add_argument("--quiet", action="store_true", help="no progress line")

    help = "The largest margin that two-layer nets (f1), fixed-kernel or linear classifiers can have, with a proved bound."
    sub = verbs.add_parser("solve", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    sub.set_defaults(run=solve)
    problems = ("f1", "f2", "ntk", "linear", "interpolate")
    sub.add_argument(
        "problem",
        choices=problems,
        help="variation norm, arc-cosine or tangent kernel, linear; least variation norm through real values y",
    )
    sub.add_argument("--data", required=True, help=".npz file with arrays X (n, d) and y (two labels, or real values)")
    sub.add_argument(
        "--bias", action=argparse.BooleanOptionalAction, help="a bias that counts in the norm (default: all but ntk and linear)"
    )
    sub.add_argument("--soft", type=positive(float), metavar="C", help="soft margin with this cost of hinge loss (f1)")
    sub.add_argument(
        "--time-limit", type=positive(float), metavar="SECONDS", help="return the best bracket found by then (f1, interpolate)"
    )
    sub.add_argument("--out", type=Path, help="write neurons, weights and dual weights to this .npz file")
    sub.add_argument("--json", action="store_true", help="print the result as JSON, dual weights included")

    help = "Bounds of the test error of the best two-layer net and kernel predictor on the data, with their terms and assumptions."
    sub = verbs.add_parser("bounds", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    sub.set_defaults(run=bound)
    sub.add_argument("--data", required=True, help=".npz file with arrays X (n, d) and y (two labels)")
    sub.add_argument("--bias", action=argparse.BooleanOptionalAction, default=True, help="a bias that counts in the norm")
    sub.add_argument(
        "--radius", type=positive(float), help="bound of |x| over the distribution, with the bias (default: of the samples)"
    )
    sub.add_argument("--delta", type=positive(float), default=0.05, help="bounds hold with probability 1 - delta (default: 0.05)")
    sub.add_argument("--time-limit", type=positive(float), default=60.0, metavar="SECONDS", help="for all of it (default: 60)")
    sub.add_argument("--json", action="store_true", help="print the result as JSON")

    help = "Examine the claims of the papers: the ledger. Fails if one of them does."
    sub = verbs.add_parser("verify", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    sub.set_defaults(run=verify)
    sub.add_argument("ids", nargs="*", metavar="ID", help="claims, such as lyu-li/euler, or papers, such as lyu-li (default: all)")
    sub.add_argument("--quick", action="store_true", help="few instances: one or two minutes for all claims")
    sub.add_argument("--seed", type=int, default=0, help="of the random instances (default: 0)")
    sub.add_argument("--trial", type=int, metavar="K", help="this trial alone, to repeat a violation")
    sub.add_argument("--list", action="store_true", help="the claims and what they say")
    sub.add_argument("--json", action="store_true", help="print the ledger as JSON")
    sub.add_argument("--html", type=Path, metavar="FILE", help="write it as a page")
    sub.add_argument("--markdown", type=Path, metavar="FILE", help="write it as Markdown, like docs/ledger.md")

    help = "Figures and tables of the papers: compute, draw, write the numbers, and say what they show."
    sub = verbs.add_parser("reproduce", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    sub.set_defaults(run=reproduce)
    sub.add_argument("ids", nargs="*", metavar="ID", help="figures, such as chizat-bach/fig2d, papers, such as chizat-bach, or all")
    sub.add_argument(
        "--scale", choices=("smoke", "laptop", "paper"), default="smoke", help="seconds, minutes, or the paper's own settings"
    )
    sub.add_argument("--list", action="store_true", help="ids, titles, minutes per scale, and the last run")
    sub.add_argument("--check", action="store_true", help="fail if a finding is not reproduced")
    sub.add_argument("--jobs", type=positive(int), default=2, help="processes (default: 2)")
    sub.add_argument("--out", type=Path, default=Path("runs/reproduce"), help="folder of all results (default: runs/reproduce)")
    sub.add_argument("--gallery", type=Path, metavar="FILE", help="write a page with all figures so far, like docs/gallery.md")
    sub.add_argument("--quiet", action="store_true", help="no progress line")

    help = "The papers' distributions and the image sets: what they are, a picture, samples as arrays."
    sub = verbs.add_parser("data", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    shown = sub.add_subparsers(metavar="show", required=True).add_parser("show", help=help, description=help, formatter_class=form)
    shown.set_defaults(run=show)
    shown.add_argument("name", choices=(*DRAWN, *datasets.BY_NAME))
    shown.add_argument("--n", type=positive(int), help="samples (default: 256; of parity all corners)")
    shown.add_argument("--d", type=positive(int), default=15, help="dimension (default: 15)")
    shown.add_argument("--k", type=positive(int), default=3, help="clusters per side; bits of the parity (default: 3)")
    shown.add_argument("--units", type=positive(int), default=10, help="of the teacher (default: 10)")
    shown.add_argument("--margin", type=positive(float), default=0.01, help="of the teacher, not normalized (default: 0.01)")
    shown.add_argument("--seed", type=int, default=0, help="default: 0")
    shown.add_argument("--out", type=Path, help="folder for points.npz and pictures")
    return parser


def _analyse(options: argparse.Namespace) -> None:
    model = inputs.model(options)
    if options.shape:
        try:
            shape = [positive(int)(part) for part in options.shape.split(",")]
        except ValueError:
            raise DataError(
                f"--shape takes positive whole numbers separated by commas, such as 3,32,32; got {options.shape!r}"
            ) from None
        x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    else:
        x, _ = inputs.data(options, limit=10 if inputs.data_name(options) in datasets.BY_NAME else None)
    with in_mode(model, training=False):
        answer = analyse(model, x)
    print(json.dumps(answer.to_dict(), indent=2) if options.json else answer.summary())


def _measure(options: argparse.Namespace) -> None:
    model = inputs.model(options)
    load_weights(model, options.weights)
    report = measure(model, inputs.data(options, limit=options.limit), loss=losses.BY_NAME[options.loss])
    result = report.to_dict() | {"homogeneity": report.homogeneity.to_dict(), "support": report.support.tolist()}
    print(json.dumps(result, indent=2) if options.json else report.summary())


def _certify(options: argparse.Namespace) -> None:
    from ..kkt import certify

    model = inputs.model(options)
    load_weights(model, options.weights)
    X, y = inputs.data(options, limit=options.limit)
    certificate = certify(
        model,
        (X, y),
        norm=options.norm,
        loss=losses.BY_NAME[options.loss],
        radius=options.radius,
        max_constraints=options.max_constraints,
    )
    if options.out:
        from ..figures import draw_certificate

        write_atomically(options.out / "certificate.json", json.dumps(certificate.to_dict(), indent=2).encode())
        drawn = draw_certificate(certificate, X, y, options.out)
        print(f"Written: {options.out}/ (certificate.json, {', '.join(p.name for p in drawn)})", file=sys.stderr)
    print(json.dumps(certificate.to_dict(), indent=2) if options.json else certificate.summary())
