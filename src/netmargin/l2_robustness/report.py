"""What is known of the L2 robustness of a net on samples."""

from dataclasses import dataclass

import numpy as np

from ..core.records import short_repr


@dataclass(frozen=True)
class RobustnessReport:
    """Per sample, (n,): lower, the certified radius; upper, the distance of the nearest
    misclassified input found; q, the margin; found_by, the attack ("" for none).

    Both radii of a misclassified sample are 0. Where no attack found anything, upper is infinite.
    attacks : those that ran.
    scale : the median margin of correct samples (1 if there are none), in units of which the
        attacks saw the scores.
    box : of the inputs, None for all of R^d.
    no_lower : why no radius is certified (lower is 0 then), or "".
    """

    lower: np.ndarray
    upper: np.ndarray
    q: np.ndarray
    found_by: np.ndarray
    attacks: tuple[str, ...]
    scale: float
    box: tuple[float, float] | None
    no_lower: str = ""

    def __repr__(self) -> str:
        return short_repr(self, "n", "accuracy", "largest", "attacks", "box", "no_lower")

    @property
    def n(self) -> int:
        """Samples."""
        return len(self.q)

    @property
    def accuracy(self) -> float:
        """The share of samples that are correct."""
        return float((self.q > 0).mean())

    @property
    def not_found(self) -> int:
        """How many correct samples no attack could turn; 0 if there was none."""
        return int(np.isinf(self.upper).sum()) if self.attacks else 0

    @property
    def largest(self) -> float:
        """The largest finite radius; 1 if none is positive."""
        both = np.concatenate([self.lower, self.upper])
        return float(both[np.isfinite(both)].max(initial=0.0)) or 1.0

    def curve(self, epsilons=None):
        """Robust accuracy over epsilon, as a pandas DataFrame: the shares of samples with radius
        above epsilon, `certified` (lower) and `attacked` (upper, if there were attacks); the truth
        lies between.
        """
        import pandas

        if epsilons is None:
            epsilons = np.linspace(0, self.largest, 101)
        epsilons = np.asarray(epsilons, dtype=float)
        shares = {
            name: (radii[None] > epsilons[:, None]).mean(1)
            for name, radii in (("certified", self.lower), ("attacked", self.upper))
        }
        return pandas.DataFrame({"epsilon": epsilons} | shares)

    def _radii(self) -> list[tuple[str, np.ndarray]]:
        return [("certified", self.lower), *([("attacked", self.upper)] if self.attacks else [])]

    def table(self):
        """One row per sample, as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(
            {"q": self.q, "lower": self.lower, "upper": self.upper, "found_by": self.found_by}
        )

    def to_dict(self) -> dict:
        """JSON values; infinite radii are None."""

        def shown(radius: float) -> float | None:
            return float(radius) if np.isfinite(radius) else None

        return {
            "n": self.n,
            "accuracy": self.accuracy,
            "median_lower": shown(np.median(self.lower)),
            "median_upper": shown(np.median(self.upper)),
            "not_found": self.not_found,
            "attacks": list(self.attacks),
            "scale": self.scale,
            "box": self.box,
            "no_lower": self.no_lower,
            "lower": list(map(shown, self.lower)),
            "upper": list(map(shown, self.upper)),
            "found_by": self.found_by.tolist(),
        }

    def summary(self) -> str:
        """A few lines of text."""
        names, counts = np.unique(self.found_by[self.found_by != ""], return_counts=True)
        lines = [
            (
                f"{self.n} samples, {100 * self.accuracy:.2f}% correct; inputs in"
                f" {'R^d' if self.box is None else f'[{self.box[0]:g}, {self.box[1]:g}]^d'}"
            ),
            f"certified radius   median {np.median(self.lower):.4g}"
            + (f"  (none: {self.no_lower})" if self.no_lower else ""),
        ]
        if self.attacks:
            lines += [
                (
                    f"attacked radius    median {np.median(self.upper):.4g}, {self.not_found}"
                    " samples that no attack could turn"
                ),
                "nearest found by   "
                + (
                    ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
                    or "none"
                ),
            ]
        return "\n".join(lines)
