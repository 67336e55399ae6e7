"""From degrees and constraints to an answer: the scalings that multiply outputs by a power of c."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..core.records import Shown
from .answer import Homogeneity
from .conditions import Conditions
from .degree import Constraint, Degree, Epsilon
from .quasi_exponents import find_quasi_exponents
from .sentences import Exponent, tidy
from .vocabulary import Blocker, Evidence, Kind


@dataclass(frozen=True)
class Derivation(Shown):
    """The findings of a trace, from which the answer is derived."""

    names: tuple[str, ...]  # of the parameters that count
    degree: Degree  # of the outputs
    constraints: tuple[Constraint, ...]
    observed: tuple[str, ...] = ()  # as in `Trace`, and so the next two
    casts: tuple[str, ...] = ()
    statistics: Mapping[str, Degree] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    narrow: bool = False  # whether a partial answer leaves out what is scale-invariant

    @property
    def guards(self) -> tuple[Epsilon, ...]:
        """The small numbers that are neglected, each once, in the order of the forward pass."""
        return tuple(dict.fromkeys(c.epsilon for c in self.constraints if c.epsilon is not None))

    def guards_moved_by(self, scalings: Collection[Mapping[str, Exponent]]) -> tuple[Epsilon, ...]:
        """Those of them that guard what one of the scalings, parameter -> exponent, multiplies."""
        moved = [
            c
            for c in self.constraints
            if c.epsilon is not None and any(c.difference.under(s) for s in scalings)
        ]
        return replace(self, constraints=tuple(moved)).guards

    def without(self, biases: Collection[str]) -> "Derivation":
        """The derivation of the same net with the given biases absent."""
        kept = tuple(n for n in self.names if n not in biases)
        constraints = tuple(c for c in self.constraints if c.bias not in biases)
        return replace(self, names=kept, constraints=constraints, ignored=tuple(sorted(biases)))

    def let_biases_follow(self, factors: Mapping[str, float]) -> dict[str, float]:
        """Factors of all parameters, those of blocking biases by the powers of their signals."""
        followed = dict(factors)
        for c in self.constraints:
            if c.bias is not None:
                signal = ((n, float(-e)) for n, e in c.difference.exponents.items() if n != c.bias)
                followed[c.bias] = math.prod(factors.get(n, 1.0) ** e for n, e in signal)
        return followed

    def counting(self, effects: Mapping[Epsilon, str]) -> "Derivation":
        """The derivation that no longer neglects these epsilons, with their effects in words."""
        constraints = []
        for c in self.constraints:
            if c.epsilon is not None and c.epsilon in effects:
                reason = f"the number {c.epsilon.value:g} is not negligible: {effects[c.epsilon]}"
                c = replace(c, epsilon=None, reason=reason)
            constraints.append(c)
        return replace(self, constraints=tuple(constraints))

    @cached_property
    def bias_free(self) -> "Derivation | None":
        """The derivation of the net without the biases that block it, if nothing else does."""
        biases = {b.bias for b in self._blockers}
        return self.without({b for b in biases if b}) if biases and None not in biases else None

    @cached_property
    def answer(self) -> Homogeneity:
        """The answer of the rules: with the epsilons neglected, and before any numerical check."""
        blockers = self._blockers
        if not blockers and self.degree.under(dict.fromkeys(self.names, 1)) <= 0:
            reason = "the outputs do not grow with the parameters"
            blockers = (Blocker("", reason, "end with a bias-free nn.Linear"),)
        conditions = Conditions(self.names, self._binding)
        quasi, quasi_reason = find_quasi_exponents(conditions, self.degree)
        scaled = self._partial(conditions) if blockers else dict.fromkeys(self.names, 1)
        parts = self._parts(name for name in self.names if name in scaled)
        if blockers:
            kind = Kind.PARTIAL if scaled else Kind.NONE
        else:
            kind = Kind.MULTI_HOMOGENEOUS if len(parts) > 1 else Kind.HOMOGENEOUS
        return Homogeneity(
            kind,
            tidy(self.degree.under(scaled)) if scaled else None,
            {name: tidy(self.degree.under(part)) for name, part in parts.items()},
            {name: tuple(part) for name, part in parts.items()},
            blockers,
            Evidence.NUMERICAL if self.observed else Evidence.DERIVED,
            quasi_exponents=quasi,
            quasi_reason=quasi_reason,
            notes=self.observed,
            ignored=self.ignored,
            epsilons=self.guards_moved_by(parts.values()),
            guards=self.guards,
            casts=self.casts,
            statistics=dict(self.statistics),
        )

    @cached_property
    def _blockers(self) -> tuple[Blocker, ...]:
        """The conditions that a scaling of all parameters violates, each once."""
        everything = dict.fromkeys(self.names, 1)
        violated = [c for c in self._binding if c.difference.under(everything)]
        return tuple(
            dict.fromkeys(Blocker(c.where, c.reason, c.replacement, c.bias) for c in violated)
        )

    @property
    def _binding(self) -> list[Constraint]:
        """The constraints that hold for sure: those not due to a neglected epsilon."""
        return [c for c in self.constraints if c.epsilon is None]

    def _parts(self, scaled: Iterable[str]) -> dict[str, dict[str, int]]:
        """Unions of layers that can each be scaled on their own, by name; each as its scaling."""
        # Start with single layers, and merge those that a constraint ties together, until none
        # does. A merged part may meet the constraint that its pieces did not.
        parts: dict[str, dict[str, int]] = {}
        for layer, own in layers_of(scaled).items():
            # What a layer is invariant to, such as the direction of a weight beside its length, is
            # not scaled with the rest of it.
            rest = [n for n in own if n not in self._without_effect] or own
            parts[layer] = dict.fromkeys(rest, 1)
            parts |= {n: {n: 1} for n in own if n not in rest}
        changed = True
        while changed:
            changed = False
            for constraint in self._binding:
                tied = [name for name in parts if constraint.difference.under(parts[name])]
                if len(tied) > 1:
                    parts[" + ".join(tied)] = {n: 1 for name in tied for n in parts.pop(name)}
                    changed = True
        return parts

    @cached_property
    def _without_effect(self) -> set[str]:
        """The parameters that change nothing where each of them alone is multiplied."""
        felt = [self.degree, *(c.difference for c in self._binding)]
        return {n for n in self.names if not any(d.exponents.get(n) for d in felt)}

    def _partial(self, conditions: Conditions) -> Mapping[str, Exponent]:
        """The parameters of largest order that are homogeneous, and what is scale-invariant."""
        # One integer program for the three criteria: exponents of nets are multiples of 1/2 or so,
        # and 4 n times that outweighs the number of parameters (1 each), which outweighs their
        # places (below 1 together).
        count = len(self.names)
        sizes = 1 + np.linspace(1, 0, count) / count
        grown = conditions.select(sizes - conditions.weights(self.degree) * 4 * count)
        if self.degree.under(grown) <= 0:
            return {}
        # Weights before a normalization, and all that writes to a stream before one: whoever scales
        # them too changes nothing. The net without its biases tells that where they alone block.
        if self.narrow or self.bias_free is not None:
            return grown
        return grown | conditions.select(-sizes, without=grown, unchanged=self.degree)


def layers_of(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Group parameter names by layer: layer -> the names of its parameters, in the order given."""
    layers: dict[str, tuple[str, ...]] = {}
    for name in names:
        # torch.nn.utils.parametrize keeps what it computes a weight from one level below.
        kept = f".{name}".partition(".parametrizations.")
        layer = (kept[0][1:] if kept[1] else name.rpartition(".")[0]) or name
        layers[layer] = (*layers.get(layer, ()), name)
    return layers
