"""Every ratio that the documents claim against a peer, measured anew, in one table.

    python -m benchmarks ratios

takes some 70 minutes of one thread, most of them for the estimators, and of two for the sweep.
Benchmarks that keep their rows in runs/ are not repeated. Peers that are not installed are left out
with a reason. `tests/test_ratios.py` looks for the words of each claim on its page.

Not here, because they have no peer or take hours: the tables of accuracies (`estimators`,
`label_errors`), `certificate`, and `python -m benchmarks.which_margin`.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

import netmargin as nm
from netmargin.datasets import clusters
from netmargin.solvers import f1_max_margin, f1_soft_margin, min_norm_interpolation

from . import (
    attacks,
    brackets,
    cluster,
    estimators,
    estimators_growth,
    estimators_speed,
    flow_gradients,
    input_margins,
    label_errors,
    radii_peers,
    random_features,
    variation_norm,
    watching,
)
from .clock import clock_of_process
from .radii_nets import Trained, train_net

SLACK = 1.3
"""A ratio of times may be so many times what is claimed, or that part of it: medians on a machine
that does other work differ by a fifth.
"""
EXACT = 1.02
"""What a ratio of margins, radii or counts may differ by: versions of libraries round otherwise."""


class Ratio(NamedTuple):
    """One measurement: of which case, our number and the peer's, and their unit."""

    case: str
    ours: float
    peer: float
    unit: str = "s"


@dataclass(frozen=True)
class Claim:
    """What a document says, and how to measure it.

    Attributes
    ----------
    page : str
        The document, such as docs/compare.md.
    words : str
        What stands there, at least its numbers.
    peer : str
        Beside whom.
    measure : callable
        Measures one ratio or several; raises ImportError or nm.DataError where the peer or the
        data are not there.
    claimed : tuple of pairs
        The least and the largest of our numbers over the peer's that the words allow: one pair for
        each ratio in their order, or one for all.
    slack : float
        What a ratio may be beyond it.
    """

    page: str
    words: str
    peer: str
    measure: Callable[[], Iterator[Ratio]]
    claimed: tuple[tuple[float, float], ...]
    slack: float = SLACK


def search_beside_steps() -> Iterator[Ratio]:
    """The margin of our search after 1/50 of the time of the peer's steps."""
    with clock_of_process():
        for seed in range(3):
            X, y = (part.numpy() for part in clusters(seed=seed))
            reached, seconds = variation_norm.time_ascent(X, y)
            ours = f1_max_margin(X, y, pricing="local", time_limit=seconds / 50)
            yield Ratio(f"margin, seed {seed}", ours.margin, reached, "")


def flow_beside_adaptive_steps() -> Iterator[Ratio]:
    """Gradients of the exact flow and of the peer."""
    found = flow_gradients.follow_both()
    ours = found.gradients + found.of_kinks
    yield Ratio("flow to time 10", ours, found.of_peer, "gradients")


def watch(name: str) -> Callable[[], Iterator[Ratio]]:
    """A look of a watch in a loop beside bare passes."""

    def measure() -> Iterator[Ratio]:
        cost = watching.measure_loop(name)
        yield Ratio(name, cost.look, cost.passes)

    return measure


def fits_beside_svc(data: str) -> Callable[[], Iterator[Ratio]]:
    """Fits of the NTK classifier and of SVC; the ratio is the median one of neighbours."""

    def measure() -> Iterator[Ratio]:
        found = estimators_speed.measure_apart((data,), numba=True)
        for C in estimators_speed.COSTS:
            ours, _, ratio = found[data, C]
            yield Ratio(f"fit, {data}, {'hard' if C is None else f'C = {C:g}'}", ours, ours / ratio)

    return measure


def fits_without_numba() -> Iterator[Ratio]:
    """The same fits in plain numpy and compiled."""
    for data in estimators_speed.SETS:
        compiled, plain = (
            estimators_speed.measure_apart((data,), numba=on) for on in (True, False)
        )
        for C in estimators_speed.COSTS:
            case = f"without numba, {data}, {'hard' if C is None else f'C = {C:g}'}"
            yield Ratio(case, plain[data, C][0], compiled[data, C][0])


def median_fit(model: str) -> Callable[[], Iterator[Ratio]]:
    """The median over all data sets of classes of the time of a fit over that of SVC."""

    def measure() -> Iterator[Ratio]:
        seconds = _list_seconds([model, "SVC"])
        ratios = [seconds[data, model] / seconds[data, "SVC"] for data in estimators.CLASSIFICATION]
        yield Ratio(f"median fit of 20 sets, {model}", float(np.median(ratios)), 1.0, "")

    return measure


