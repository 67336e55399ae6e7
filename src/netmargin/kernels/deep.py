"""The tangent kernel of deep ReLU nets, as a kernel of scikit-learn."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from ..core.arguments import check_count, check_flag
from ..core.public import guarded
from .two_layer import compute_in_blocks, next_angle, read_pair


class NTK(Kernel):
    """The tangent kernel of infinitely wide ReLU nets with some hidden layers, at initialization.

    Weights are standard normal, all layers are trained, and a hidden layer of m units multiplies
    its ReLUs by sqrt(2 / m). It is a `kernel` of scikit-learn's `KernelRidge`,
    `GaussianProcessRegressor`, `SVR` and `SVC`, without hyperparameters to be tuned by a
    likelihood. For max margins with a certificate see
    `netmargin.estimators.NTKClassifier`, whose two layers have scales of their own.

    Parameters
    ----------
    depth : int, default 3
        Hidden layers, at least 1.
    bias : bool, default True
        Whether every input gets a last coordinate 1.

    Examples
    --------
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> import netmargin as nm
    >>> ridge = KernelRidge(kernel=nm.kernels.NTK(depth=1), alpha=1e-6)
    >>> ridge.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).predict([[1.0]]).round(3).tolist()
    [1.0]
    >>> nm.kernels.NTK(depth=1, bias=False)([[1.0, 0.0]]).tolist()  # |x|^2 for each layer
    [[2.0]]

    Source: Jacot, Gabriel, Hongler 2018; for ReLU, Arora et al. 2019, Section 3. Beyond the papers.
    """

    def __init__(self, depth: Any = 3, bias: Any = True) -> None:
        self.depth = depth
        self.bias = bias

    @guarded
    def __call__(self, X: Any, Y: Any = None, eval_gradient: Any = False) -> Any:
        """The kernel (n, m) of inputs X (n, d) and Y (m, d), by default X; with `eval_gradient` and
        its empty gradient (n, n, 0). Raises DataError and ArgumentError.
        """
        depth, bias = check_count("depth", self.depth), check_flag("bias", self.bias)
        A, B = read_pair(X, Y, bias)

        def combine(cosine: np.ndarray, sine: np.ndarray, angle: np.ndarray) -> np.ndarray:
            kernel = cosine
            for _ in range(depth):
                # Both units active; then the signal of the layer, whose angles the next one sees.
                kernel = kernel * ((np.pi - angle) / np.pi)
                angle = next_angle(cosine, sine, angle)
                cosine, sine = np.cos(angle), np.sin(angle)
                kernel += cosine
            return kernel

        kernel = compute_in_blocks(A, B, combine, 1.0, np.dtype(np.float64))
        return (kernel, np.empty((*kernel.shape, 0))) if eval_gradient else kernel

    @guarded
    def diag(self, X: Any) -> Any:
        """The kernel (n,) of each input of X (n, d) with itself: |x|^2 for each layer."""
        A, _ = read_pair(X, None, check_flag("bias", self.bias))
        return (check_count("depth", self.depth) + 1) * (A**2).sum(1)

    def is_stationary(self) -> Any:
        """False: it depends on more than the differences of inputs."""
        return False

    def __repr__(self) -> Any:
        return f"NTK(depth={self.depth}, bias={self.bias})"
