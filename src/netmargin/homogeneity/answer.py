"""What can be said about the homogeneity of a net."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from ..core.arguments import check_flag, check_seed
from ..core.records import short_repr
from ..errors import ArgumentError, NotHomogeneousError
from .degree import Epsilon
from .scaling import TOLERANCE

if TYPE_CHECKING:
    from torch import nn

Exponent = int | Fraction

LARGEST_MISS = 0.01
"""What misses its power of c by more than this is not called homogeneous: margins are compared to a
per cent.
"""


class Kind(StrEnum):
    """How much of a net is homogeneous. Members are sentences."""

    HOMOGENEOUS = "homogeneous: scaling all parameters by c multiplies the outputs by c^order"
    MULTI_HOMOGENEOUS = (
        "multi-homogeneous: each layer can be scaled on its own, with its own exponent"
    )
    PARTIAL = "partially homogeneous: only in the parameters of the listed groups"
    NONE = "not homogeneous in any layer"
    UNKNOWN = "unknown: neither the rules nor the numerical check settle it"


class Evidence(StrEnum):
    """Where an answer comes from."""

    DERIVED = "derived from the operations of the forward pass, and confirmed numerically"
    NUMERICAL = (
        "observed numerically, at factors from 1e-3 to 1e3 only: some operation could not be"
        " followed"
    )
    CONTRADICTED = "the derivation and the numerical check disagree"


@dataclass(frozen=True)
class Blocker:
    """Why a net is not homogeneous in all its parameters: the module, the reason, and what to use
    instead.
    """

    module: str
    reason: str
    replacement: str
    bias: str | None = None

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"{self.module or 'the model itself'}: {self.reason}. Instead: {self.replacement}"


@dataclass(frozen=True)
class ScalingCheck:
    """How well claimed exponents were observed.

    deviation : largest relative difference between the outputs at scaled parameters and the claimed
        power of c times the outputs, for the net as it is: at factors 1/2 and 2 for all parameters
        together, and at independent factors between for the groups.
    exact : the same at factors from 1/100 to 100 with all epsilons made negligible, at a generic
        point; rounding only, where the exponents are right.
    samples : on how many samples.
    range : the smallest and the largest factor c from 1e-3 to 1e3, for all parameters together, up
        to which the outputs miss c^order by less than 1%; None where it was not asked for.
    """

    deviation: float
    exact: float
    samples: int
    range: tuple[float, float] | None = None
    cause: str = "its epsilons"

    __repr__ = short_repr

    @property
    def passed(self) -> bool:
        """True if the exponents are right, and the net as it is keeps to them within 1%."""
        return self.exact <= TOLERANCE and self.deviation <= LARGEST_MISS

    def __str__(self) -> str:
        where = "" if self.range is None else f"; {_range_sentence(*self.range)}"
        return (
            f"{_deviation_sentence(self.deviation, self.cause)} (on {self.samples} samples, factors"
            f" 1/2 to 2){where}"
        )


_judges: list[Callable[["Homogeneity", "nn.Module", object, bool, int], "ScalingCheck"]] = []
"""What `Homogeneity.check` calls. The judge knows what an answer is, so an answer cannot import its
judge.
"""


def judge_answers(
    check: Callable[["Homogeneity", "nn.Module", object, bool, int], "ScalingCheck"],
) -> Callable[["Homogeneity", "nn.Module", object, bool, int], "ScalingCheck"]:
    """Decorator of the function by which `Homogeneity.check` holds an answer against a net and
    data.
    """
    _judges[:] = [check]
    return check


@dataclass(frozen=True)
class Homogeneity:
    """How the outputs of a net scale with its parameters (Lyu and Li 2019, (A2), Section 4.4;
    two-homogeneity 2024, 3.4).

    order : L with Phi(c theta) = c^L Phi(theta) over the parameters of `groups`; None where there
        is none.
    groups : layer -> exponent. A layer's weight and, where it scales alike, its bias form one
        group; layers that can only be scaled together are one group, named 'a + b'. Exponent 0
        means scale-invariant (weights feeding a normalization).
    members : layer -> names of its parameters.
    blockers : what prevents homogeneity in all parameters.
    quasi : parameter -> weight w_p > 0, such that scaling every p by c^{w_p} multiplies the outputs
        by c (quasi-homogeneity: covers biases in every layer), or None.
    notes : what the answer rests on, or leaves out.
    ignored : biases that `ignoring_biases` left out.
    deviation : the largest relative miss of the net as it is, epsilons and casts in place: at
        factors 1/2 and 2 for all parameters of `groups` together, and at independent factors
        between for the groups. Rounding, for a net without epsilons; at most 1%, or the net is not
        called homogeneous. None where there is no order.
    samples : on how many samples `deviation` was measured.
    epsilons : the small numbers that the exponents neglect.
    casts : where the forward pass rounds to half precision.

    An answer holds no model and no data.
    """

    kind: Kind
    order: Exponent | None
    groups: dict[str, Exponent]
    members: dict[str, tuple[str, ...]]
    blockers: tuple[Blocker, ...]
    evidence: Evidence
    quasi: dict[str, Exponent] | None = None
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    deviation: float | None = None
    samples: int = 0
    epsilons: tuple[Epsilon, ...] = ()
    casts: tuple[str, ...] = ()
    _bias_free: "Homogeneity | None" = field(default=None, repr=False, compare=False)
    _several_inputs: bool = field(default=False, repr=False, compare=False)
    _checked: list[ScalingCheck] = field(default_factory=list, repr=False, compare=False)
    """What `check` found with `range=True`, so that `summary` prints it."""

    def __repr__(self) -> str:
        return short_repr(
            self, "kind", "order", "deviation", "groups", "blockers", "ignored", "evidence"
        )

    @property
    def whole(self) -> bool:
        """True if the net is homogeneous in all its parameters that count."""
        return self.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS)

    @property
    def bias_sentence(self) -> str:
        """The one rule about biases of later layers, for this net; "" where none were ignored."""
        if not self.ignored:
            return ""
        layers = ", ".join(
            dict.fromkeys(name.rpartition(".")[0] or "the model itself" for name in self.ignored)
        )
        return (
            f"Order {self.order} with the later biases {', '.join(map(repr, self.ignored))}"
            " ignored: normalized margins do that, nm.certify and nm.maximize_margin only where"
            " these biases are 0, since with them the net is not homogeneous; use bias=False in"
            f" {layers}, or set them to 0 and keep them there."
        )

    def require_order(self, model: "nn.Module") -> Exponent:
        """The order of `model` as it is, of which this is the answer that its margins are
        normalized by.

        Raises NotHomogeneousError where something blocks it, or where the biases that were ignored
        are not 0.
        """
        if not self.whole or self.order is None:
            reasons = "\n  ".join(map(str, self.blockers)) or f"it is {self.kind}"
            raise NotHomogeneousError(
                f"The net has no homogeneity order:\n  {reasons}\nReplace these modules."
            )
        parameters = dict(model.named_parameters())
        if any(bool(parameters[name].detach().any()) for name in self.ignored):
            raise NotHomogeneousError(self.bias_sentence)
        return self.order

    def check(
        self, model: "nn.Module", data, *, range: bool = False, seed: int = 1
    ) -> ScalingCheck:
        """Scale the parameters of `model` in float64 and compare with the claimed exponents.

        Parameters
        ----------
        model : the net that was analysed, in the same mode.
        data : a batch of inputs as for `analyse`, a pair (X, y), or an iterable of (x, y) batches;
            a few samples are used.
        range : also find the factors from 1e-3 to 1e3 at which the net as it is misses the claim by
            less than 1%. This takes about thirty forward passes more. What is found is printed by
            `summary` from then on.
        seed : of the generic point near the parameters, and of the independent factors.

        Raises
        ------
        NotHomogeneousError : there is no exponent to check.
        """
        check_flag("range", range)
        check_seed(seed)
        if self.order is None:
            raise NotHomogeneousError(f"There is no exponent to check: the net is {self.kind}")
        names = {name for name, _ in model.named_parameters()}
        missing = next(
            (
                name
                for names_here in self.members.values()
                for name in names_here
                if name not in names
            ),
            None,
        )
        if missing is not None:
            raise ArgumentError(
                f"model has no parameter {missing!r}, but the net that was analysed has. Pass that"
                " net."
            )
        found = _judges[0](self, model, data, range, seed)
        if range:
            self._checked[:] = [found]
        return found

    def ignoring_biases(self) -> "Homogeneity":
        """The homogeneity of the same net without the biases that block it, as Lyu and Li (2019,
        J.1) measure such nets.

        Raises NotHomogeneousError if something other than a bias is in the way.
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
                + "\nUse a partial margin (`partial_normalized_margin`) or replace these modules."
            )
        return self._bias_free

    def summary(self) -> str:
        """A page of text: kind, order, exponents, how well they hold, blockers, notes."""
        lines = [
            f"{self.kind}",
            f"order {self.order}" if self.order is not None else "no order",
            f"{self.evidence}",
        ]
        lines += [
            f"  {exponent!s:>5}  {name}: {', '.join(self.members[name])}"
            for name, exponent in self.groups.items()
        ]
        lines += [f"  {line}" for line in self.accuracy_lines()]
        lines += [f"  blocked by {blocker}" for blocker in self.blockers]
        if self.quasi and self.blockers:
            weights = ", ".join(f"{weight} ({name})" for name, weight in self.quasi.items())
            lines.append(
                f"  quasi-homogeneous: multiply each parameter by c to the power {weights}"
            )
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def accuracy_lines(self) -> list[str]:
        """How well the exponents hold, and what they neglect."""
        if self.deviation is None or self.order is None:
            return []
        kept = self._checked[-1].range if self._checked else None
        where = f"; {_range_sentence(*kept)}" if kept else ""
        lines = [
            f"{_deviation_sentence(self.deviation, self.cause)}{where} (largest relative miss,"
            f" {self.samples} samples, factors 1/2 to 2)"
        ]
        neglected = [*(f"the epsilon {epsilon}" for epsilon in self.epsilons), *self.casts]
        lines += [f"neglects {text}" for text in neglected[:_SHOWN]]
        lines += [f"neglects {len(neglected) - _SHOWN} more like these"] * (len(neglected) > _SHOWN)
        return lines

    @property
    def cause(self) -> str:
        """What the net misses its exponents by, in words."""
        names = ["epsilons"] * bool(self.epsilons) + ["half-precision casts"] * bool(self.casts)
        return f"its {' and '.join(names)}" if names else "rounding"

    def to_dict(self) -> dict:
        """The same as JSON-ready values."""
        return {
            "kind": self.kind.name.lower(),
            "order": None if self.order is None else float(self.order),
            "groups": {name: float(exponent) for name, exponent in self.groups.items()},
            "members": {name: list(names) for name, names in self.members.items()},
            "blockers": [
                {"module": b.module, "reason": b.reason, "replacement": b.replacement}
                for b in self.blockers
            ],
            "evidence": self.evidence.name.lower(),
            "quasi": (
                None
                if self.quasi is None
                else {name: float(weight) for name, weight in self.quasi.items()}
            ),
            "deviation": self.deviation,
            "samples": self.samples,
            "notes": list(self.notes),
        }


_SHOWN = 3
"""How many neglected numbers `summary` lists: a transformer has dozens of equal ones."""


def tidy(exponent: Fraction | int) -> Exponent:
    """A whole number as an int."""
    return int(exponent) if exponent == int(exponent) else exponent


def _deviation_sentence(deviation: float, cause: str) -> str:
    return f"up to {cause}: {deviation:.1g}"


def _range_sentence(low: float, high: float) -> str:
    if low <= FARTHEST[0] and high >= FARTHEST[1]:
        return "under 1% from 0.001 theta to 1000 theta"
    if high >= FARTHEST[1]:
        return f"under 1% from {low:.2g} theta upwards"
    if low <= FARTHEST[0]:
        return f"under 1% up to {high:.2g} theta"
    return f"under 1% from {low:.2g} theta to {high:.2g} theta"


FARTHEST = (1e-3, 1e3)
"""How far from the given parameters `check` looks."""
