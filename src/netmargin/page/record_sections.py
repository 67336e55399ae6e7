"""What a page shows of records: change, support vectors, training, scaling, comparison.

`payload` says how these reach the page.
"""

from dataclasses import dataclass

from ..core.notebook_tables import Certainty

Columns = dict[str, list]
"""Rows column by column, each of the same length."""


@dataclass(frozen=True)
class Tag:
    """A label of certainty and what it labels, such as "Proved" and "lower curve"."""

    certainty: Certainty
    text: str = ""


@dataclass(frozen=True)
class Radii:
    """The radii of one net (block).

    Attributes
    ----------
    name : str
        Of the net; "" where there is one.
    curve : dict of str to list
        `x` a size of change, `proved` and `flipped` the shares of samples in percent that are
        proved safe below x, and that x or less flips. A step function: the values at x hold up to
        the next one.
    lower, upper : list of float
        Radii of each sample, for the three counts below the slider: proved safe below x where
        x <= lower and lower > 0, flipped where upper <= x, else open.
    wrong : int
        How many are wrong as they are.
    samples : str
        What the shares are of, such as "the 20 examined images"; not in the block.
    """

    name: str
    curve: Columns
    lower: list
    upper: list
    wrong: int
    samples: str


@dataclass(frozen=True)
class Flip:
    """A sample, and the nearest input found that flips its answer.

    Attributes
    ----------
    title : str
        Which one it is, such as "held-out image 17".
    size : str
        How far it is, with a word on its place among all, such as "0.55, the median".
    answers : tuple of (str, str)
        The answers before and after.
    pictures : tuple of (str, str)
        Of images: the picture before and after and of the difference as data URIs, each with what
        it shows; empty for other inputs.
    inputs : tuple of (str, str, str)
        Of tables: the inputs that change most, by name, before and after.
    """

    title: str
    size: str
    answers: tuple[str, str]
    pictures: tuple[tuple[str, str], ...] = ()
    inputs: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Change:
    """Section 4, how much change the net can stand.

    In the block: {"nets": [{"name", "curve", "lower", "upper", "wrong"}], "largest", "start",
    "per_input", "attacked", "proved"}.
    """

    takeaway: str
    data: str
    """What was examined, for the grey tag."""
    others: str
    """What they say of the samples that were not examined, or ""."""
    tags: tuple[Tag, ...]
    calibration: str
    """How good the estimate is here, or ""."""
    proof_note: str
    """Why more may hold than is proved, or ""."""
    no_proof: str
    """Why nothing is proved, or ""."""
    unit: str
    nets: tuple[Radii, ...]
    largest: float
    """(block) The end of the axis."""
    start: float
    """(block) Where the slider begins."""
    per_input: float
    """(block) Times the size of a change: the percent of the range by which every input changes."""
    per_input_text: str
    """"{} is like changing every pixel by {}% of its range": the script fills in both."""
    attacked: bool
    """(block) Whether attacks ran: else there is no upper curve."""
    proved: bool
    """(block) Whether there are proved radii."""
    flips: tuple[Flip, ...]
    """Some of the flips that were found, the smallest first."""


@dataclass(frozen=True)
class SupportSample:
    """One of the heaviest samples."""

    row: int
    """Its number among the training samples."""
    share: float
    """Of the weight of the heaviest, from 0 to 1: the length of the bar."""
    percent: str
    """Its share of all weight, as text."""
    caption: str
    """Such as "4 vs 9"."""


@dataclass(frozen=True)
class DoubtfulLabel:
    """One of the labels that are most probably wrong."""

    row: int
    """Its number among the training samples."""
    caption: str
    """The label given and the one suggested, such as "7, rather 2"."""
    number: str
    """The estimated probability that the label is wrong, or where none can be told its score."""


@dataclass(frozen=True)
class WrongLabels:
    """Which training labels are probably wrong."""

    takeaway: str
    data: str
    tags: tuple[Tag, ...]
    notes: tuple[str, ...]
    """What else is known, in sentences."""
    key: str
    """What stands below each image, in words."""
    worst: tuple[DoubtfulLabel, ...]
    """The most suspicious ones, worst first; empty where their samples are not on the page."""
    lines: tuple[tuple[str, ...], ...]
    """The same as lines of a table: sample, given, suggested, score, wrong so far."""
    count: int
    """How many labels are wrong at most; 0 where that cannot be told."""


@dataclass(frozen=True)
class Support:
    """Section 5, which training samples carry the decision."""

    takeaway: str
    data: str
    tags: tuple[Tag, ...]
    gauge: float
    """The relative epsilon, between 0 and 1: where the mark stands."""
    gauge_text: str
    definition: str
    """What support vectors, shares and the gap are, and what they are good for."""
    rebuilt: str
    """How much of the weights they do not explain."""
    next_step: str
    """A line of Python, or ""."""
    curve: Columns
    """(block) `k` samples, heaviest first, and `share` of the weight in percent."""
    half: int
    """How many carry half of the weight."""
    count: int
    heaviest: tuple[SupportSample, ...]


@dataclass(frozen=True)
class Training:
    """Section 6, how far training has come."""

    takeaway: str
    data: str
    tags: tuple[Tag, ...]
    rows: Columns
    """(block) `epoch`, `log10_loss`, `margin` (null without) and `right` (percent)."""
    separated: float | None
    """(block) The first epoch from which on all samples are right, or None."""
    margin_name: str
    """What the margin is divided by, in words; "" where there is no normalized margin."""
    verdict: str
    """Whether to stop or to go on, or ""."""
    note: str


@dataclass(frozen=True)
class Node:
    """A module of the net in the scaling tree."""

    name: str
    kind: str
    """Its class and what matters of it, such as "Linear, no bias"."""
    exponent: str
    """Such as "exponent 1", or ""."""
    blocked: str
    """Why it cannot be scaled freely, or ""; of a parent how many below it: "2 places"."""
    instead: str
    """What to use in its place, or ""."""
    open: bool
    """Whether it is shown unfolded."""
    quiet: bool
    """Whether it has nothing to say: a grey line."""
    children: tuple["Node", ...] = ()


@dataclass(frozen=True)
class Scaling:
    """Section 7, which parts of the net can be scaled freely."""

    why: str
    takeaway: str
    tags: tuple[Tag, ...]
    warning: str
    """Where derivation and check disagree, or ""."""
    fine: bool
    """Whether all of the net can be scaled: then its tree is folded."""
    root: Node


@dataclass(frozen=True)
class Cell:
    """A number of the comparison with its interval."""

    value: str
    low: float | None = None
    high: float | None = None
    at: float | None = None
    """Ends of the interval and the number itself, in percent of the width of the column."""
    verdict: str = ""
    """"not clearly different", or such as "worse by 0.12 to 0.30", or ""."""
    interval: str = ""
    """The interval in words."""


@dataclass(frozen=True)
class NetRow:
    """One net of the comparison."""

    name: str
    here: bool
    """Whether the page is about this net."""
    error: Cell | None
    z: Cell | None
    weighted: Cell | None
    quarter: str
    wrong: str
    margin: str


@dataclass(frozen=True)
class Comparison:
    """Section 8, how the nets compare."""

    takeaway: str
    data: str
    tags: tuple[Tag, ...]
    heldout: bool
    """Whether the columns of held-out data are filled."""
    nets: tuple[NetRow, ...]
    distances: Columns
    """(block) A row for each net: `name`, and the quantiles `low` to `high` as in `Classes`."""
    distances_of: str
    """The samples of these distances, such as "held-out images"."""
    note: str
