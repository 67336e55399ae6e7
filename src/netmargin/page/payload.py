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
from .record_sections import (
    Cell as Cell,
    Change as Change,
    Columns as Columns,
    Comparison as Comparison,
    DoubtfulLabel as DoubtfulLabel,
    Flip as Flip,
    NetRow as NetRow,
    Node as Node,
    Radii as Radii,
    Scaling as Scaling,
    Support as Support,
    SupportSample as SupportSample,
    Tag as Tag,
    Training as Training,
    WrongLabels as WrongLabels,
)


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
        vector), `s`, `f` and `e` (suggested label, its score, the probability that the given one
        is wrong), `image` (number of the cell in the sprites) and `text`, each null for samples
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
    reading: str
    """What the typical distance is worth, or ""."""
    certainty: Certainty | None
    """Of the distance in the lead, if there is one."""
    scale: str
    """What score margins are held against, where a single one is shown, or ""."""
    tiles: tuple[Tile, ...]
    captions: dict[str, tuple[str, str]]
    """Above the histogram, by split: its heading, and what to do with it."""
    axis: Axis
    histograms: dict[str, Columns]
    """(block) By split: bars with `from`, `to`, `count` and `share`. No bar lies across 0, and
    those left of 0 hold the wrong samples. The edges are the same for both splits."""
    peak: str
    """Why training samples pile up where they do, or ""."""
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
    below: dict[str, float | None]
    """By split: the distance below which lie the samples that the sentence counts, or None."""


@dataclass(frozen=True)
class Classes:
    """Section 3, which classes are close to each other."""

    takeaway: dict[str, str]
    not_mistakes: dict[str, str]
    """By split: how many are right, beside the rivals, which look like mistakes."""
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
    not_drawn: dict[str, str]
    """By split: which classes the picture leaves out, since their distances are infinite, or ""."""
    drawn: bool
    """Whether there is a picture: some distances are finite."""


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
    """Of the section: images, classes, labels, change, support, training, scaling, compare, about;
    for a part that is not on the page "missing"."""
    title: str
    verdict: str


@dataclass(frozen=True)
class Page:
    """One page; template "page.html.j2". A section that is None is not on the page."""

    title: str
    subtitle: str
    links: tuple[Link, ...]
    splits: tuple[Split, ...]
    """Held-out first; the switch is shown where there are two. Empty for records alone."""
    warning: str = ""
    """What is wrong with the scores of a net, above everything else, or ""."""
    images: Images | None = None
    overview: Overview | None = None
    nearest: Nearest | None = None
    classes: Classes | None = None
    labels: WrongLabels | None = None
    change: Change | None = None
    support: Support | None = None
    training: Training | None = None
    scaling: Scaling | None = None
    comparison: Comparison | None = None
    missing: tuple[Missing, ...] = ()
    about: tuple[tuple[str, str], ...] = field(default=())
    """Terms and what they mean."""
