"""From degrees and constraints to an answer: which scalings of the parameters multiply the outputs by a power of c."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from ..accepted_models import check_model, require_finite, tensor_of_scores
from ..batches import as_inputs, explained_failure, place_of
from ..errors import ModelError
from . import normalization_rules, rules  # noqa: F401  (register their rules)
from .answer import Blocker, Evidence, Exponent, Homogeneity, Kind
from .degree import CONSTANT, AnyDegree, Constraint, Degree, Unknown
from .scaling import FACTORS, ScalingCheck, ScalingProbe, clone_inputs, generic_inputs
from .trace import Trace

_PROBED_SAMPLES = 4


def analyse(model: nn.Module, x) -> Homogeneity:
    """How the outputs of `model` scale with its parameters, in the training or evaluation mode it is in.

    Every operation of one forward pass on a few samples of `x` is followed by rules; a numerical scaling check in float64
    judges the answer, and answers alone (and says so) where an operation has no rule.

    Parameters
    ----------
    model : a module that maps one tensor (or one tuple of tensors) to one tensor of scores.
    x : a batch of inputs, on any device and in any floating dtype; a few samples suffice.

    Raises
    ------
    ModelError : no parameters, parameters or outputs that are not finite, outputs that are not one tensor.
    DataError : inputs that the model rejects.

    >>> import torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> h = nm.analyse(torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1)), torch.ones(2, 3))
    >>> h.kind.name, [b.module for b in h.blockers], h.quasi
    ('PARTIAL', ['2'], {'0.weight': Fraction(1, 2), '0.bias': Fraction(1, 2), '2.weight': Fraction(1, 2), '2.bias': 1})
    >>> h.ignoring_biases().groups
    {'0': 1, '2': 1}

    Source: Lyu and Li 2019, Section 4.4 and Appendix G; two-homogeneity 2024, Section 3.4.
    """
    model = check_model(model)
    device, dtype = place_of(model)
    names = [name for name, _ in model.named_parameters()]
    require_finite(model)
    x = _few_samples(x, device, dtype)
    trace, degree = _follow(model, x)
    known = degree if isinstance(degree, Degree) else CONSTANT
    question = Question(model, x, tuple(names), known, tuple(trace.constraints), tuple(trace.notes), frozenset(trace.epsilons))
    return question.answer_numerically(degree) if isinstance(degree, Unknown) else question.answer()


@dataclass(frozen=True)
class Question:
    """A traced net: the degree of its outputs in each parameter, and the constraints on scalings."""

    model: nn.Module
    x: object
    names: tuple[str, ...]
    degree: Degree
    constraints: tuple[Constraint, ...]
    notes: tuple[str, ...]
    epsilons: frozenset[float]
    ignored: tuple[str, ...] = ()

    def without(self, biases: set[str]) -> Homogeneity:
        """The answer when the given biases are absent."""
        kept = tuple(n for n in self.names if n not in biases)
        constraints = tuple(c for c in self.constraints if c.bias not in biases)
        note = f"ignores the biases outside the first layer: {', '.join(sorted(biases))}"
        return replace(self, names=kept, constraints=constraints, notes=(*self.notes, note), ignored=tuple(sorted(biases))).answer()

    def answer(self) -> Homogeneity:
        """The answer of the rules, judged by the numerical check."""
        violated = [c for c in self.constraints if c.difference.total(self.names)]
        blockers = tuple(dict.fromkeys(Blocker(c.where, c.reason, c.replacement, c.bias) for c in violated))
        order = self.degree.total(self.names)
        scaled: tuple[str, ...] = self.names if not violated and order > 0 else self._partial()
        if not violated and order <= 0:
            blockers = (Blocker("", "the outputs do not grow with the parameters", "end with a bias-free nn.Linear"),)
        groups, members = self._groups(scaled)
        order = self.degree.total(scaled)
        if not scaled:
            kind = Kind.NONE
        elif blockers:
            kind = Kind.PARTIAL
        else:
            kind = Kind.MULTI_HOMOGENEOUS if len(groups) > 1 else Kind.HOMOGENEOUS
        answer = Homogeneity(
            kind, _tidy(order) if scaled else None, groups, members, blockers, Evidence.DERIVED,
            quasi=self._quasi() if blockers else dict.fromkeys(self.names, _tidy(1 / order)), notes=self.notes, ignored=self.ignored, _question=self,
        )  # fmt: skip
        return answer if self.check(answer, seed=0).passed else self._contradicted(answer)

    def _contradicted(self, answer: Homogeneity) -> Homogeneity:
        note = "the numerical check contradicts the rules: the forward pass depends on its inputs in a way they cannot see"
        return replace(
            answer, kind=Kind.UNKNOWN, order=None, groups={}, members={}, quasi=None, evidence=Evidence.CONTRADICTED,
            notes=(*answer.notes, note),
        )  # fmt: skip

    def check(self, answer: Homogeneity, *, seed: int) -> ScalingCheck:
        """Each group alone, then all at once, then the quasi-homogeneous scaling; ignored biases are set to 0."""
        check = self._check_at(self.x, answer, seed)
        if not check.passed:  # blank samples, or constant ones before a normalization, say nothing
            with suppress(RuntimeError, IndexError, ValueError):
                return self._check_at(generic_inputs(self.x), answer, seed)
        return check

    def _check_at(self, x, answer: Homogeneity, seed: int) -> ScalingCheck:
        probe = ScalingProbe(self.model, x, epsilons=self.epsilons, seed=seed, zeroed=answer.ignored)
        checks = [probe.check(dict.fromkeys(answer.members[name], 1), k, factors=FACTORS[-1:]) for name, k in answer.groups.items()]
        every = [name for names in answer.members.values() for name in names]
        checks.append(probe.check(dict.fromkeys(every, 1), sum(answer.groups.values())))
        if answer.quasi and answer.blockers:  # otherwise the same as all at once
            checks.append(probe.check(answer.quasi, 1))
        return max(checks, key=lambda check: check.deviation)

    def answer_numerically(self, hidden: Unknown) -> Homogeneity:
        """The answer of the scaling check alone, for nets in which `hidden` could not be followed."""
        probe = ScalingProbe(self.model, self.x, epsilons=self.epsilons)
        if probe.silent:
            probe = ScalingProbe(self.model, generic_inputs(self.x), epsilons=self.epsilons)
        exponents = {layer: probe.exponent(names) for layer, names in self._layers(self.names).items()}
        order = probe.exponent(self.names)
        single = {layer: k for layer, k in exponents.items() if k is not None}
        if order is not None and order > 0:
            separate = len(single) == len(exponents) > 1 and sum(single.values()) == order
            kind = Kind.MULTI_HOMOGENEOUS if separate else Kind.HOMOGENEOUS
            groups = single if separate else {"all": order}
        else:
            groups = {layer: k for layer, k in single.items() if k > 0}
            together = [n for layer in groups for n in self._layers(self.names)[layer]]
            order = sum(groups.values(), Fraction(0))
            kind = Kind.PARTIAL if groups and probe.exponent(together) == order else Kind.UNKNOWN
        known = kind is not Kind.UNKNOWN
        whole = kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS)
        blocker = Blocker(hidden.where, hidden.reason, "register a rule with netmargin.homogeneity.rule, for a derived answer")
        layers = {**self._layers(self.names), "all": self.names}
        return Homogeneity(
            kind,
            _tidy(order) if known else None,
            {name: _tidy(k) for name, k in groups.items()} if known else {},
            {name: layers[name] for name in groups} if known else {},
            () if whole else (blocker,),
            Evidence.NUMERICAL,
            notes=(*self.notes, str(blocker)) if whole else self.notes,
            _question=self,
        )

    def _layers(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        layers: dict[str, tuple[str, ...]] = {}
        for name in names:
            layer = name.rpartition(".")[0] or name
            layers[layer] = (*layers.get(layer, ()), name)
        return layers

    def _groups(self, scaled: tuple[str, ...]) -> tuple[dict[str, Exponent], dict[str, tuple[str, ...]]]:
        """A partition into unions of layers that can each be scaled alone: what a constraint ties together is merged."""
        parts = list(self._layers(scaled).items())
        changed = True
        while changed:
            changed = False
            for constraint in self.constraints:
                tied = [part for part in parts if constraint.difference.total(part[1])]
                if len(tied) > 1:
                    merged = (" + ".join(p[0] for p in tied), tuple(n for p in tied for n in p[1]))
                    parts = [p for p in parts if p not in tied] + [merged]
                    changed = True
        return {name: _tidy(self.degree.total(names)) for name, names in parts}, dict(parts)

    def _matrix(self) -> np.ndarray:
        rows = [[float(c.difference.exponents.get(n, 0)) for n in self.names] for c in self.constraints]
        return np.array(rows).reshape(len(rows), len(self.names))

    def _partial(self) -> tuple[str, ...]:
        """The subset of largest order (then smallest, then latest) in which the net is homogeneous; () if there is none."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        gain = np.array([float(self.degree.exponents.get(n, 0)) for n in self.names])
        cost = -gain * 4 * len(self.names) + 1 + np.linspace(1, 0, len(self.names)) / len(self.names)
        constraints = LinearConstraint(self._matrix(), 0, 0) if self.constraints else ()
        found = milp(cost, constraints=constraints, integrality=np.ones(len(cost)), bounds=Bounds(0, 1))
        chosen = tuple(n for n, s in zip(self.names, found.x, strict=True) if s > 0.5) if found.x is not None else ()
        # The solver proposes; exact arithmetic judges.
        valid = chosen and self.degree.total(chosen) > 0 and not any(c.difference.total(chosen) for c in self.constraints)
        return chosen if valid else ()

    def _quasi(self) -> dict[str, Exponent] | None:
        """The most even positive weights under which the net is quasi-homogeneous of order 1, or None."""
        from scipy.optimize import linprog

        gain = np.array([float(self.degree.exponents.get(n, 0)) for n in self.names])
        count = len(self.names)
        # Variables: the weights and their minimum. Maximize the minimum, and among ties take small weights.
        equalities = np.vstack([np.hstack([self._matrix(), np.zeros((len(self.constraints), 1))]), np.append(gain, 0)])
        targets = np.append(np.zeros(len(self.constraints)), 1.0)
        above = np.hstack([-np.eye(count), np.ones((count, 1))])
        cost = np.append(np.full(count, 1e-3 / count), -1.0)
        found = linprog(cost, A_ub=above, b_ub=np.zeros(count), A_eq=equalities, b_eq=targets, bounds=(0, None))
        if found.x is None:
            return None
        weights = {n: Fraction(w).limit_denominator(5040) for n, w in zip(self.names, found.x[:-1], strict=True)}
        # The solver proposes; exact arithmetic judges.
        valid = all(weights.values()) and self.degree.under(weights) == 1
        valid = valid and not any(c.difference.under(weights) for c in self.constraints)
        return {name: _tidy(weight) for name, weight in weights.items()} if valid else None


