"""Kernels of two-layer ReLU nets in closed form and by random features, and the tangent kernel of
any net.

Inputs X of shape (n, d), X2 of shape (m, d); float64 results (n, m). With a bias, every input gets
a last coordinate 1. Angles are computed from both cosine and sine, so that nearly parallel inputs
lose no digits. Inputs that are no finite numbers raise DataError, other arguments ArgumentError.
"""

import numpy as np
import torch
from torch import nn

from .core.accepted_models import require_repeatable
from .core.arguments import check_count, check_flag, check_number, check_seed
from .core.batches import as_inputs
from .core.gradients import SampleGradients, StoredGradients
from .core.nets import float64_copy, scores
from .errors import ArgumentError, DataError, ModelError


def arc_cosine(X, X2=None, *, bias: bool = True) -> np.ndarray:
    """The kernel of the RKHS F_2: k(x, x') = E_u relu(u . x) relu(u . x'), u uniform on the unit
    sphere.

    Equals |x| |x'| (sin t + (pi - t) cos t) / (2 pi D), t the angle between x and x', D their
    dimension with the bias. Source: Chizat and Bach 2020, (5); Wei et al. 2018, (3.8).

    Examples
    --------
    >>> import numpy as np
    >>> from netmargin.kernels import arc_cosine
    >>> arc_cosine([[1.0, 0.0], [0.0, 1.0]], bias=False) * 2 * np.pi * 2 / np.pi      # E over the circle of relu(u1)^2 is 1/4
    array([[1.        , 0.31830989],
           [0.31830989, 1.        ]])
    """
    A, B = _pair(X, X2, bias)
    size, angle = _polar(A, B)
    return size * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi * A.shape[1])


def ntk(X, X2=None, *, r_w: float = 1.0, r_u: float = 1.0, bias: bool = False) -> np.ndarray:
    """The tangent kernel of sum_j w_j relu(u_j . x) per unit: r_u^2 E[relu relu] + r_w^2 x . x'
    P(both active).

    Directions of u are uniform on the unit sphere; r_u and r_w scale the first and second layer at
    initialization. r_w = 0 leaves the kernel of the output layer alone (then it is r_u^2
    `arc_cosine`). Source: Wei et al. 2019, Section 2.
    """
    r_w, r_u = check_number("r_w", r_w), check_number("r_u", r_u)
    A, B = _pair(X, X2, bias)
    size, angle = _polar(A, B)
    both_active = (np.pi - angle) / (2 * np.pi)
    return r_u**2 * arc_cosine(A, B, bias=False) + r_w**2 * size * np.cos(angle) * both_active


def random_features(X, count: int, *, bias: bool = True, seed: int = 0) -> np.ndarray:
    """relu(u_j . x~) / sqrt(count) at random unit directions u_j, shape (n, count): features @
    features.T estimates `arc_cosine`.

    A linear classifier on them trains the output layer of a two-layer net alone. The same seed
    gives the same directions for training and test inputs. Source: Chizat and Bach 2020, Section 5.

    Examples
    --------
    >>> from netmargin.kernels import arc_cosine, random_features
    >>> features = random_features([[1.0, 2.0], [0.0, 1.0]], 200_000)
    >>> bool(abs(features @ features.T - arc_cosine([[1.0, 2.0], [0.0, 1.0]])).max() < 0.01)
    True
    """
    Z, count, seed = _inputs(X, bias), check_count("count", count), check_seed(seed)
    U = np.random.default_rng(seed).normal(size=(count, Z.shape[1]))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return np.maximum(Z @ U.T, 0.0) / np.sqrt(count)


def empirical_ntk(model: nn.Module, X, X2=None, *, output: int = 0) -> np.ndarray:
    """The tangent kernel of any net at its present parameters: <grad f(x), grad f(x')> of one
    output, float64, shape (n, m).

    Gradients are taken in double precision, in evaluation mode, over the parameters that require
    gradients, and in chunks, so that no n x P matrix is needed where it does not fit.
    X : (n, ...) inputs of the model. Raises DataError for inputs that the model cannot take,
        ModelError for a model without parameters or with noise in evaluation mode.

    Examples
    --------
    >>> import torch
    >>> from netmargin.kernels import empirical_ntk
    >>> linear = torch.nn.Linear(2, 1, bias=False)                        # the gradient is x
    >>> empirical_ntk(linear, [[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """
    twin = float64_copy(model)
    output = check_count("output", output, at_least=0)
    names = [name for name, p in twin.named_parameters() if p.requires_grad]
    if not names:
        raise ModelError(
            "The model has no parameters that require gradients, so it has no tangent kernel."
        )

    def prepared(inputs, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        x = as_inputs(inputs, name)
        x = x.to(
            device=next(twin.parameters()).device,
            dtype=torch.float64 if x.is_floating_point() else x.dtype,
        )
        with torch.no_grad():
            outputs = scores(twin, x[:1]).shape[1]
        if output >= outputs:
            raise ArgumentError(
                f"output must be below {outputs}, the number of the model's outputs; got {output}"
            )
        weights = torch.zeros(len(x), outputs, dtype=torch.float64, device=x.device)
        weights[:, output] = 1.0
        return x, weights

    left = prepared(X, "X")
    require_repeatable(twin, left[0])
    source = SampleGradients(twin, names, left[0])
    right = None if X2 is None else StoredGradients(source, *prepared(X2, "X2"))
    return StoredGradients(source, *left).inner(right).cpu().numpy()


def _pair(X, X2, bias: bool) -> tuple[np.ndarray, np.ndarray]:
    A = _inputs(X, bias, "X")
    B = A if X2 is None else _inputs(X2, bias, "X2")
    if A.shape[1] != B.shape[1]:
        raise DataError(
            f"X has {A.shape[1] - bias} columns and X2 has {B.shape[1] - bias}. Both hold inputs of"
            " one dimension."
        )
    return A, B


def _inputs(X, bias: bool, name: str = "X") -> np.ndarray:
    bias = check_flag("bias", bias)
    array = as_inputs(X, name).double().cpu().numpy()
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            f"{name} must have shape (n, d) with d at least 1; got {array.shape}. Flatten images:"
            " X.reshape(len(X), -1)."
        )
    return np.hstack([array, np.ones((len(array), 1))]) if bias else array


def _polar(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of norms, and angles; the angle to a zero vector counts as 0, where its kernels
    vanish anyway.
    """
    a, b = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
    U = np.divide(A, a[:, None], out=np.zeros_like(A), where=a[:, None] > 0)
    V = np.divide(B, b[:, None], out=np.zeros_like(B), where=b[:, None] > 0)
    cosine = U @ V.T
    # |u - v| = 2 sin(t/2) and |u + v| = 2 cos(t/2): accurate near t = 0 and t = pi, where arccos is
    # not.
    near = np.abs(cosine) > 0.9
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    rows, columns = np.nonzero(near)
    for start in range(0, len(rows), 1 << 18):
        i, j = rows[start : start + (1 << 18)], columns[start : start + (1 << 18)]
        half = np.arctan2(np.linalg.norm(U[i] - V[j], axis=1), np.linalg.norm(U[i] + V[j], axis=1))
        angle[i, j] = 2 * half
    return a[:, None] * b[None, :], angle
