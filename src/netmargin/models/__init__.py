"""The nets of the papers, with He normal weights and zero biases.

`bias` says which layers have one: "first" (homogeneous in the parameters, as the "CNN without bias"
of Lyu and Li 2019), "none", or "all" (not homogeneous; its margins ignore the biases outside the
first layer). Arguments out of range raise ArgumentError.
"""

from .activations import ReLUPower, SignedSum
from .feedforward import mlp, mnist_cnn, vgg
from .initialization import BIASES
from .residual import wide_resnet

__all__ = ["BIASES", "ReLUPower", "SignedSum", "mlp", "mnist_cnn", "vgg", "wide_resnet"]
