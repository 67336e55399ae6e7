"""Section 9 of a page, what is not on it: the question, its cost, and the line that adds it.

The line is one of Python, or of the command line where that has made the page.
"""

import math

from torch import nn

from ..errors import NotHomogeneousError
from ..homogeneity import analyse
from ..kkt.problem import require_homogeneity
from ..margins import normalizing_homogeneity
from ..nets.arrays import Arrays
from ..nets.data import batches
from ..nets.model import in_mode
from .facts import Facts
from .inputs import Inputs
from .measured import token_layer
from .numbers import count, ends_of_range, plural
from .payload import Missing

_EXAMINED = 100
"""Samples whose radii the line asks for: enough for curves, and minutes with all attacks."""


def list_missing(facts: Facts) -> tuple[Missing, ...]:
    """The parts that are not on the page, in the order of its sections."""
    found = [
        _missing_heldout(facts),
        _missing_distances(facts),
        _missing_labels(facts),
        _missing_radii(facts),
        _missing_certificate(facts),
        _missing_history(facts),
        _missing_comparison(facts),
    ]
    return tuple(card for card in found if card is not None)


def find_norm(model: nn.Module, samples: Arrays) -> tuple[str, str]:
    """The norm with which `certify` works on a net, or "" and why none does."""
    with in_mode(model, training=False):
        x, _ = next(batches(samples, 20, model))  # `analyse` itself looks at a few
        found = normalizing_homogeneity(analyse(model, x, statistics="fixed"))
    reason = ""
    for norm in ("global", "partial"):
        try:
            require_homogeneity(model, found, norm)
        except NotHomogeneousError as error:
            reason = reason or str(error)
        else:
            return norm, ""
    return "", reason


def _call(facts: Facts, *, heldout: str = "", records: str = "", net: str = "model") -> str:
    """A call of nm.page that adds something to this one."""
    held = heldout or "heldout=heldout" * (facts.heldout is not None)
    parts = [net, "data", held, records and f"records=[{records}]"]
    return f"nm.page({', '.join(part for part in parts if part)})"


def _missing_heldout(facts: Facts) -> Missing | None:
    """Held-out data."""
    if facts.heldout is not None or facts.training is None:
        return None
    return Missing(
        f"How often is it wrong on {facts.noun}s that it was not trained on?",
        "As for the training data: one pass over them, and one backward pass for each class.",
        facts.command.add("--heldout", "heldout.npz")
        if facts.command
        else _call(facts, heldout="heldout=(X_test, y_test)"),
    )


def _missing_distances(facts: Facts) -> Missing | None:
    """Distances to the boundary, where the scores have no gradient in the inputs."""
    split = next((split for split in facts.splits if split.no_distance), None)
    if split is None:
        return None
    return Missing(
        "How far is it from each sample to the boundary?",
        "One backward pass for each class.",
        "",
        split.no_distance,
    )


def _missing_labels(facts: Facts) -> Missing | None:
    """The search for wrong labels."""
    training = facts.training
    if facts.label_errors is not None or training is None or len(training.labels.unique()) < 2:
        return None
    question = "Which training labels may be wrong?"
    if not training.X.is_floating_point():
        reason = "Its inputs are tokens: give nm.label_errors embeddings of them, see its table."
        return Missing(question, "", "", reason)
    if facts.command:
        line = facts.command.add("--labels")
    else:
        line = f"labels = nm.label_errors(data)\n{_call(facts, records='labels')}"
    cost = (
        "No net is trained: a kernel regression, some seconds for 2,000 samples, and some minutes"
        " and 3 GB for 60,000."
    )
    return Missing(question, cost, line)


def _missing_radii(facts: Facts) -> Missing | None:
    """Proved and attacked radii."""
    if facts.radii or not facts.splits:
        return None
    split = facts.splits[0]
    question, name = "How much change can it stand?", "heldout" if facts.heldout else "data"
    if facts.model is not None and token_layer(facts.model, split.X) is not None:
        reason = "Its inputs are tokens, which cannot be changed a little: there are no radii."
        return Missing(question, "", "", reason)
    number = min(split.n, _EXAMINED)
    cost = (
        f"Our own attack on {plural(number, facts.noun)}, some hundred passes forward and back, and"
        " proofs, for some hundred units fractions of a second each"
    )
    if facts.command:
        return Missing(question, f"{cost}.", facts.command.add("--radii", str(number)))
    bounds = '; time_limit=60 bounds the proofs, effort="quick" leaves them to Lipschitz constants.'
    lines, box = [], _box(facts.inputs)
    if split.n > _EXAMINED:
        X, y = ("X_test", "y_test") if facts.heldout else ("X", "y")
        step = math.ceil(split.n / _EXAMINED)
        order = f"input_margins(model, ({X}, {y})).distances"
        if not facts.has_distances:
            order = f"measure(model, ({X}, {y})).q"
        lines = [f"few = nm.{order}.argsort()[{step // 2}::{step}]  # evenly by distance"]
        name = f"({X}[few], {y}[few])"
    lines += [f"radii = nm.robustness(model, {name}{box})", _call(facts, records="radii")]
    return Missing(question, f"{cost}{bounds}", "\n".join(lines))


def _box(inputs: Inputs | None) -> str:
    """The argument that keeps images in their range."""
    if inputs is None or inputs.noun != "image" or not inputs.high > inputs.low:
        return ""
    return f", box=({', '.join(ends_of_range(inputs.low, inputs.high))})"


def _missing_certificate(facts: Facts) -> Missing | None:
    """The certificate, and what must be done before it."""
    training = facts.training
    if facts.certificate is not None or training is None or facts.model is None:
        return None
    question = f"Which training {facts.noun}s are the support vectors?"
    norm, reason = find_norm(facts.model, Arrays(training.X, training.labels))
    if not norm:
        return Missing(question, "", "", reason)
    option = "" if norm == "global" else f', norm="{norm}"'
    line = f"certificate = nm.certify(model, data{option})\n{_call(facts, records='certificate')}"
    train = "nm.train(model, data, until=nm.Separated())"
    if facts.command:
        line = facts.command.add("--certificate")
        # A mean loss below log 2 over their number leaves no sample wrong.
        train = facts.command.train_below(math.log10(math.log(2) / training.n))
    wrong = int(training.wrong.sum())
    before = ""
    if wrong:
        are, they = (f"{facts.noun} is", "it") if wrong == 1 else (f"{facts.noun}s are", "them")
        before = (
            f"{count(wrong)} training {are} still wrong, and a certificate needs all to be right:"
            f" train until all are, or leave {they} out."
        )
        line = f"{train}\n{line}".strip()
    cost = (
        f"One gradient of all parameters for each {facts.noun} and rival near the margin, 2,000 at"
        " most (max_constraints): memory and time grow with the square of their number."
    )
    return Missing(question, cost, line, before)


def _missing_history(facts: Facts) -> Missing | None:
    """The history of training."""
    if facts.history is not None or facts.training is None:
        return None
    return Missing(
        "How far has training come?",
        "Training itself: nm.train writes a history as it goes, and goes on from this net.",
        f"history = nm.train(model, data)\n{_call(facts, records='history')}",
    )


def _missing_comparison(facts: Facts) -> Missing | None:
    """Other nets."""
    if facts.comparison is not None or facts.model is None or facts.training is None:
        return None
    return Missing(
        "How does it compare with other nets?",
        "For each net about as long as this page took without its radii and certificate.",
        facts.command.add("--compare", "runs/other")
        if facts.command
        else _call(facts, net='{"this net": model, "other net": other}'),
    )
