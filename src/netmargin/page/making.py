"""The function `page`: everything about a net in one file for the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from torch import nn

from ..core.arguments import check_flag, check_path
from ..core.files import require_writable, write_atomically
from ..core.records import Shown
from ..core.saved_records import Record
from ..margins import Groups
from ..nets.data import Choice, Data, takes_data
from .about import list_terms
from .change import write_change
from .classes import write_classes
from .collecting import Options, collect
from .comparing import write_comparison
from .facts import Facts
from .navigation import describe_net, list_absent, list_links
from .nearest import make_splits, write_nearest
from .overview import write_overview
from .payload import Page
from .progress import write_training
from .render import render
from .scaling import write_scaling
from .subject import read_given
from .support import write_support
from .wrong_labels import write_wrong_labels

_FRAME_HEIGHT = 700
"""Pixels of a page inside of a notebook: its first screen."""


@dataclass(frozen=True)
class PageFile(Shown):
    """A page that was written, as `page` returns it; a notebook shows it inline."""

    path: Path  #: The file
    title: str  #: What the page is about
    bytes: int  #: The size of the file

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which holds all of it."""
        # Without the file's own origin: the page can neither read nor reach anything else.
        text = escape(self.path.read_text(encoding="utf-8"), quote=True)
        return (
            f'<iframe srcdoc="{text}" title="{escape(self.title, quote=True)}"'
            f' style="width:100%;height:{_FRAME_HEIGHT}px;border:1px solid #858e9a"'
            ' sandbox="allow-scripts allow-downloads allow-popups"></iframe>'
        )


@takes_data
def page(
    subject: nn.Module | Mapping[str, nn.Module] | Sequence[nn.Module] | str | Path | Record,
    data: Data | None = None,
    heldout: Data | None = None,
    *,
    out: str | Path = "page.html",
    records: Any = (),
    class_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    texts: Sequence[str] | Sequence[Sequence[str]] | None = None,
    within: int | None = None,
    groups: Groups | None = None,
    scores: Choice | None = None,
    progress: bool = True,
) -> PageFile:
    """Write a file to open in a browser: all that is known of one net, or of several side by side.

    See how often the net is right, how close a call that is, the samples nearest to the boundary,
    and which classes are close to each other; with records also what docs/page.md lists. What is
    not given and not cheap is not computed: the last line of the page says what adds it. Words tell
    what is proved, measured and estimated. The file loads nothing from a network.

    Parameters
    ----------
    subject : nn.Module, dict or list of them, path, or record
        The net; several by name, of which the page is about the first and compares it with the
        others; the folder of a run of `netmargin train`; or a record alone.
    data : tuple (X, y), iterable of (x, y), or None, default None
        The training data, as for `measure`, but not of one pass. None for the folder of a run on a
        named data set, and for a record alone.
    heldout : tuple (X, y), iterable of (x, y), or None, default None
        Labelled data that the net was not trained on.
    out : str or Path, default "page.html"
        The file to write; folders are made as needed, an older file is replaced.
    records : record, or list of them, default ()
        What is known already: what `certify` (of the training data), `robustness` (of any samples
        of the page; of several nets a dict by name), `train`, `compare` and `label_errors` (of the
        training data) returned, files of such, or the folder or the history.jsonl of a run,
        whatever loop trained it.
    class_names : sequence of str or None, default None
        Names of the classes in the order of the class numbers.
    feature_names : sequence of str or None, default None
        Names of the columns, where the inputs are a table; with them inputs are never images.
    texts : sequence of str, pair of them, or None, default None
        The texts of the samples, where the inputs are tokens: those of `data`, or with held-out
        data the pair of those of `data` and of `heldout`.
    within, groups, scores : optional
        Which answers are nearly right, and which output of a net is its scores, as for `measure`.
    progress : bool, default True
        Whether to show batches and time left as they come.

    Returns
    -------
    PageFile
        The path of the file; in a notebook it shows the page.

    Raises
    ------
    DataError
        If data have no labels or can be read only once, or cannot be used, as in `measure`.
    ModelError, NonFiniteOutputError
        If the model, or what it returns, cannot be used, as in `measure`.
    ArgumentError
        If there is nothing to show, a record is about other data, or another argument cannot be
        used.
    CheckpointError
        If the file cannot be written, or the folder of a run holds no weights.

    Notes
    -----
    Images are inputs of shape (N, channels, height, width) or (N, height, width), or vectors of
    square length without negative values; signals, drawn as curves, of shape (N, channels, length)
    or (N, length) with neighbours that are alike, 16 numbers or longer.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> net = nm.models.mlp([64, 32, 10])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = nm.page(net, nm.datasets.digits(limit=100), out=f"{folder}/digits.html")
    ...     found.path.name, found.title, 500_000 < found.bytes < 1_500_000
    ('digits.html', 'Sequential', True)

    Beyond the papers.
    """
    shown = check_flag("progress", progress)
    options = Options(class_names, feature_names, texts, within, groups, progress=shown)
    return write_page(subject, data, heldout, out=out, records=records, options=options)


def write_page(
    subject: Any,
    data: Data | None,
    heldout: Data | None,
    *,
    out: str | Path,
    records: Any,
    options: Options,
) -> PageFile:
    """Write a page to a file, as `page` and the command line do. Raises what `page` raises."""
    file = check_path("out", out)
    require_writable(file)
    made = make_page(collect(read_given(subject, records), data, heldout, options))
    content = render(made).encode(errors="backslashreplace")  # names of files need not be UTF-8
    write_atomically(file, content)
    return PageFile(file, made.title, len(content))


def make_page(facts: Facts) -> Page:
    """Fill every section that there are facts for."""
    splits, images, shown = make_splits(facts)
    sections: dict[str, Any] = {
        "labels": write_wrong_labels(facts),
        "change": write_change(facts),
        "support": write_support(facts),
        "training": write_training(facts),
        "scaling": write_scaling(facts),
        "comparison": write_comparison(facts),
    }
    if splits:
        sections |= {
            "overview": write_overview(facts),
            "nearest": write_nearest(facts),
            "classes": write_classes(facts),
        }
    return Page(
        title=facts.title,
        subtitle=describe_net(facts),
        links=list_links(facts, sections),
        splits=splits,
        warning=facts.warning,
        images=images,
        absent=list_absent(facts, sections),
        about=list_terms(facts, shown, sections["training"]),
        **sections,
    )
