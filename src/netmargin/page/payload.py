"""Everything that a page shows.

Python fills these records; templates and scripts only lay them out. Texts and numbers that are
written out go to the templates (autoescape on). What charts, gallery, filters and table read goes
into one JSON block: the fields made by `sent`, at the place in the block that they name. A text
that follows the switch between held-out and training is a dict by the key of the split.
"""

from dataclasses import dataclass, field
from typing import Any

from ..core.records import Certainty as Certainty, Table

Columns = dict[str, list[Any]]
"""Rows column by column, each of the same length."""


def sent(*place: str) -> dict[str, tuple[str, ...]]:
    """The metadata of a field that goes into the JSON block, at this place."""
    return {"block": place}


@dataclass(frozen=True)
class Tag:
    """A label of certainty and what it labels, such as "Proved" and "lower curve"."""

    certainty: Certainty
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """What sections begin with: what was found, in which data, how certain it is, and remarks."""

    takeaway: str
    data: str = ""
    tags: tuple[Tag, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A number in large type, with a word before it, its unit, and what it means."""

    title: str
    certainty: Certainty
    value: str
    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Card:
    """A training sample that Python chose: its row, its texts, the length of its bar of up to 1."""

    row: int
    caption: str
    number: str
    share: float | None = None


@dataclass(frozen=True)
class Split:
    """The samples of one side of the switch; `key` is "heldout" or "training", which data alone
    are as well: their title is "".

    Columns are, of each sample, `y` label, `p` answer of the net, `r` rival, `o` answer of another
    net where it differs (all numbers of classes), `d` distance (negative where it is wrong), `q`
    score margin. Where there are such, `lower` and `upper` (radii), `w` (share of all weight; 0 for
    no support vector), `s`, `f` and `e` (suggested label, its score, the probability that the given
    one is wrong), `image` (number of the cell in the sprites) and `text`, each None for samples
    without.
    """

    key: str
    title: str = field(metadata=sent("title"))
    noun: str = field(metadata=sent("noun"))
    n: int = field(metadata=sent("n"))
    columns: Columns = field(metadata=sent("columns"))


@dataclass(frozen=True)
class Images:
    """The pictures of samples, as data URIs of sprites.

    Cell i is in sprite i // per_sprite, and there in row (i % per_sprite) // columns and column
    (i % per_sprite) % columns. The URIs go into the CSS variables `--sprite-0`, `--sprite-1`...
    """

    uris: tuple[str, ...]
    per_sprite: int = field(metadata=sent("sprites", "per_sprite"))
    width: int = field(metadata=sent("sprites", "width"))
    height: int = field(metadata=sent("sprites", "height"))
    columns: int = field(metadata=sent("sprites", "columns"))


@dataclass(frozen=True)
class Axis:
    """What the distance of the histogram is."""

    name: str = field(metadata=sent("axis", "name"))
    unit: str = field(metadata=sent("axis", "unit"))
    certainty: Certainty = field(metadata=sent("axis", "label"))


@dataclass(frozen=True)
class Overview:
    """At a glance.

    Histograms are by split: bars with `from`, `to`, `count` and `share`. No bar lies across 0, and
    those left of 0 hold the wrong samples; the edges are the same for both splits. Samples beyond
    `range` are in the bars at the ends, and `folded` says whether there are such, below and above.
    """

    lead: str
    certainty: Certainty | None
    reading: str
    next_step: tuple[str, str]
    scale: str
    tiles: tuple[Tile, ...]
    captions: dict[str, str]
    axis: Axis
    histograms: dict[str, Columns] = field(metadata=sent("histograms"))
    range: tuple[float, float] = field(metadata=sent("histograms", "range"))
    folded: tuple[bool, bool] = field(metadata=sent("histograms", "folded"))


@dataclass(frozen=True)
class Nearest:
    """The samples nearest to the boundary.

    `below` is the distance below which lie the samples that the sentence counts, or None.
    """

    takeaway: dict[str, str]
    below: dict[str, float | None]


@dataclass(frozen=True)
class Classes:
    """Which classes are close to each other.

    Pairs are by split: of up to 20 classes {"rival": [[count]], "mistake": [[count]]}, rows are
    labels; of more {"rival": {"label", "other", "count"}, "mistake": the same}, the largest 20
    pairs; {} for two classes. Rows are by split, one for each class that occurs: its number
    `label`, `n`, and the quantiles 10% `low`, 25% `first`, 50% `median`, 75% `third`, 90% `high`.
    """

    takeaway: dict[str, str]
    not_mistakes: dict[str, str]
    tags: tuple[Tag, ...]
    not_drawn: dict[str, str]
    drawn: bool
    names: tuple[str, ...] = field(metadata=sent("names"))
    pairs: dict[str, dict[str, Any]] = field(metadata=sent("pairs"))
    rows: dict[str, Columns] = field(metadata=sent("classes"))


@dataclass(frozen=True)
class WrongLabels(Section):
    """Which training labels are probably wrong: the worst as cards, and as lines of a table."""

    key: str
    worst: tuple[Card, ...]
    lines: tuple[tuple[str, ...], ...]
    count: int


@dataclass(frozen=True)
class Radii:
    """The radii of one net; its name is "" where there is one.

    The curve has `x` a size of change, `proved` and `flipped` the shares of samples in percent that
    are proved safe below x, and that x or less flips; the values at x hold up to the next one.
    `wrong` counts the samples that are wrong as they are.
    """

    name: str = field(metadata=sent("name"))
    curve: Columns = field(metadata=sent("curve"))
    lower: list[Any] = field(metadata=sent("lower"))
    upper: list[Any] = field(metadata=sent("upper"))
    wrong: int = field(metadata=sent("wrong"))
    samples: str = ""


@dataclass(frozen=True)
class Flip:
    """A sample, and the nearest input found that flips its answer.

    Of images there are pictures before and after and of the difference, each a data URI and what it
    shows; of tables the inputs that change most, by name, before and after.
    """

    title: str
    size: str
    answers: tuple[str, str]
    pictures: tuple[tuple[str, str], ...] = ()
    inputs: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Change(Section):
    """How much change the net can stand.

    `per_input` times a size is the percent of the scale by which all inputs change; 0 for unknown.
    """

    no_proof: str
    unit: str
    inputs: str
    scale: str
    flips: tuple[Flip, ...]
    nets: tuple[Radii, ...] = field(metadata=sent("change", "nets"))
    largest: float = field(metadata=sent("change", "largest"))
    start: float = field(metadata=sent("change", "start"))
    per_input: float = field(metadata=sent("change", "per_input"))
    attacked: bool = field(metadata=sent("change", "attacked"))
    proved: bool = field(metadata=sent("change", "proved"))


@dataclass(frozen=True)
class Support(Section):
    """Which training samples carry the decision; the gauge is the relative epsilon."""

    gauge: float
    gauge_text: str
    rebuilt: str
    next_step: str
    count: int
    heaviest: tuple[Card, ...]


@dataclass(frozen=True)
class Training(Section):
    """How far training has come.

    Rows are `epoch`, `log10_loss`, `margin` (None without) and `right` (percent); `separated` is
    the first epoch from which on all samples are right, or None.
    """

    loss: str
    has_margin: bool
    rows: Columns = field(metadata=sent("training"))
    separated: float | None = field(metadata=sent("training", "separated"))


@dataclass(frozen=True)
class Scaling(Section):
    """Which parts of the net can be scaled freely; `layers` is the summary of the analysis."""

    warning: str
    layers: str


@dataclass(frozen=True)
class Cell:
    """A number of the comparison, what is said of it, and where there is a bar, its ends and the
    number between them in percent of the column, and in words.
    """

    value: str
    verdict: str = ""
    bar: tuple[float, ...] = ()
    interval: str = ""


@dataclass(frozen=True)
class NetRow:
    """One net of the comparison; the page is about that which is `here`. `wrong` counts training
    samples, "" without; `quarter` is "" without distances.
    """

    name: str
    here: bool
    error: Cell
    z: Cell
    quarter: str
    wrong: str


@dataclass(frozen=True)
class Comparison(Section):
    """How the nets compare; `classes` counts the wrong samples of each class."""

    kind: str
    nets: tuple[NetRow, ...]
    classes: Table


@dataclass(frozen=True)
class Link:
    """An entry of the navigation: the id of a section, its title, and what it found."""

    id: str
    title: str
    verdict: str


@dataclass(frozen=True)
class Page:
    """One page; template "page.html.j2". A section that is None is not on the page.

    Splits are held-out first, none for records alone. The warning, above everything else, says what
    is wrong with the scores of a net; `absent` what was not asked for.
    """

    subtitle: str
    links: tuple[Link, ...]
    title: str = field(metadata=sent("name"))
    splits: tuple[Split, ...] = field(metadata=sent("splits"))
    warning: str = ""
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
    absent: str = ""
    about: tuple[tuple[str, str], ...] = ()