def _follow(model: nn.Module, x) -> tuple[Trace, AnyDegree]:
    """Run the model on a copy of x under a trace; the trace and the degree of the outputs."""
    fused_attention = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one opaque operation otherwise

    def forward(x):
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        return torch.func.functional_call(model, buffers, (x,))

    try:
        with torch.no_grad(), torch.random.fork_rng():
            with explained_failure(x):
                outputs = tensor_of_scores(forward(clone_inputs(x)))
            if not torch.isfinite(outputs).all():
                raise ModelError("The model's outputs hold NaN or infinite values on finite inputs. Check its weights.")
            x = clone_inputs(x)
            trace = Trace(model, x)
            with trace.following(model), trace:
                outputs = forward(x)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused_attention)
    return trace, trace.finish(outputs)


def _few_samples(x, device: torch.device, dtype: torch.dtype):
    """The first samples as tensors for the model; a tuple is a model's several inputs."""
    if isinstance(x, tuple):
        return tuple(_few_samples(part, device, dtype) for part in x)
    x = as_inputs(x)[:_PROBED_SAMPLES].to(device, copy=True)
    return x.to(dtype) if x.is_floating_point() else x


def _tidy(exponent: Fraction | int) -> Exponent:
    return int(exponent) if exponent == int(exponent) else exponent