def joint_classes() -> Iterator[Ratio]:
    """The longest and the shortest fits of all classes together beside one against the rest."""
    costs = ("", " C=100", " hard")
    seconds = _list_seconds([f"NTK{joint}{cost}" for joint in ("", " joint") for cost in costs])
    for data in (
        "wine", "digits", "5,000 x 20, 5 classes", "iris", "spheres in 10 d", "blobs",
        "1,000 x 50, 3 classes",
    ):  # fmt: skip
        for cost in costs:
            ours, rest = (seconds[data, f"NTK{joint}{cost}"] for joint in (" joint", ""))
            yield Ratio(f"joint, {data},{cost or ' C=1'}", ours, rest)


def _list_seconds(models: list[str]) -> dict[tuple[str, str], float]:
    """CPU seconds of fits by data set and model; those that have no row yet are measured."""
    estimators.measure_missing(models)
    return {(row["data"], row["model"]): row["fit"] for row in estimators.read_rows()}


def growth() -> Iterator[Ratio]:
    """Fits of 20,000 samples."""
    estimators_growth.measure_missing((20_000,))
    rows = {(r["n"], r["C"], r["model"]): r["seconds"] for r in estimators_growth.read_rows()}
    for C in estimators_growth.COSTS:
        ours, peer = (rows[20_000, C, model] for model in ("NTK", "SVC"))
        yield Ratio(f"fit, n = 20,000, C = {C:g}", ours, peer)


def kernel_beside_features() -> Iterator[Ratio]:
    """The kernel beside 3,000 random features, which lose nothing."""
    for name, parts in random_features.split_sets().items():
        _, ours = random_features.measure(random_features.ReLUKernelClassifier(), parts)
        _, peer = random_features.measure(random_features.make_linear(3000, 0), parts)
        yield Ratio(f"fit, {name}", ours, peer)


def labels_beside_cleanlab(name: str) -> Callable[[], Iterator[Ratio]]:
    """Ranking the samples of one set, all training counted."""

    def measure() -> Iterator[Ratio]:
        torch.set_num_threads(1)
        X, y = label_errors.load_set(name, 0)
        flipped, _ = label_errors.flip_labels(X, y, *label_errors.NOISES["symmetric 10%"], 0)
        found = label_errors.methods(name, X, flipped, 0)
        if "cleanlab" not in found:
            raise ModuleNotFoundError("pip install cleanlab")
        began = time.process_time()
        found["nm.label_errors"]()
        middle = time.process_time()
        found["cleanlab"]()
        yield Ratio(f"labels ranked, {name}", middle - began, time.process_time() - middle)

    return measure


def attack_beside_foolbox(name: str) -> Callable[[], Iterator[Ratio]]:
    """CPU seconds, and the median radius, beside three attacks together."""

    def measure() -> Iterator[Ratio]:
        torch.set_num_threads(1)
        ours, peer = "walk (ours)", "all three of foolbox"
        radii, seconds = attacks.attack_by(train_net(name), [ours, peer])
        yield Ratio(f"attack, {name}", seconds[ours], seconds[peer])
        ratio = radii[ours] / radii[peer]
        yield Ratio(f"median radius, {name}", float(np.median(ratio)), 1.0, "")

    return measure


def proofs_beside_norms(name: str) -> Callable[[], Iterator[Ratio]]:
    """Attacked over certified radius, beside that of the product of norms."""

    def measure() -> Iterator[Ratio]:
        torch.set_num_threads(1)
        whole = train_net(name)
        images = radii_peers.IMAGES
        few = Trained(name, whole.net, whole.X[:images], whole.y[:images])
        upper = nm.robustness(few.net, (few.X, few.y), progress=False).upper
        ours, peer = (
            float(np.median(upper / radii_peers.OURS[method](few)))
            for method in ("nm.robustness, standard", "product of norms")
        )
        yield Ratio(f"attacked over certified, {name}", ours, peer, "")

    return measure


def distances_beside_radii() -> Iterator[Ratio]:
    """Input margins beside attacked radii: their size, and their time."""
    train, test = input_margins.load_images()
    found = input_margins.compare(input_margins.train_cnn(train), test)
    yield Ratio("median input margin", found.over_radius, 1.0, "radii")
    yield Ratio("input margins", found.seconds, found.radius_seconds)


