"""The verb `netmargin page`: everything about a saved net or run in one file for the browser."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from .. import datasets
from ..core.files import require_writable
from ..errors import ArgumentError, NetmarginError, NotHomogeneousError
from ..nets.data import as_arrays, takes_data
from ..nets.images import as_images
from . import inputs
from .printing import as_json

if TYPE_CHECKING:  # `run` imports it late
    from ..page.runs import RunFolder

STRAY = ". Another net is given by --compare NET"
HELP = "Everything about a net or a run in the browser, in one file: images, margins, comparisons."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a saved net or a run, its factory and data where it does not name them."""
    saved = "file with a state dict, or folder that train or a watch wrote"
    parser.add_argument("saved", type=Path, metavar="NET", help=saved)
    inputs.add_model(parser)
    names = ", ".join(datasets.BY_NAME)
    data = f"training data, if not those of the run: {names}, an .npz or .csv file"
    heldout = (
        f"held-out data: {names} (the test part), an .npz or .csv file (default: the test part of"
        " the data of the run, where it has one)"
    )
    compare = "the file or folder of another net, which is compared with this one"
    record = "what train, certify, robustness, compare or label_errors returned, as save wrote it"
    radii = "also proved and attacked radii of N held-out samples: seconds for small nets"
    carried = "also the samples that carry the decision: seconds for small nets, minutes for large"
    labels = "also the training labels that may be wrong: seconds for some thousand samples"
    inputs.add_options(
        parser,
        ("--out FILE", Path, "the page (default: page.html beside the net)"),
        ("--data", str, data),
        ("--limit", inputs.positive(int), "class-balanced subset of them"),
        ("--heldout", str, heldout),
        ("--compare NET ...", Path, compare),
        ("--record FILE ...", Path, record),
        ("--radii N", inputs.positive(int), radii),
        ("--certificate", bool, carried),
        ("--labels", bool, labels),
    )
    inputs.add_class_names(parser)
    inputs.add_json(parser, "the file and its size")


def run(options: argparse.Namespace) -> None:
    """Write the page, and say where it is."""
    from ..page.runs import read_run

    paths = [options.saved, *options.compare]
    for index, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:index]]:
            raise ArgumentError(
                f"--compare {path} names a net that is on the page already. Name another one."
            )
    # A net is called like its file or folder; with the path where two of them have one name.
    names = [path.resolve().name for path in paths]
    names = [n if names.count(n) == 1 else str(p) for n, p in zip(names, paths, strict=True)]
    runs = [None if path.is_file() else read_run(path) for path in paths]
    found = runs[0]
    out = options.out or (options.saved.parent if found is None else options.saved) / "page.html"
    require_writable(out)
    models = {
        name: _make_model(options, path, run)
        for name, path, run in zip(names, paths, runs, strict=True)
    }
    data, heldout = _read_data(options, {} if found is None else found.made_by)
    if data is None and (options.certificate or options.labels):
        raise ArgumentError("--certificate and --labels are of training data: name them by --data.")
    options.out = out
    written = _write(
        models, data, heldout, class_names=options.class_names, run=found, options=options
    )
    if options.json:
        print(as_json({"path": written.path, "bytes": written.bytes}))
    else:
        print(f"Written: {written.path} ({written.bytes / 1000:,.0f} kB). Open it in a browser.")


@takes_data
def _write(
    subject: dict[str, nn.Module],
    data: Any,
    heldout: Any,
    *,
    class_names: list[str] | None,
    run: Any,
    options: argparse.Namespace,
) -> Any:
    """Write the page of nets, and of a run or None, with the records that the options ask for."""
    from ..label_errors import label_errors
    from ..page.collecting import Options
    from ..page.making import write_page

    model = next(iter(subject.values()))
    records: list[Any] = [*options.record, *([] if run is None else [str(run.path)])]
    if options.radii:
        records.append(_find_radii(model, heldout or data, options.radii))
    if options.certificate:
        records.append(_certify(model, data))
    if options.labels:
        records.append(label_errors(data, progress=sys.stderr.isatty()))
    call = shlex.join(("netmargin", *options.words))
    made_by = Options(class_names, call=call, progress=sys.stderr.isatty())
    return write_page(subject, data, heldout, out=options.out, records=records, options=made_by)


def _make_model(options: argparse.Namespace, path: Path, found: "RunFolder | None") -> nn.Module:
    """The net of a file of weights, or of a run: of its recipe, or of the factory that is named."""
    if found is None:
        return inputs.saved_model(options, path)
    if options.factory is not None:
        return found.load_into(inputs.model(options))
    own = found.made_by.get("factory")
    if own is not None and ":" in own:  # somebody's code, which is named by whoever runs it
        raise ArgumentError(
            f"{found.path} was trained with the net of {own!r}. Name it: --factory {own}"
        )
    return found.make_model()


def _find_radii(model: nn.Module, data: Any, number: int) -> Any:
    """The radii of samples evenly by distance; of images within their range of values."""
    from ..margins import input_margins, measure
    from ..page.sampling import spread_by_distance
    from ..radii import robustness

    samples = as_arrays(data)
    X, y = samples.X, samples.y
    try:
        distances = input_margins(model, (X, y), progress=False).distances
    except NetmarginError:  # the page has score margins in their place, too
        distances = measure(model, (X, y)).q
    rows = spread_by_distance(distances, number)
    box = None if as_images(X) is None else (X.min().item(), X.max().item())
    return robustness(model, (X[rows], y[rows]), box=box, progress=sys.stderr.isatty())


def _certify(model: nn.Module, data: Any) -> Any:
    """The certificate in the norm that suits the net. Raises NotHomogeneousError without any."""
    from ..kkt import certify

    try:
        return certify(model, data)
    except NotHomogeneousError as error:
        try:
            return certify(model, data, norm="partial")
        except NotHomogeneousError:
            raise error from None  # which says what blocks the whole net


def _read_data(options: argparse.Namespace, made_by: dict[str, Any]) -> tuple[Any, Any]:
    """The training data and the held-out data, or None. Raises DataError, ArgumentError."""
    same = options.data is None
    options.split = made_by.get("split", "train") if same else "train"
    options.data = options.data or made_by.get("data")
    if options.data is None and options.heldout is not None:
        return None, inputs.load_data(options.heldout, "test")
    limit = options.limit or (made_by.get("limit") if same else None)
    data = inputs.data(options, limit=limit)
    name = options.heldout
    if name is None and options.split == "train" and options.data in datasets.BY_NAME:
        name = options.data
    return data, None if name is None else inputs.load_data(name, "test")
