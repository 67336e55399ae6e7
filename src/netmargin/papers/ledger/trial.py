"""One trial of a claim: the random generators that draw its instances, and what it found."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch

from ...core.records import Shown

_ENTRYWISE = ("normal", "standard_normal", "uniform", "random", "exponential", "integers", "choice")
"""Draws with independent entries, each of which may be drawn anew alone."""

_MINUS_OF_ZERO = re.compile(r"(?<![\w.)])-(?=0(\.0*)?(?![\d.]))")
"""The minus of a number that is 0 in the digits shown, as -0.0000."""


class _Mutated:
    """A generator that draws what an older one does, but for a share of the entries, from 1% up."""

    def __init__(self, old: np.random.Generator, new: np.random.Generator) -> None:
        self._old, self._new, self._share = old, new, 10 ** -(2 * new.random())

    def __getattr__(self, name: str) -> Any:
        def draw(*args: Any, **options: Any) -> Any:
            old, new = (getattr(r, name)(*args, **options) for r in (self._old, self._new))
            alone = name in _ENTRYWISE and options.get("replace", True)
            again = self._new.random(np.shape(old) if alone else None) < self._share
            return np.where(again, new, old) if np.ndim(again) else new if again else old

        return draw


@dataclass(frozen=True)
class Trial:
    """One random trial of a claim.

    The same number and seed draw the same instances. Instances grow with the number, so that the
    first one that violates a claim is small.

    Examples
    --------
    >>> from netmargin.theory import Trial
    >>> Trial(3).random.normal() == Trial(3).random.normal()
    True
    """

    number: int  # from 0
    seed: int = 0  # of all trials
    lineage: tuple[int, ...] = ()  # mutations, each of which draws a share of all numbers anew

    @property
    def random(self) -> np.random.Generator:
        """A new numpy generator, in the same state at every access."""
        random = np.random.default_rng([self.seed, self.number])
        for end in range(1, len(self.lineage) + 1):
            new = np.random.default_rng([self.seed, self.number, *self.lineage[:end]])
            random = cast(np.random.Generator, _Mutated(random, new))
        return random

    @property
    def torch_random(self) -> torch.Generator:
        """A new torch generator, in the same state at every access; a mutation draws all anew."""
        # torch takes one seed: 63 bits of a sequence that mixes seed and number.
        entropy = [self.seed, self.number, *self.lineage]
        state = np.random.SeedSequence(entropy).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))


@dataclass(frozen=True)
class Finding(Shown):
    """The violations that one trial of a claim found.

    Examples
    --------
    >>> import torch
    >>> from netmargin.theory import Finding
    >>> found = Finding.of(torch.tensor([-0.5, 1e-16]), "two vectors of length 3")
    >>> found.violations.max() <= 1e-12
    np.True_
    """

    # How far the statement is from holding at each instance, in the units of the claim's tolerance.
    violations: np.ndarray
    setting: str  # the instances in words
    measured: str = ""  # numbers that a reader wants to see, such as a fitted rate
    # By promise, the factor by which it could be stronger at all instances, where no search tells.
    room: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, violations: Any, setting: str, measured: str = "", **room: float) -> "Finding":
        """Build a finding from a number, an array or a tensor of violations, one per instance.

        NaN counts as an infinite violation: a check that computes nothing must not pass.
        """
        if isinstance(violations, torch.Tensor):
            violations = violations.detach().cpu().numpy()
        flat = np.atleast_1d(np.asarray(violations, dtype=np.float64)).ravel()
        setting, measured = (_MINUS_OF_ZERO.sub("", text) for text in (setting, measured))
        return cls(np.where(np.isnan(flat), np.inf, flat), setting, measured, room)

    @classmethod
    def of_one(cls, criteria: Any, setting: str, measured: str = "", **room: float) -> "Finding":
        """Build a finding of one instance, such as a run, that has to meet several criteria.

        Its violation is the largest of them. Without any criterion no instance was examined.
        """
        found = cls.of(criteria, setting, measured, **room)
        most = found.violations.max(keepdims=True, initial=-np.inf)
        return replace(found, violations=most[: len(found.violations)])


def excess(found: Any, bound: Any) -> Any:
    """How far above its bound a value is, relative to it; a ratio would pass below 0."""
    return (found - bound) / abs(bound)
