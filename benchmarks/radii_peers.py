"""Certified radii of `nm.robustness` and of peers on the same nets and images.

Peers pin older libraries, so that they run in environments of their own. NETMARGIN_PEERS names
their interpreters, separated by ":", such as one where `pip install eclipse-nn` was done, and one
of Python 3.9 after `pip install auto_LiRPA==0.3 "numpy<2" tqdm`.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

import netmargin as nm
from netmargin.radii.chain_radii import EFFORTS

from .radii_nets import NETS, Trained, train_net

IMAGES = 10
"""alpha-CROWN takes seconds for each radius of an image."""
_SCRIPT = Path(__file__).parent / "peer_radii.py"


def certify_by_norms(trained: Trained) -> np.ndarray:
    """Gaps over the product of the norms of all layers, times sqrt 2 for two scores."""
    norms = [torch.linalg.matrix_norm(m.weight, 2) for m in trained.net if isinstance(m, nn.Linear)]
    gaps = nm.measure(trained.net, (trained.X, trained.y)).q
    return (gaps / (2**0.5 * torch.stack(norms).prod())).numpy()


def certify_by_netmargin(effort: str) -> Callable[[Trained], np.ndarray]:
    """The lower radii of `nm.robustness`, its attack included where there is a search."""
    attacks = effort != "quick"
    return lambda trained: (
        nm.robustness(
            trained.net, (trained.X, trained.y), attacks=attacks, effort=effort, progress=False
        ).lower
    )


def main() -> None:
    """Print certified radii, what is left up to the attacked ones, and seconds an image."""
    torch.set_num_threads(1)
    peers = [path for path in os.environ.get("NETMARGIN_PEERS", "").split(":") if path]
    if not peers:
        print(f"No peers: {__doc__}")
    for name in NETS:
        if "CNN" in name:  # a peer reads dense layers only
            continue
        try:
            trained = train_net(name)
        except nm.DataError as error:
            print(f"{name} left out: {error}")
            continue
        _compare(Trained(name, trained.net, trained.X[:IMAGES], trained.y[:IMAGES]), peers)


OURS = {"product of norms": certify_by_norms}
OURS |= {f"nm.robustness, {effort}": certify_by_netmargin(effort) for effort in EFFORTS}
"""The methods that run here, without a peer."""


def _compare(trained: Trained, peers: list[str]) -> None:
    """Print the table of one net."""
    upper = nm.robustness(trained.net, (trained.X, trained.y), progress=False).upper
    print(f"\n{trained.name}, {len(upper)} images: attacked radius median {np.median(upper):.3f}")
    print(f"{'':28} {'median':>8} {'attacked / certified':>21} {'CPU s an image':>15}")
    for method, certify in OURS.items():
        started = time.process_time()
        _show(method, certify(trained), upper, time.process_time() - started)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "net.npz"
        layers = [m for m in trained.net if isinstance(m, nn.Linear)]
        arrays = {f"W{i}": m.weight.numpy() for i, m in enumerate(layers)}
        arrays |= {f"b{i}": m.bias.numpy() for i, m in enumerate(layers)}
        np.savez(file, X=trained.X.flatten(1).numpy(), y=trained.y.numpy(), upper=upper, **arrays)
        for python in peers:
            run = subprocess.run([python, _SCRIPT, file], capture_output=True, text=True)
            for line in run.stdout.splitlines():
                if line.startswith("["):
                    method, found, seconds = json.loads(line)
                    _show(method, np.array(found), upper, seconds)
            if run.returncode:
                print(f"{python} failed: {run.stderr.strip().splitlines()[-1]}")


def _show(method: str, lower: np.ndarray, upper: np.ndarray, seconds: float) -> None:
    print(
        f"{method:28} {np.median(lower):8.4f} {np.median(upper / lower):21.3f}"
        f" {seconds / len(lower):15.4f}",
        flush=True,
    )
