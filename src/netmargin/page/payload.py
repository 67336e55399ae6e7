"""Everything that a page shows, in the order in which it shows it.

Python fills these records; templates and scripts only lay them out. Two ways lead to the page:

* **HTML, by jinja2** (autoescape on): every text and every number that is written out. Sentences,
  tiles, tags, gauge, scaling tree, comparison table, missing parts and About come as finished
  text, with the numbers formatted (see `numbers.py`); a template computes nothing. A text that
  follows the switch between held-out and training comes once for each split, in a dict by the key
  of the split.
* **One JSON block**, `block.make_block(page)`: the columns that charts, gallery, filters and table
  read. Fields of it are marked "(block)". Numbers have four significant digits, an infinite one is
  `1e999`, which JSON.parse reads as Infinity; what was not computed is null. `</` cannot occur.

The block is an object with these keys, each absent or null where the page has no such part:

    splits      {key: {"title", "noun", "n", "columns"}}, see `Split`
    names       [text], what the classes are called, by their number
    axis        {"name", "unit", "label"}: what the distance is
    histograms  {key: {"from", "to", "count", "share"}, "range": [low, high], "folded": [two flags]}
    pairs       {key: {"rival": [[count]], "mistake": [[count]]}}, or by lists: see `Classes`
    classes     {key: {"label", "n", "low", "first", "median", "third", "high"}}
    change      see `Change`
    support     {"k", "share"}
    training    {"epoch", "log10_loss", "margin", "right"}
    compare     {"name", "low", "first", "median", "third", "high"}
    sprites     {"columns": 40, "per_sprite", "width", "height"}
    name        text, for the file name of the CSV

Sprites are not in the block: `Images.uris` go into the CSS variables `--sprite-0`, `--sprite-1`...
"""

from dataclasses import dataclass, field

from ..core.notebook_tables import Certainty as Certainty

Columns = dict[str, list]
"""Rows column by column, each of the same length."""


@dataclass(frozen=True)
class Tag:
    """A label of certainty and what it labels, such as "Proved" and "lower curve"."""

    certainty: Certainty
    text: str = ""


@dataclass(frozen=True)
class Tile:
    """A number in large type, with what it means."""

    title: str
    certainty: Certainty
    value: str
    text: str
    before: str = ""
    """A word before the number, in smaller type, such as "within"."""
    after: str = ""
    """A unit after it, in smaller type, such as "%"."""


@dataclass(frozen=True)
class Split:
    """The samples of one side of the switch (block).

    Attributes
    ----------
    key : str
        "heldout" or "training".
    title : str
        "Held-out" or "Training", on the switch.
    noun : str
        What `n` of them are called: "images", "texts" or "samples".
    n : int
        How many there are; every one has its row.
    columns : dict of str to list
        Of each sample `y` label, `p` answer of the net, `r` rival (all numbers of classes), `d`
        distance (negative where it is wrong), `q` score margin. Where there are such, `lower` and
        `upper` (radii), `w` (weight, a share between 0 and 1 of all weight; 0 for no support
        vector), `image` (number of the cell in the sprites) and `text`, each null for samples
        without.
    """

    key: str
    title: str
    noun: str
    n: int
    columns: Columns


@dataclass(frozen=True)
class Images:
    """The pictures of samples: cells of 40 columns in one or more sprites.

    Cell i is in sprite i // per_sprite, and there in row (i % per_sprite) // 40 and column
    (i % per_sprite) % 40.
    """

    uris: tuple[str, ...]
    per_sprite: int
    width: int
    height: int
    """Of one cell, in its own pixels."""


@dataclass(frozen=True)
class Axis:
    """What the distance of the histogram is."""

    name: str
    unit: str
    certainty: Certainty


@dataclass(frozen=True)
class Overview:
    """Section 1, at a glance."""

    lead: str
    advice: str
    """What to give to learn more, or ""."""
    tiles: tuple[Tile, ...]
    captions: dict[str, tuple[str, str]]
    """Above the histogram, by split: its heading, and what to do with it."""
    axis: Axis
    histograms: dict[str, Columns]
    """(block) By split: bars with `from`, `to`, `count` and `share`. No bar lies across 0, and
    those left of 0 hold the wrong samples. The edges are the same for both splits."""
    range: tuple[float, float]
    """(block) Of the axis; samples beyond it are in the bars at the ends."""
    folded: tuple[bool, bool]
    """(block) Whether there are samples beyond, at the lower and at the upper end: ≤ and ≥."""


