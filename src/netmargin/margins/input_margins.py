"""Input margins: the first-order distance of every sample to the decision boundary of any net."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..core.arguments import check_count, check_flag, check_instance, check_optional
from ..core.records import Certainty, Row, Table, json_ready, number, plural
from ..core.saved_records import Record
from ..errors import ArgumentError
from ..nets.data import Choice, Data, open_model_and_data, takes_data
from ..nets.labels import ClassNames, name_labels
from ..nets.model import require_finite
from ..nets.row_order import require_order
from .boundaries import Boundaries, differentiable_scores, find_boundaries, token_layer
from .quantiles import LEVEL_NAMES, LEVELS, class_table, quantiles
from .scored_batches import ScoredBatch, pass_over

_SHOWN_NEAREST = 3
"""Samples that a line names: as many as it holds."""


@dataclass(frozen=True)
class InputMargins(Record):
    """First-order distances of samples to the decision boundary, of `input_margins`."""

    #: (n,), float64, on the CPU: d_n = min over j of s_nj / ||grad_x s_nj||, in the units of the
    #: inputs; negative for a misclassified sample, infinite where the scores do not move with the
    #: input
    distances: Tensor
    rivals: Tensor  #: (n,), int64: The class j of that minimum; 0 or 1 for a net with one output
    #: (n,), float64: min over j of s_nj / ||x_n * grad_x s_nj|| with entries multiplied: the
    #: distance in relative changes of the entries, which has no unit
    relative: Tensor
    q: Tensor  #: Score margins, as in `MarginReport`, like `labels` and `class_names`
    labels: Tensor
    #: (n,), float64: Infinite where all classes were looked at. Otherwise d_n is exact unless the
    #: gradient of a class that was left out is more than `headroom` times the largest that was
    #: seen; 0 where nothing is known.
    headroom: Tensor
    class_names: tuple[str, ...] | None = None
    #: Why these are no distances of the net, as for `MarginReport`, or because gradients in the
    #: inputs are masked or 0; "" otherwise
    warning: str = ""
    layer: str = ""  #: The module in whose output distances are, by its name; "" for the inputs

    def __repr__(self) -> str:
        shown = zip(LEVEL_NAMES, self.quantiles(), strict=True)
        values = " ".join(f"{name}={value:.6g}" for name, value in shown)
        accuracy = (self.q > 0).double().mean().item()
        return f"<{type(self).__name__} n={self.n} accuracy={accuracy:.6g} {values}>"

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.distances)

    def quantiles(self, levels: Sequence[float] = LEVELS) -> tuple[float, ...]:
        """Return the distances below which these shares of the samples lie."""
        return quantiles(self.distances, levels)

    def by_class(self) -> Any:
        """Return a pandas DataFrame with one row per class: n and quantiles of the distances."""
        return class_table(self.distances, self.labels, self.class_names)

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per sample; classes by name, if given."""
        import pandas

        columns = {
            name: getattr(self, name).numpy()
            for name in ("labels", "q", "distances", "relative", "rivals", "headroom")
        }
        for name in ("labels", "rivals"):
            columns[name] = name_labels(getattr(self, name), self.class_names)
        return pandas.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return sizes and quantiles as JSON-ready values; infinite numbers are None."""
        names = LEVEL_NAMES
        return {
            "n": self.n,
            "distances": json_ready(dict(zip(names, quantiles(self.distances), strict=True))),
            "relative": json_ready(dict(zip(names, quantiles(self.relative), strict=True))),
            "least_headroom": json_ready(quantiles(self.headroom)[0]),
        }

    def _table(self) -> Table:
        """Quantiles of the distances."""
        wrong = f"{int((self.q <= 0).sum()):,} of {self.n:,}"
        rows: list[Row] = [("wrong", (wrong, Certainty.MEASURED)), *self.nearest]
        for kind, values in (("distance", self.distances), ("relative distance", self.relative)):
            rows += [
                (f"{kind}, {name} quantile", (number(value), Certainty.ESTIMATED))
                for name, value in zip(LEVEL_NAMES, quantiles(values), strict=True)
            ]
        where = f"output of {self.layer!r}" if self.layer else "inputs"
        rows.append(
            f"Distances are Euclidean lengths, in the units of the {where}; relative distances are"
            " shares by which all its entries change at once."
        )
        title, notes = f"Distances of {plural(self.n, 'sample')}", filter(None, [self.left_out])
        return Table(title, rows, notes=[*notes], warning=self.warning)

    @property
    def nearest(self) -> list[Row]:
        """A row on the right samples that are nearest to a wrong answer, if any is right."""
        right = (self.q > 0).nonzero()[:, 0]
        rows = right[self.distances[right].argsort(stable=True)][:_SHOWN_NEAREST].tolist()
        shown = ", ".join(f"{row} ({number(self.distances[row].item())})" for row in rows)
        return [("nearest right samples", (shown, Certainty.ESTIMATED))] * bool(rows)

    @property
    def left_out(self) -> str:
        """A sentence on classes that were not looked at, or ""."""
        if not torch.isfinite(self.headroom).any():
            return ""
        return (
            "Only the rivals with the highest scores were looked at: exact for 90% of the samples"
            f" unless gradients of others are {quantiles(self.headroom)[0]:.3g} times those seen."
        )

    @classmethod
    def joined(
        cls, parts: Sequence[Boundaries], q: Tensor, labels: Tensor, warning: str
    ) -> "InputMargins":
        """Join what was found for the batches of a data set; infinite distances are warned of."""
        distances, rivals, relative, headroom = map(torch.cat, zip(*parts, strict=True))
        if flat := int(distances.isinf().sum()):
            warning += (
                f"{' ' * bool(warning)}{flat:,} of {len(q):,} distances are infinite: the gradient"
                " of the scores is 0 there, as rounding, sign, clamping and dead units make it."
            )
        return cls(distances, rivals, relative, q, labels, headroom, warning=warning)


@takes_data
def input_margins(
    model: nn.Module,
    data: Data,
    *,
    layer: nn.Module | str | None = None,
    rivals: int | None = None,
    progress: bool = True,
    batch_size: int = 100,
    class_names: Sequence[str] | None = None,
    scores: Choice | None = None,
) -> InputMargins:
    """Measure how far each input is from the decision boundary, to first order.

    The distance is d_n = min over classes j of s_nj / ||grad_x s_nj||_2 with the score gaps s_nj =
    Phi_{y_n}(x_n) - Phi_j(x_n): where the boundary would be if the scores were linear around x_n.
    It needs no homogeneity, and does not change when the scores are rescaled. It takes a backward
    pass per rival class and batch, in evaluation mode; the model is not changed. It is no bound:
    `robustness` gives bounds from below and above.

    Parameters
    ----------
    model : nn.Module
        A net that returns scores of shape (N,), (N, 1) (binary) or (N, C), by operations that torch
        can differentiate.
    data : tuple (X, y), or iterable of (x, y)
        Samples and labels, as for `measure`; streamed batch by batch.
    layer : nn.Module, str or None, default None
        A module of the model, or its name, in whose output distances are measured in place of the
        input. For token numbers, which have no gradient, it is the first embedding where none is
        given.
    rivals : int or None, default None
        How many classes to look at per sample, those with the largest scores first; None is all of
        up to 20 classes, and 10 of more, for which d_n can only be too large: see `headroom`.
    progress : bool, default True
        Whether to show batches and time left as they come.
    batch_size, class_names, scores : optional
        As for `measure`.

    Returns
    -------
    InputMargins
        Distances, relative distances and rival classes, each of shape (n,), float64 or int64.

    Raises
    ------
    DataError
        The inputs are whole numbers and there is no layer for them, or the data cannot be used, as
        in `measure`.
    ModelError, NonFiniteOutputError
        The scores have no gradient in the inputs, or one that is not finite, or the model cannot be
        used, as in `measure`.
    ArgumentError
        The layer is no module of the model, or does not run once and return one row per sample;
        another argument cannot be used.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> found = nm.input_margins(net, ([[1.0, 0.0], [0.0, -2.0]], [1, -1]), progress=False)
    >>> [round(d, 6) for d in found.distances.tolist()]
    [0.6, 1.6]

    Source: Elsayed et al. 2018, (3); Jiang et al. 2019. The relative distance and the headroom:
    beyond the papers.
    """
    model, samples = open_model_and_data(model, data)
    what = "a module of the model, such as model.embedding, its name"
    check_optional(check_instance, "layer", layer, (nn.Module, str), what)
    place = _find_layer(model, layer) if isinstance(layer, str) else layer
    require_order(samples)
    rivals, names = check_optional(check_count, "rivals", rivals), ClassNames(class_names)
    batch_size, progress = check_count("batch_size", batch_size), check_flag("progress", progress)

    def score(x: Any) -> tuple[Tensor, Tensor]:
        nonlocal place
        if place is None and (tokens := token_layer(model, x)):
            place = tokens[1]
        return differentiable_scores(model, x, place)

    def compute(batch: ScoredBatch) -> tuple[Boundaries, Tensor, Tensor]:
        near = find_boundaries(batch.point, batch.outputs, batch.targets, rivals=rivals)
        return near, batch.hard, batch.classes

    parts, _, doubt = pass_over(
        model,
        samples,
        batch_size,
        names,
        score=score,
        begin=lambda *_: require_finite(model),
        compute=compute,
        slopes=layer is None,
        progress="input margins" if progress else "",
    )
    boundaries, q, classes = zip(*parts, strict=True)
    found = InputMargins.joined(boundaries, torch.cat(q), torch.cat(classes), doubt.text)
    called = next((name for name, part in model.named_modules() if part is place), "")
    return replace(found, class_names=names.names, layer=called)


def _find_layer(model: nn.Module, name: str) -> nn.Module:
    """The module of a net that has a name. Raises ArgumentError where there is none."""
    parts = dict(model.named_modules())
    if name not in parts:
        raise ArgumentError(
            f"layer={name!r} is no module of {type(model).__name__}; its modules are"
            f" {', '.join(list(parts)[1:7])}, ..."
        )
    return parts[name]
