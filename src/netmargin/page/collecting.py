"""From what was given to all that is known: what is cheap is measured, the rest is linked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..core.progress import Progress
from ..errors import ArgumentError, DataError
from ..margins import Comparison, MarginReport, measure
from ..margins.boundaries import token_layer
from ..margins.compare import compare_reports
from ..nets.data import batches
from ..nets.equal_samples import warn_of_seen
from ..nets.labels import ClassNames, FoundNames
from ..nets.model import float64_copy
from ..nets.threads import fitting_threads, work_of
from .facts import Facts, link_radii
from .inputs import check_texts, describe_inputs
from .measured import AT_ONCE, Measured, analyse_net, measure_split, open_split
from .subject import Given
from .wrong_labels import link_labels


@dataclass(frozen=True)
class Options:
    """How inputs and classes are called, as `page` takes it, and the call that makes the page."""

    class_names: Any = None
    feature_names: Any = None
    texts: Any = None
    within: Any = None
    groups: Any = None
    progress: bool = False
    call: str = "nm.page(...)"


def collect(given: Given, data: Any, heldout: Any, options: Options) -> Facts:
    """Measure what is cheap, and join it with the records; what is of no use is refused by name."""
    if options.class_names is None and given.label_errors and given.label_errors.class_names:
        options = replace(options, class_names=FoundNames(given.label_errors.class_names))
    if given.run is not None and not given.models:
        given.models = {given.run.path.resolve().name: given.run.make_model()}
        if data is None:
            data, test = given.run.load_data()
            heldout = test if heldout is None else heldout
    if not given.models:
        return _collect_records(given, data, options)
    if data is None and heldout is None:
        raise DataError(
            "A page of a model needs labelled data: nm.page(model, data, heldout=test)."
        )
    title, model = next(iter(given.models.items()))
    opened = {
        key: open_split(argument, model, samples)
        for key, argument, samples in (("heldout", "heldout", heldout), ("training", "data", data))
        if samples is not None
    }
    # Of data alone nobody says whether the net was trained on them, unless they are those of a run.
    known = heldout is not None or given.run is not None
    titles = {"heldout": "Held-out", "training": "Training" if known else ""}
    # Callers give texts of the training data first.
    texts = check_texts(options.texts, [len(own) for _, own in opened.values()][::-1])
    if len(given.models) > 1:  # each net takes inputs by name in its own way
        given.models = {
            name: open_split("data", own, data if heldout is None else heldout)[0]
            for name, own in given.models.items()
        }
    model, arrays = next(iter(opened.values()))[0], {key: own for key, (_, own) in opened.items()}
    samples = next(iter(arrays.values()))
    seen = warn_of_seen(model, arrays["training"], samples) if len(arrays) == 2 else ""
    first, _ = next(batches(samples, AT_ONCE, model))
    nets = {title: model}
    if given.comparison is None:
        nets |= dict(list(given.models.items())[1:])
    measured: dict[str, list[Measured]] = {name: [] for name in nets}
    sizes, done = [len(own) for own in arrays.values()], 0
    with fitting_threads(work_of(model, first)), Progress(options.progress, "page") as display:
        homogeneity = analyse_net(model, samples)
        for name, net in nets.items():
            for key, own in arrays.items():
                shown = f"{titles[key].lower()} samples of {name}".strip()
                with display.part(shown, done, len(own), len(nets) * sum(sizes)):
                    split = measure_split(key, titles[key], net, own, options)
                measured[name].append(split)
                done += len(own)
    splits = tuple(measured[title])
    names = ClassNames(splits[0].report.class_names)
    # As radii have them.
    exact = ((s, measure(float64_copy(model), arrays[s.key], batch_size=AT_ONCE).q) for s in splits)
    records = _link_records(given, title, splits, names, exact)
    if len(nets) > 1:
        records["comparison"] = _compare(measured)
    X = [split.X for split in splits]
    return Facts(
        title=title,
        names=names,
        call=options.call,
        model=model,
        homogeneity=homogeneity,
        inputs=describe_inputs(
            X, options.texts, options.feature_names, token_layer(model, samples.X)
        ),
        splits=splits,
        seen=seen,
        texts=tuple(texts or ())[::-1],
        **records,
    )


def _link_records(
    given: Given,
    title: str,
    splits: tuple[Measured, ...],
    names: ClassNames,
    exact: Iterable[tuple[Measured, Tensor]] = (),
) -> dict[str, Any]:
    """The records that were given, each checked to be about the data of the page."""
    training = next((split for split in splits if split.key == "training"), None)
    certificate, labels = given.certificate, given.label_errors
    if certificate is not None and training is not None and certificate.samples != training.n:
        raise ArgumentError(
            f"The certificate is about {certificate.samples} samples, and the training data hold"
            f" {training.n}. Give the data that nm.certify was called with."
        )
    for name in given.radii:
        if given.models and name and name not in given.models:
            raise ArgumentError(
                f"records holds radii of {name!r}, and the page has {', '.join(given.models)}. Name"
                " radii like their nets."
            )
    # Those of the page's own net first, whose samples alone are linked.
    own = {name: report for name, report in given.radii.items() if name in ("", title)}
    others = {name: report for name, report in given.radii.items() if name not in own}
    exact = list(exact) if own else ()  # for which the net is copied
    return {
        "certificate": certificate,
        "radii": (
            *(link_radii(title, report, exact) for report in own.values()),
            *(link_radii(name, report) for name, report in others.items()),
        ),
        "history": given.history,
        "label_errors": labels and link_labels(labels, training, names),
        "comparison": given.comparison,
    }


def _collect_records(given: Given, data: Any, options: Options) -> Facts:
    """The facts of records alone, without a net."""
    if data is not None:
        raise ArgumentError(
            "Data without a model cannot be measured. Give the model first, and the records beside"
            " it: nm.page(model, data, records=[...])."
        )
    found: list[Any] = [given.certificate, *given.radii.values(), given.history]
    found += [given.label_errors, given.comparison]
    title = ", ".join(type(record).__name__ for record in found if record is not None)
    names = ClassNames(options.class_names)
    return Facts(title, names, options.call, **_link_records(given, title, (), names))


def _compare(nets: Mapping[str, list[Measured]]) -> Comparison:
    """The comparison of several nets by their measurements, as `compare` makes it."""
    # Distances in the outputs of embeddings are not those of other nets, with other embeddings.
    splits = [split for own in nets.values() for split in own]
    measurable = splits[0].X.is_floating_point() and not any(split.no_distance for split in splits)
    reports: list[list[MarginReport]] = [[], []]  # of the first split, and of training data beside
    for own in nets.values():
        for kept, split in zip(reports, own, strict=False):
            # Not those of held-out data beside training data.
            found = split.report.input_margins if measurable and split is own[-1] else None
            kept.append(replace(split.report, input_margins=found))
    return compare_reports(tuple(nets), *reports)
