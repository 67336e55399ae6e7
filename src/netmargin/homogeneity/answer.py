"""The record that `analyse` returns: exponents of groups of parameters, and how well they hold."""

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.arguments import check_seed
from ..core.records import Row, Table, values_of
from ..core.saved_records import Record
from ..errors import ArgumentError, NotHomogeneousError
from ..nets.accepted_models import check_model
from ..nets.data import Choice, takes_data
from .degree import Degree, Epsilon
from .measurements import check_claim
from .scaling_check import ScalingCheck
from .sentences import (
    Exponent,
    describe_fixed_statistics,
    describe_ignored,
    describe_quasi,
    group_blockers,
    list_neglected,
)
from .vocabulary import STORED_STATISTICS, Blocker, Evidence, Kind

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Homogeneity(Record):
    """An answer to how the outputs of a net scale with its parameters, from `analyse`.

    Source: Lyu and Li 2019, (A2), Section 4.4; two-homogeneity 2024, Section 3.4.
    """

    #: Whether the net is homogeneous in all parameters, layer by layer, in some, or in none
    kind: Kind
    #: L, where the parameters of `groups` are scaled together; None where there is none
    order: Exponent | None
    #: Layer -> exponent. A layer's weight and, where it scales alike, its bias form one group;
    #: layers that can only be scaled together are one group, named 'a + b'. Exponent 0 means
    #: scale-invariant (weights feeding a normalization).
    groups: dict[str, Exponent]
    members: dict[str, tuple[str, ...]]  #: Layer -> names of its parameters
    blockers: tuple[Blocker, ...]  #: The modules that prevent homogeneity in all parameters
    evidence: Evidence  #: Whether the exponents were derived, only observed, or contradicted
    #: Parameter -> exponent lambda_p >= 0, such that multiplying every p by c^{lambda_p} multiplies
    #: the outputs by c (quasi-homogeneity: covers biases in every layer; for L layers 1/L for
    #: weights and i/L for the bias of layer i). It is 0 for what the net is invariant to, such as
    #: weights before a normalization; the others are as even as they can be.
    quasi_exponents: dict[str, Exponent] | None = None
    quasi_reason: str = ""  #: Why there are no such exponents, in a sentence; "" where there are
    notes: tuple[str, ...] = ()  #: What the answer rests on, or leaves out
    ignored: tuple[str, ...] = ()  #: The biases that `ignoring_biases` left out
    #: The largest relative miss of the net as it is, with the biases of `ignored` at 0, where all
    #: parameters of `groups` are halved, which makes its epsilons weigh most (with casts doubled,
    #: too, and at factors between; without both at factors from 1/100 to 100). It includes the
    #: rounding of float64, of large nets with epsilons that of float32, about 1e-6. At most 0.01,
    #: or the net is not called homogeneous. None where there is no order.
    deviation: float | None = None
    samples: int = 0  #: The number of samples on which `deviation` was measured
    #: The small numbers that the exponents of `groups` neglect: they guard a root or a quotient of
    #: what scales
    epsilons: tuple[Epsilon, ...] = ()
    casts: tuple[str, ...] = ()  #: The places where the forward pass rounds to half precision
    #: The stored statistics that follow the parameters: buffer -> their exponents
    statistics: dict[str, Degree] = field(default_factory=dict)
    #: They, and those that the exponents of `quasi_exponents` neglect
    guards: tuple[Epsilon, ...] = field(default=(), repr=False)
    #: What makes margins of the net meaningless, or "": weights that are none of its parameters;
    #: samples that see each other in evaluation mode
    warning: str = field(default="", repr=False)
    _bias_free: "Homogeneity | None" = field(default=None, repr=False, compare=False)

    _shown = ("kind", "order", "deviation", "groups", "blockers", "ignored", "evidence")

    @property
    def whole(self) -> bool:
        """True if the net is homogeneous in all its parameters that count."""
        return self.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS)

    @property
    def reasons(self) -> str:
        """The blockers, one a line, or the kind where there are none."""
        return "\n  ".join(map(str, self.blockers)) or f"it is {self.kind}"

    @property
    def bias_sentence(self) -> str:
        """The rule about biases of later layers, applied to this net; "" where none are ignored."""
        return describe_ignored(self.order, self.ignored) if self.ignored else ""

    @property
    def statistics_sentence(self) -> str:
        """What stored statistics that are held fixed do to the net; "" where there are none."""
        layers = [b.module for b in self.blockers if b.reason == STORED_STATISTICS]
        return describe_fixed_statistics(layers) if layers else ""

    def require_order(self, model: "nn.Module") -> Exponent:
        """Return the order L of the net that was analysed in all its parameters, as it is.

        Raises NotHomogeneousError where a module blocks, or a bias that was ignored is not 0.
        """
        if self.statistics_sentence:
            raise NotHomogeneousError(self.statistics_sentence)
        if not self.whole or self.order is None:
            raise NotHomogeneousError(
                f"The net has no homogeneity order:\n  {self.reasons}\nReplace these modules."
            )
        parameters = dict(model.named_parameters())
        if any(bool(parameters[name].detach().any()) for name in self.ignored):
            raise NotHomogeneousError(self.bias_sentence)
        return self.order

    @takes_data
    def check(
        self, model: "nn.Module", data: Any, *, seed: int = 1, scores: Choice | None = None
    ) -> ScalingCheck:
        """Scale the parameters of `model` in float64 and compare with the claimed exponents.

        Parameters
        ----------
        model : torch.nn.Module
            The net that was analysed, in the same mode.
        data : array_like, pair (X, y), or iterable of (x, y) batches
            Inputs as for `analyse`; a few samples are used.
        seed : int, default 1
            Seed of the generic point near the parameters, and of the independent factors.
        scores : str, int, tuple, function or None, default None
            Which output of a net is its scores, as for `measure`.

        Raises NotHomogeneousError where there is no exponent to check, and ArgumentError for a
        model with other parameters.
        """
        check_seed(seed)
        if self.order is None:
            raise NotHomogeneousError(f"There is no exponent to check: the net is {self.kind}")
        model = check_model(model)
        self.require_parameters_of(model)
        return check_claim(self, model, data, seed=seed)

    def require_parameters_of(self, model: "nn.Module") -> None:
        """Raise ArgumentError where a model lacks a parameter of the net that was analysed."""
        names = {name for name, _ in model.named_parameters()}
        analysed = itertools.chain(*self.members.values(), self.ignored, self.quasi_exponents or ())
        missing = next((name for name in analysed if name not in names), None)
        if missing is not None:
            raise ArgumentError(
                f"model has no parameter {missing!r}, but the net that was analysed has. Pass that"
                " net, or the answer of netmargin.analyse about this one."
            )
        if self._bias_free is not None:
            self._bias_free.require_parameters_of(model)

    def ignoring_biases(self) -> "Homogeneity":
        """Return the answer for the same net without the biases that block homogeneity, as Lyu and
        Li (2019, Appendix J.1) measure margins; this one where none does.

        Raises NotHomogeneousError where a module other than a bias is in the way.
        """
        if self.whole:
            return self
        if self._bias_free is None or not self._bias_free.whole:
            others = [b for b in self.blockers if b.bias is None] or (
                self._bias_free.blockers if self._bias_free else []
            )
            raise NotHomogeneousError(
                "The net has no homogeneity order: "
                + ("\n  ".join(map(str, others)) or f"it is {self.kind}")
                + "\nUse a partial margin (`report.margins['partial']`) or replace these modules."
            )
        return self._bias_free

    def _table(self) -> Table:
        """Order, exponents and blockers, and sentences on how well they hold."""
        rows: list[Row] = [
            ("order", "none" if self.order is None else str(self.order)),
            ("evidence", str(self.evidence)),
            *(
                (f"exponent {exponent}", f"{name}: {', '.join(self.members[name])}")
                for name, exponent in self.groups.items()
            ),
            *(("blocked by", text) for text in group_blockers(self.blockers)),
        ]
        notes = self.accuracy_lines()
        if self._bias_free is not None and self._bias_free.whole:
            notes.append(
                f"order {self._bias_free.order} without the biases that block it: nm.measure"
                " normalizes margins by that one"
            )
        if self.quasi_exponents and self.blockers:
            notes.append(describe_quasi(self.quasi_exponents))
        notes += self.notes
        return Table(str(self.kind), rows, notes=notes, warning=self.warning)

    def accuracy_lines(self) -> list[str]:
        """How well the exponents hold, and what they neglect, in lines of text."""
        if self.deviation is None or self.order is None:
            return []
        lines = [
            f"up to {self.cause}: {self.deviation:.1g} (largest relative miss,"
            f" {self.samples} samples{', with the ignored biases at 0' * bool(self.ignored)})"
        ]
        neglected = [*(f"the epsilon {epsilon}" for epsilon in self.epsilons), *self.casts]
        return [*lines, *list_neglected(neglected)]

    @property
    def cause(self) -> str:
        """The cause of the deviation, in words: epsilons, half-precision casts, or rounding."""
        names = ["epsilons"] * bool(self.epsilons) + ["half-precision casts"] * bool(self.casts)
        return f"its {' and '.join(names)}" if names else "rounding"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready values; fractions become floats."""
        return (
            {"kind": self.kind.name.lower(), "evidence": self.evidence.name.lower()}
            | values_of(self, "order", "groups", "members", "quasi_exponents", "deviation")
            | values_of(self, "samples", "notes")
            | {"blockers": [values_of(b, "module", "reason", "replacement") for b in self.blockers]}
        )
