"""Layers that torch does not have: powers of ReLU, and an output layer that is not trained."""

from torch import Tensor, nn

from ..core.arguments import check_count, check_instance


class ReLUPower(nn.Module):
    """The activation max(z, 0)^power, homogeneous of degree `power`.

    Its derivatives up to order power - 1 are continuous.

    Parameters
    ----------
    power : int, default 2
        The exponent, at least 1.

    Raises
    ------
    ArgumentError
        If the power is no whole number of at least 1.

    Examples
    --------
    >>> import torch
    >>> from netmargin.models import ReLUPower
    >>> ReLUPower(2)(torch.tensor([-1.0, 3.0]))
    tensor([0., 9.])
    """

    def __init__(self, power: int = 2) -> None:
        super().__init__()
        self.power = check_count("power", power)

    def forward(self, z: Tensor) -> Tensor:
        """Return max(z, 0)^power, elementwise."""
        return z.relu() ** self.power

    def extra_repr(self) -> str:
        """Return what torch prints between the parentheses of this module."""
        return f"power={self.power}"


class SignedSum(nn.Module):
    """The output layer sum_j signs_j h_j, which is not trained.

    Parameters
    ----------
    signs : Tensor, shape (units,)
        Weights of the hidden units, kept as a buffer.

    Raises
    ------
    ArgumentError
        If `signs` is no tensor.

    Examples
    --------
    >>> import torch
    >>> from netmargin.models import SignedSum
    >>> SignedSum(torch.tensor([1.0, -1.0]))(torch.tensor([[5.0, 2.0]]))
    tensor([[3.]])
    """

    signs: Tensor

    def __init__(self, signs: Tensor) -> None:
        super().__init__()
        check_instance(
            "signs", signs, Tensor, "a tensor of one number per unit, such as torch.ones(10)"
        )
        self.register_buffer("signs", signs)

    def forward(self, h: Tensor) -> Tensor:
        """Return the scores of hidden units of shape (N, units), shape (N, 1)."""
        return h @ self.signs[:, None]
