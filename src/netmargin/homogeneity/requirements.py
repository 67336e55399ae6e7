"""What operations require of the degrees of their inputs."""

from collections.abc import Mapping

from torch import Tensor, nn

from .degree import CONSTANT, ZERO, AnyDegree, Constraint, Degree, Unknown, add_degrees
from .degree_table import DegreeTable


class Requirements(DegreeTable):
    """The degrees of all values met so far, and the constraints that operations impose on them.

    Parameters
    ----------
    model : torch.nn.Module
        The net whose parameters are followed.
    x : tensor, or nested tuples of tensors
        The inputs of the pass, which do not scale.
    buffers : dict of str to tensor
        The buffers that may follow the parameters, as the pass meets them.

    Attributes
    ----------
    constraints : list of Constraint
        The conditions that a scaling must satisfy.
    blind : dict of str
        Sentences that say where a number meets a value that could not be followed.
    statistics : dict of str to Degree
        How the stored statistics follow the parameters: buffer -> its degree.
    """

    def __init__(self, model: nn.Module, x, buffers: Mapping[str, Tensor]):
        super().__init__(model, x)
        self.constraints: list[Constraint] = []
        # A dict without values is a set that keeps its order, so that answers are reproducible.
        self.blind: dict[str, None] = {}
        self._buffers = {self.storage(buffer): name for name, buffer in buffers.items()}
        self.statistics: dict[str, Degree] = {}

    def product(self, *values) -> AnyDegree:
        """The degree of a product of values."""
        return add_degrees(*(self.degree(v) for v in values))

    def same(
        self, a: AnyDegree, b: AnyDegree, reason: str, replacement: str, bias: str | None = None
    ) -> AnyDegree:
        """Require that two degrees agree, and return the common one, or that of `a` otherwise.

        reason, replacement : for the constraint, what the operation does and what to use instead.
        bias : the parameter whose removal lifts the constraint.
        """
        if b is ZERO:
            return a
        if a is ZERO:
            return b
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            if not (a and b):
                # One side is a number: no finite range of factors tells where its effect begins.
                self.blind[f"{self.place} {reason}, after what could not be followed"] = None
            return a if isinstance(a, Unknown) else b
        assert isinstance(a, Degree)
        assert isinstance(b, Degree)
        if a != b:
            self.constraints.append(Constraint(b - a, self.where, reason, replacement, bias))
        return a

    def invariant(self, degree: AnyDegree, reason: str, replacement: str) -> AnyDegree:
        """Require that a value does not scale at all, as a function without homogeneity needs.

        Returns the degree of a constant.
        """
        if isinstance(degree, Unknown):
            return degree
        return self.same(CONSTANT, degree, reason, replacement)

    def add_bias(self, signal: AnyDegree, bias: Tensor, *parts) -> AnyDegree:
        """Require that `bias` scales like the signal it is added to, which is made of `parts`.

        A parameter added to features of the inputs is a bias, and is remembered as one; added to
        weights it is a weight.
        """
        name = self.parameter(bias)
        if name is None or not (isinstance(signal, Degree) and signal and self.from_input(*parts)):
            return self.same(
                signal,
                self.degree(bias),
                "adds a value that scales with another power of the parameters",
                "normalize the stronger branch without affine parameters, or give both branches the"
                " same number of layers",
            )
        return self.same(
            signal,
            self.degree(bias),
            f"bias {name!r} scales differently from the signal it is added to",
            f"{self._types[self.where]}(..., bias=False)",
            bias=name,
        )

    def statistics_follow(self, value: Tensor, mean: Tensor, variance: Tensor) -> bool:
        """Let the stored mean and variance of a value scale like it, and like its square.

        False where they are no buffers that may follow.
        """
        degree = self.degree(value)
        names = [self._buffers.get(self.storage(buffer)) for buffer in (mean, variance)]
        if not isinstance(degree, Degree):
            return False
        for name, here in zip(names, (degree, degree * 2), strict=True):
            if name is None:
                return False
            self.same(
                self.statistics.setdefault(name, here),
                here,
                "stores the statistics of values that scale differently",
                "use one normalization for each",
            )
        return True

    def unknown(self, reason: str) -> Unknown:
        """The degree of what cannot be known, with the place where that happened."""
        return Unknown(self.where, reason)
