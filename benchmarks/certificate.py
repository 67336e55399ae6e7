"""A KKT certificate with 90,000 constraints against ten training epochs.

The net is the CNN of Lyu and Li (2019), separated on 10,000 MNIST images.
"""

import resource
import time

import torch

import netmargin as nm
from netmargin.models import mnist_cnn


def main() -> None:
    """Train until all images are correct, five minutes, and certify; needs NETMARGIN_DATA."""
    torch.manual_seed(0)
    net, data = mnist_cnn(), nm.datasets.mnist("train", limit=10_000)
    nm.train(net, data, until=nm.LogLossBelow(-4.5), batch_size=100)
    started = time.perf_counter()
    # The steps are too small to change the net that is certified.
    nm.train(
        net, data, until=nm.Epochs(10), lr=nm.ConstantLR(1e-12), batch_size=100, progress=False
    )
    epochs = time.perf_counter() - started
    started = time.perf_counter()
    certificate = nm.certify(net, data)
    seconds = time.perf_counter() - started
    print(
        f"certificate of the MNIST CNN over 90,000 constraints: {seconds:.0f} s against"
        f" {epochs:.0f} s for ten epochs of nm.train: ratio {seconds / epochs:.2f} (target at most"
        f" 1); relative epsilon {certificate.relative_epsilon:.3f}, at least"
        f" {certificate.epsilon_lower / certificate.norm:.3f}; peak memory of it all"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB",
        flush=True,
    )
