"""Attacks on nearness and time: our own, DeepFool, DDN, Carlini-Wagner, FMN, and descents."""

import time
from collections.abc import Callable

import foolbox
import numpy as np
import torch
from torch import Tensor

import netmargin as nm
from netmargin.radii.attacks import ScaledScores
from netmargin.radii.boundary import Attacked, compute_margin_and_slope, polish_points
from netmargin.radii.input_box import InputBox, choose_bounds

from .nearest_peers import find_by_descent
from .radii_nets import NETS, Trained, train_net

CARLINI_WAGNER_STEPS = 100
"""Steps of Carlini-Wagner in each of its six searches: three times as many find radii of the same
median to 1e-3, in up to 1.6 times the time, since it stops early.
"""
_SEED = 0
_MARGIN = 10.0
"""Median margin of the scores that attacks see. At 1 the gradient of the cross-entropy is not yet
that of the nearest class, and DDN finds radii 5% larger on digits.
"""
_SAME = 1e-4
"""Relative difference below which two radii count as the same, in counts of images."""

Find = Callable[[Trained], np.ndarray]


def find_by_walk(trained: Trained) -> np.ndarray:
    """Radii by `nm.robustness`; the proofs of other efforts take longer than its attack."""
    data = trained.X, trained.y
    return nm.robustness(trained.net, data, effort="quick", progress=False).upper


def find_by(*attacks: str, steps: int = CARLINI_WAGNER_STEPS) -> Find:
    """The nearest radii of some of foolbox, each point moved along the boundary and judged."""
    return lambda trained: np.min(
        [run_foolbox(trained.net, trained.X, trained.y, name, steps=steps) for name in attacks], 0
    )


def run_foolbox(
    net: torch.nn.Module, x: Tensor, y: Tensor, name: str, *, steps: int, box: InputBox = None
) -> np.ndarray:
    """Radii by one attack of foolbox, which is made for margins of order 1; 0 where it is wrong."""
    q = nm.measure(net, (x, y)).q
    samples = Attacked(ScaledScores(net, float(q[q > 0].median()) / _MARGIN), x, y, box).part(q > 0)
    # The median distance to the boundary, as if the net were linear.
    margin, slope = compute_margin_and_slope(*samples[:3])
    first_order = float((margin / slope.flatten(1).norm(dim=1)).median())
    made = {  # only the one that is asked for is made
        "deepfool": lambda: foolbox.attacks.L2DeepFoolAttack(),
        "ddn": lambda: foolbox.attacks.DDNAttack(init_epsilon=first_order),
        "carlini-wagner": lambda: foolbox.attacks.L2CarliniWagnerAttack(
            binary_search_steps=6, steps=steps, initial_const=0.1
        ),
    }
    bounds = box or choose_bounds(samples.x)
    attacked = foolbox.PyTorchModel(samples.net.eval(), bounds=bounds, device="cpu")
    torch.manual_seed(_SEED)
    points = made[name]()(attacked, samples.x, samples.y, epsilons=None)[0].detach()
    radii = torch.zeros(len(x), dtype=x.dtype)
    radii[q > 0] = polish_points(samples, points)[0]
    return radii.numpy()


def find_by_fmn(trained: Trained) -> np.ndarray:
    """Radii by foolbox's fast minimum-norm attack, moved along the boundary and judged likewise.

    As it is, without an attack before it, it hands back points at its first step size, 1.0.
    """
    low, high = choose_bounds(trained.X)
    attacked = foolbox.PyTorchModel(trained.net, bounds=(low, high), device="cpu")
    attack = foolbox.attacks.L2FMNAttack()
    torch.manual_seed(_SEED)
    points = attack(attacked, trained.X, trained.y, epsilons=None)[0].detach()
    return polish_points(Attacked(trained.net, trained.X, trained.y), points)[0].numpy()


def find_by_starts(trained: Trained) -> np.ndarray:
    """Radii by descents from 20 random starts, in balls that begin at DeepFool's radii."""
    torch.manual_seed(_SEED)
    known = torch.from_numpy(find_by("deepfool")(trained))
    return find_by_descent(trained.net, trained.X, trained.y, known).minimum(known).numpy()


ATTACKS: dict[str, Find] = {
    "walk (ours)": find_by_walk,
    "DeepFool + DDN": find_by("deepfool", "ddn"),
    "all three of foolbox": find_by("deepfool", "ddn", "carlini-wagner"),
    "DDN": find_by("ddn"),
    "Carlini-Wagner": find_by("carlini-wagner"),
    "FMN": find_by_fmn,
    "descent, 20 starts": find_by_starts,
}


def main() -> None:
    """Print a table for each net: radii over those of our own attack, and CPU seconds."""
    torch.set_num_threads(1)
    for name in NETS:
        try:
            trained = train_net(name)
        except nm.DataError as error:
            print(f"{name} left out: {error}")
            continue
        _compare(trained)


def attack_by(
    trained: Trained, attacks: list[str]
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The radii that these attacks find, and their CPU seconds, by the names in ATTACKS."""
    radii, seconds = {}, {}
    for attack in attacks:
        started = time.process_time()
        radii[attack] = ATTACKS[attack](trained)
        seconds[attack] = time.process_time() - started
    return radii, seconds


def _compare(trained: Trained) -> None:
    """Run all attacks on one net and print what they found."""
    radii, seconds = attack_by(trained, list(ATTACKS))
    ours, nearest = next(iter(radii.values())), np.min(list(radii.values()), axis=0)
    print(
        f"\n{trained.name}, {len(ours)} images: radius over that of our attack\n"
        f"{'':22} {'median':>8} {'least':>7} {'largest':>8} {'nearest':>8} {'nearer':>7}"
        f" {'farther':>8} {'CPU s':>6}"
    )
    for attack, found in radii.items():
        ratio = found / ours
        print(
            f"{attack:22} {np.median(ratio):8.4f} {ratio.min():7.4f} {ratio.max():8.4f}"
            f" {np.mean(found <= nearest * (1 + _SAME)):8.0%} {np.mean(ratio < 1 - _SAME):7.0%}"
            f" {np.mean(ratio > 1 + _SAME):8.0%} {seconds[attack]:6.2f}",
            flush=True,
        )
    nearer = np.flatnonzero(nearest < ours * (1 - _SAME))
    if len(nearer):
        print(
            "images on which another attack was nearer: "
            + ", ".join(f"{i} ({nearest[i] / ours[i]:.4f})" for i in nearer)
        )