@dataclass(frozen=True)
class Nearest:
    """Section 2, the samples nearest to the boundary."""

    takeaway: dict[str, str]
    """By split."""
    question: str


@dataclass(frozen=True)
class Classes:
    """Section 3, which classes are close to each other."""

    takeaway: dict[str, str]
    tags: tuple[Tag, ...]
    names: tuple[str, ...]
    """(block) All classes by number."""
    pairs: dict[str, dict]
    """(block) By split. Up to 20 classes {"rival": [[count]], "mistake": [[count]]}, rows are
    labels; more of them {"rival": {"label", "other", "count"}, "mistake": the same}, the largest
    20 pairs; {} for two classes."""
    rows: dict[str, Columns]
    """(block) By split, a row for each class that occurs: its number `label`, `n`, and the
    quantiles 10% `low`, 25% `first`, 50% `median`, 75% `third`, 90% `high`. In the order of the
    classes up to 20 of them, else the smallest median first."""


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
    """

    name: str
    curve: Columns
    lower: list
    upper: list
    wrong: int


@dataclass(frozen=True)
class Change:
    """Section 4, how much change the net can stand.

    In the block: {"nets": [{"name", "curve", "lower", "upper", "wrong"}], "largest", "start",
    "per_input", "attacked", "proved"}.
    """

    takeaway: str
    data: str
    """What was examined, for the grey tag."""
    tags: tuple[Tag, ...]
    calibration: str
    """How good the estimate is here, or ""."""
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
class Support:
    """Section 5, which training samples carry the decision."""

    takeaway: str
    data: str
    tags: tuple[Tag, ...]
    gauge: float
    """The relative epsilon, between 0 and 1: where the mark stands."""
    gauge_text: str
    rebuilt: str
    """How much of the parameters the weighted samples rebuild."""
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
    separated: int | None
    """(block) The first epoch from which on all samples are right, or None."""
    margin_name: str
    """What the margin is divided by, in words; "" where there is no normalized margin."""
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
    """"not clearly different", "better", "worse", or ""."""
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


@dataclass(frozen=True)
class Missing:
    """Section 9, a part that is not on this page."""

    question: str
    cost: str
    line: str
    """The line of Python that adds it, or "" where none does."""
    before: str = ""
    """What must be done first, or why it failed."""


@dataclass(frozen=True)
class Link:
    """An entry of the navigation."""

    id: str
    """Of the section: images, classes, change, support, training, scaling, compare, about."""
    title: str
    verdict: str


@dataclass(frozen=True)
class LedgerRow:
    """A claim of the ledger."""

    id: str
    statement: str
    source: str
    notes: tuple[str, ...]
    printed: tuple[str, ...]
    failures: tuple[str, ...]
    instances: str
    worst: str
    tolerance: str
    seconds: str
    holds: bool


@dataclass(frozen=True)
class LedgerPage:
    """The ledger of the papers' claims, in the page's style; template "ledger.html.j2"."""

    title: str
    takeaway: str
    papers: tuple[tuple[str, tuple[LedgerRow, ...]], ...]
    made_by: str


@dataclass(frozen=True)
class Page:
    """One page; template "page.html.j2". A section that is None is not on the page."""

    title: str
    subtitle: str
    links: tuple[Link, ...]
    splits: tuple[Split, ...]
    """Held-out first; the switch is shown where there are two. Empty for records alone."""
    images: Images | None = None
    overview: Overview | None = None
    nearest: Nearest | None = None
    classes: Classes | None = None
    change: Change | None = None
    support: Support | None = None
    training: Training | None = None
    scaling: Scaling | None = None
    comparison: Comparison | None = None
    missing: tuple[Missing, ...] = ()
    about: tuple[tuple[str, str], ...] = field(default=())
    """Terms and what they mean."""