def brackets_in_ten_seconds() -> Iterator[Ratio]:
    """Mean of bound over margin of ten data sets, beside branch and bound at the best weights."""
    brackets.measure_missing([run for run in brackets.RUNS if (run[0], run[2]) == (15, 10.0)])
    ours, former = (float(np.mean(brackets.list_ratios(10.0, m))) for m in ("now", "before"))
    yield Ratio("mean bound over margin in 10 s", ours, former, "")


def other_problems() -> Iterator[Ratio]:
    """Objective over bound of the soft margin, and the least norm over its bound."""
    X, y = (part.numpy() for part in clusters(seed=1))
    with clock_of_process():
        soft = f1_soft_margin(X, y, C=1.0, time_limit=12)
        norm = min_norm_interpolation(X[:100], y[:100], time_limit=12)
    yield Ratio("soft margin, C = 1", soft.objective, soft.lower_bound, "")
    yield Ratio("least norm, 100 points", norm.norm, norm.lower_bound, "")


def sweep_on_two_workers() -> Iterator[Ratio]:
    """Wall seconds of a sweep on two workers and in one process."""
    alone, shared = cluster.time_sweep(cluster.FIGURE, "paper")
    yield Ratio(f"{cluster.FIGURE}, paper scale", shared, alone)


CLAIMS = [
    Claim(
        "docs/compare.md",
        "2 to 3% more in half a second",
        "50,000 gradient steps",
        search_beside_steps,
        ((1.02, 1.03),),
        EXACT,
    ),
    Claim(
        "docs/compare.md",
        "takes 2,900 gradients",
        "RK45 of scipy",
        flow_beside_adaptive_steps,
        ((2900 / 63000, 2900 / 63000),),
        1.1,  # whether a step meets a kink depends on the last bits
    ),
    Claim(
        "docs/training-loops.md",
        "1.04 to 1.12 times as long in a loop",
        "bare forward passes",
        watch("own loop, MNIST CNN"),
        ((1.04, 1.12),),
    ),
    Claim(
        "docs/training-loops.md",
        "1.10 to 1.13 times in Lightning",
        "bare forward passes",
        watch("Lightning, MNIST CNN"),
        ((1.1, 1.13),),
    ),
    Claim(
        "docs/training-loops.md",
        "0.97 to 1.00 times in the Trainer",
        "bare forward passes",
        watch("Trainer, BERT of 4 layers, 128 wide"),
        ((0.97, 1.0),),
    ),
    *(
        Claim(
            "docs/estimators.md",
            words,
            "SVC",
            fits_beside_svc(data),
            tuple((c, c) for c in claimed),
        )
        for data, words, claimed in (
            ("breast cancer", "2.6 / 2.5 / 2.7", (2.6, 2.5, 2.7)),
            ("moons", "3.3 / 2.3 / .001", (3.3, 2.3, 0.001)),
            ("digits", "2.3 / 2.5 / 2.5", (2.3, 2.5, 2.5)),
            ("5,000 x 20, 5 classes", "2.5 / 1.9 / 1.9", (2.5, 1.9, 1.9)),
            ("5,000 x 20, 2 classes, 10% mistakes", "1.6 / .82 / .77", (1.6, 0.82, 0.77)),
        )
    ),
    Claim(
        "docs/estimators.md",
        "in 1.7 to 4.8 times the time",
        "with numba",
        fits_without_numba,
        ((1.7, 4.8),),
    ),
    Claim(
        "docs/estimators.md",
        "takes 1.7 times as long as `SVC` in the median",
        "SVC",
        median_fit("NTK"),
        ((1.7, 1.7),),
    ),
    Claim(
        "docs/estimators.md",
        "needs 600 times the time of `SVC` in the median",
        "SVC",
        median_fit("variation norm"),
        ((600, 600),),
    ),
    Claim(
        "docs/estimators.md",
        "It takes 1.6 to 6.4 times as long",
        "one against the rest",
        joint_classes,
        ((1.6, 6.4),),
    ),
    Claim(
        "docs/estimators.md",
        "| `NTKClassifier`, C = 1 | 16.9 |",
        "SVC",
        growth,
        ((16.9 / 3.5, 16.9 / 3.5), (18.0 / 17.6, 18.0 / 17.6)),
    ),
    Claim(
        "docs/estimators.md",
        "the kernel is faster than as many features as lose nothing",
        "3,000 features",
        kernel_beside_features,
        ((0, 1),),
    ),
    *(
        Claim(
            "docs/label-errors.md",
            words,
            "cleanlab",
            labels_beside_cleanlab(name),
            ((claimed, claimed),),
        )
        for name, words, claimed in (
            ("digits", "| cleanlab | .9970 | .069 | 5.7 |", 0.9 / 5.7),
            ("MNIST 1,000", "| cleanlab | .9897 | .148 | 7.7 |", 1.6 / 7.7),
            ("MNIST 5,000", "| cleanlab | .9961 | .085 | 36.7 |", 8.7 / 36.7),
            ("CIFAR-10 5,000", "| cleanlab | .838 | .524 | 38.4 |", 8.1 / 38.4),
            ("cancer", "| cleanlab | .9771 | .179 | .4 |", 0.1 / 0.4),
        )
    ),
    *(
        Claim(
            "docs/attacked-radii.md",
            words,
            "three of foolbox",
            attack_beside_foolbox(name),
            ((seconds, seconds), (1 / median, 1 / median)),
        )
        for name, words, seconds, median in (
            ("digits 64-64-10", "1.0664 | 0% | 6% | 0.9", 0.4 / 0.9, 1.0),
            ("digits 64-128-64-10", "1.1278 | 0% | 11% | 1.1", 0.7 / 1.1, 1.0),
            ("MNIST 784-100-10", "1.0566 | 0% | 22% | 2.3", 1.7 / 2.3, 1.0),
            ("MNIST 784-256-256-10", "1.0692 | 0% | 35% | 5.6", 4.9 / 5.6, 1.0),
            ("MNIST max-pool CNN", "1.2184 | 2% | 97% | 21.0", 27.4 / 21.0, 1.0097),
        )
    ),
    *(
        Claim(
            "docs/certified-radii.md",
            words,
            "product of norms",
            proofs_beside_norms(name),
            ((claimed, claimed),),
            EXACT,
        )
        for name, words, claimed in (
            ("digits 64-64-10", "| product of norms | 2.213 (", 1.001 / 2.213),
            ("digits 64-128-64-10", " | 3.060 (", 1.001 / 3.060),
            ("MNIST 784-100-10", " | 2.549 (", 1.001 / 2.549),
        )
    ),
    Claim(
        "docs/margins.md",
        "its median is 1.03 times that, in a hundredth of the time",
        "attacked radii",
        distances_beside_radii,
        ((1.03, 1.03), (0, 0.01)),
    ),
    Claim(
        "docs/choosing.md",
        "| 10 s, the former way | 1.00 | 3.56 |",
        "best dual weights alone",
        brackets_in_ten_seconds,
        ((1.35 / 2.52, 1.35 / 2.52),),
    ),
    Claim(
        "docs/choosing.md",
        "objective over bound 1.39 after 12 s; the least norm through 100 of them: 1.13",
        "the proved bound",
        other_problems,
        ((1.39, 1.39), (1.13, 1.13)),
    ),
    Claim(
        "docs/cluster.md",
        "1.78 times as fast",
        "one process",
        sweep_on_two_workers,
        ((1 / 1.78, 1 / 1.78),),
        1.1,  # of the wall, on a quiet machine
    ),
]


