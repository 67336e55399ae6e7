"""One trial of a claim: the random generators that draw its instances, and what it found."""

from dataclasses import dataclass

import numpy as np
import torch

from ...core.records import short_repr


@dataclass(frozen=True)
class Trial:
    """One random trial of a claim.

    The same number and seed draw the same instances. Instances grow with the number, so that the
    first one that violates a claim is small.

    Parameters
    ----------
    number : int, at least 0
        The number of the trial.
    seed : int, default 0
        Seed of all trials.

    Examples
    --------
    >>> from netmargin.theory import Trial
    >>> Trial(3).random.normal() == Trial(3).random.normal()
    True
    """

    number: int
    seed: int = 0

    @property
    def random(self) -> np.random.Generator:
        """A new numpy generator, in the same state at every access."""
        return np.random.default_rng([self.seed, self.number])

    @property
    def torch_random(self) -> torch.Generator:
        """A new torch generator, in the same state at every access."""
        # torch takes one seed: 63 bits of a sequence that mixes seed and number.
        state = np.random.SeedSequence([self.seed, self.number]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))


@dataclass(frozen=True)
class Finding:
    """The violations that one trial of a claim found.

    Parameters
    ----------
    violations : ndarray, shape (instances,)
        How far the statement is from holding at each instance, in the units of the claim's
        tolerance; at most 0 where it holds with room to spare.
    setting : str
        The instances in words.
    measured : str
        Numbers that a reader wants to see, such as a fitted rate; "" by default.

    Examples
    --------
    >>> import torch
    >>> from netmargin.theory import Finding
    >>> found = Finding.of(torch.tensor([-0.5, 1e-16]), "two vectors of length 3")
    >>> found.violations.max() <= 1e-12
    np.True_
    """

    violations: np.ndarray
    setting: str
    measured: str = ""

    __repr__ = short_repr

    @classmethod
    def of(cls, violations, setting: str, measured: str = "") -> "Finding":
        """Build a finding from a number, an array or a tensor of violations, one per instance.

        NaN counts as an infinite violation: a check that computes nothing must not pass.
        """
        if isinstance(violations, torch.Tensor):
            violations = violations.detach().cpu().numpy()
        flat = np.atleast_1d(np.asarray(violations, dtype=np.float64)).ravel()
        return cls(np.where(np.isnan(flat), np.inf, flat), setting, measured)

    @classmethod
    def of_one(cls, criteria, setting: str, measured: str = "") -> "Finding":
        """Build a finding of one instance, such as a run, that has to meet several criteria.

        Its violation is the largest of them. Without any criterion no instance was examined.
        """
        found = cls.of(criteria, setting, measured).violations
        return cls(found.max(keepdims=True) if len(found) else found, setting, measured)
