"""The verb `netmargin certify`: how far a saved net is from a KKT point."""

import argparse
from pathlib import Path
from typing import Any

from .. import datasets
from ..core.files import make_folder, write_atomically
from ..core.progress import say
from ..errors import CheckpointError
from ..result import Status
from ..training.checkpoint import CHECKPOINT, read_checkpoint
from . import inputs
from .printing import as_json, in_shell_words, say_written

HELP = "How far a saved net is from a max-margin point (KKT), and the samples it rests on."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a saved net, data, and which problem."""
    inputs.add_saved_net(parser)
    radius = "take gradients from within this share of ||theta||, for nets on kinks"
    out = "folder for certificate.json, the trade-off curve and, for images, the support vectors"
    inputs.add_options(
        parser,
        ("--norm", ("global", "layers", "partial"), "of which max-margin problem", "global"),
        ("--radius", inputs.positive(float), radius, 0.0),
        ("--max-constraints K", inputs.positive(int), "how many may take part", 2000),
        ("--out", inputs.folder, out),
    )
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the certificate, and write it with its figures if asked to."""
    from ..kkt import certify

    model = inputs.saved_model(options, options.weights)
    X, y = inputs.data(options, limit=options.limit)
    if options.out:
        make_folder(options.out)
    about = _describe_samples(options, X, y)
    if about:
        say(f"note: {about}")
    certificate = certify(
        model,
        (X, y),
        norm=options.norm,
        loss=options.loss,
        radius=options.radius,
        max_constraints=options.max_constraints,
    )
    result = certificate.to_dict() | {"about": about or f"the {len(X)} samples given"}
    if options.out:
        from ..figures import draw_certificate

        write_atomically(options.out / "certificate.json", as_json(result).encode())
        drawn = draw_certificate(certificate, X, y, options.out)
        say_written(options.out, "certificate.json", *drawn)
    print(as_json(result) if options.json else in_shell_words(certificate.summary()))
    if certificate.status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted; this is what was proved by then")


def _describe_samples(options: argparse.Namespace, X: Any, y: Any) -> str:
    """A sentence on the samples where they may not be all that the net was trained on, else ''."""
    from ..nets.data import open_data
    from ..nets.text_labels import encode_text_labels
    from ..training import fingerprint

    def mark(data: Any) -> str:  # as `train` does, which reads text as class numbers
        return fingerprint(open_data(encode_text_labels([data], None)[0][0]))

    # A KKT point of some samples need not be one of all: others may have a smaller margin.
    trained_on = _find_training_data(Path(options.weights))
    if trained_on == mark((X, y)):
        return ""
    samples = f"the certificate is about these {len(X)} samples only"
    if options.limit is not None:
        everything = inputs.data(options, limit=None)
        samples = f"the certificate is about {len(X)} of {len(everything[0])} samples"
        if trained_on == mark(everything):
            return (
                f"{samples}, and the net was trained on all of them: others may have smaller"
                " margins. Leave --limit out."
            )
    if options.split == "test" and inputs.data_name(options) in datasets.BY_NAME:
        return f"{samples}, which are test samples: it says nothing of the problem of training."
    if trained_on is not None:
        return f"{samples}, and the run beside the weights was trained on others."
    if options.limit is None:
        return ""
    return f"{samples}; of others that the net was trained on it says nothing."


def _find_training_data(weights: Path) -> str | None:
    """The fingerprint of the data of the run whose folder holds the weights; None for no run."""
    # The weights themselves may be a checkpoint; `netmargin train` writes both into one folder.
    for file in (weights, weights.parent / CHECKPOINT):
        try:
            data: str | None = read_checkpoint(file)["settings"].get("data")
            return data
        except CheckpointError:
            continue
    return None
