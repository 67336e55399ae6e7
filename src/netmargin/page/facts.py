"""All that is known when a page is written: measurements, and the records that were given."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..homogeneity import Homogeneity
from ..kkt import KKTCertificate
from ..label_errors import LabelErrors
from ..margins import Comparison, normalizing_homogeneity
from ..nets.labels import ClassNames
from ..radii import RobustnessReport
from ..training import History
from .inputs import Inputs
from .measured import Measured

_SAME_SCORE = 1e-5
"""Difference of two score margins, relative to their median size, up to which they are those of one
sample: in float64, of inputs that were float32 once, some differ by 1e-6.
"""

_SAME_SAMPLE = 1e-9
"""Relative difference of score margins up to which they are those of equal samples: in float64 sums
of other batches differ by 1e-13 or so.
"""


@dataclass(frozen=True)
class LinkedRadii:
    """The radii of a net, and the split ("" for none) and rows of the page that they are of."""

    name: str
    report: RobustnessReport
    split: str = ""
    rows: Tensor | None = None


@dataclass(frozen=True)
class Facts:
    """What a page is made of; a part that was not computed is None or empty."""

    title: str
    names: ClassNames
    call: str
    model: nn.Module | None = None
    homogeneity: Homogeneity | None = None
    inputs: Inputs | None = None
    splits: tuple[Measured, ...] = ()
    """Held-out first."""
    seen: str = ""
    """What is said of held-out samples that are training samples as well, or ""."""
    texts: tuple[list[str], ...] = ()
    certificate: KKTCertificate | None = None
    radii: tuple[LinkedRadii, ...] = ()
    history: History | None = None
    label_errors: LabelErrors | None = None
    comparison: Comparison | None = None

    @property
    def heldout(self) -> Measured | None:
        """The held-out samples."""
        return next((split for split in self.splits if split.key == "heldout"), None)

    @property
    def training(self) -> Measured | None:
        """The training samples."""
        return next((split for split in self.splits if split.key == "training"), None)

    @property
    def ascends(self) -> bool:
        """Whether `maximize_margin` takes the net, as far as is known."""
        found = self.homogeneity and normalizing_homogeneity(self.homogeneity)
        return found is None or (found.whole and not found.statistics and not found.ignored)

    @property
    def warning(self) -> str:
        """What is wrong with data, scores or distances, or ""."""
        margins = (split.report.input_margins for split in self.splits)
        found = [self.comparison.warning if self.comparison is not None else ""]
        found += [found.warning for found in margins if found is not None]
        found += [split.report.warning for split in self.splits]
        found += [linked.report.warning for linked in self.radii]
        return " ".join(filter(None, (self.seen, next(filter(None, found), ""))))

    @property
    def noun(self) -> str:
        """What a sample is called."""
        return "sample" if self.inputs is None else self.inputs.noun

    @property
    def has_distances(self) -> bool:
        """Whether there are estimated distances, and not score margins only."""
        return all(not split.no_distance for split in self.splits)

    def phrase(self, split: Measured) -> str:
        """Its samples in words, such as "held-out images"."""
        return f"{split.title.lower()} {self.noun}s".strip()

    def weights(self) -> Tensor | None:
        """The share of each training sample in all multipliers of the certificate, shape (N,)."""
        if self.certificate is None or not len(self.certificate.multipliers):
            return None
        found = torch.zeros(self.certificate.samples, dtype=torch.float64, device="cpu")
        rows, sizes = self.certificate.constraints[:, 0], self.certificate.multipliers
        return found.index_add(0, rows, sizes / sizes.sum())


def link_radii(
    name: str, report: RobustnessReport, splits: Iterable[tuple[Measured, Tensor]] = ()
) -> LinkedRadii:
    """Find the samples of radii, which `robustness` does not keep, by score margins in float64."""
    q = torch.as_tensor(report.q, device="cpu")
    for split, own in splits:
        close = _SAME_SCORE * own.abs().median().item()
        if len(own) == len(q) and bool(((own - q).abs() <= close).all()):
            return LinkedRadii(name, report, split.key, torch.arange(len(q), device="cpu"))
        # The sample of the nearest margin, on either side.
        ordered, order = own.sort()
        rows = order[torch.searchsorted((ordered[1:] + ordered[:-1]) / 2, q)]
        if bool(((own[rows] - q).abs() <= close).all()):
            told_apart = _tell_equal_apart(rows, q, split.X)
            if told_apart is not None:
                return LinkedRadii(name, report, split.key, told_apart)
    return LinkedRadii(name, report)


def _tell_equal_apart(rows: Tensor, q: Tensor, X: Tensor) -> Tensor | None:
    """The rows of samples, of which equal ones take turns; None where a row has two margins."""
    found = rows.clone()
    numbers, counts = torch.unique(rows, return_counts=True)
    for row in numbers[counts > 1]:
        several = torch.nonzero(rows == row)[:, 0]
        if not torch.allclose(q[several], q[several[0]], rtol=_SAME_SAMPLE, atol=0):
            return None
        equal = torch.nonzero((X[row] == X).flatten(1).all(1))[:, 0]
        found[several] = equal[torch.arange(len(several), device="cpu") % len(equal)]
    return found