def main() -> None:
    """Print the rows of each claim as soon as they are there."""
    torch.set_num_threads(1)
    print("| page | what | ours | peer | ratio | claimed | |\n|---|---|---|---|---|---|---|")
    for claim in CLAIMS:
        try:
            with redirect_stdout(sys.stderr):  # what frameworks and other benchmarks print
                ratios = list(claim.measure())
        except (ImportError, nm.DataError) as error:
            print(f"| {claim.page} | {claim.words} | | {claim.peer} | | | left out: {error} |")
            continue
        for index, found in enumerate(ratios):
            print(describe(claim, index, found), flush=True)


def describe(claim: Claim, index: int, found: Ratio) -> str:
    """The row of one ratio; the last cell says whether the claim holds."""
    low, high = claim.claimed[index if len(claim.claimed) > 1 else 0]
    ratio = found.ours / found.peer
    holds = low / claim.slack <= ratio <= high * claim.slack
    claimed = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    ours, peer = (f"{value:.4g} {found.unit}".strip() for value in (found.ours, found.peer))
    return (
        f"| {claim.page.removeprefix('docs/')} | {found.case} | {ours} | {peer} ({claim.peer}) |"
        f" {ratio:.3g} | {claimed} | {'holds' if holds else '**differs**'} |"
    )


if __name__ == "__main__":
    main()
