"""A watch over a net in any training loop: its margins every so often, as rows of a history."""

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from ..core.arguments import check_count, check_optional, check_path
from ..core.caller import warn_caller
from ..errors import ArgumentError, DataError
from ..losses import Loss, as_loss
from ..margins import MarginReport, measure
from ..nets.accepted_models import check_model
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, batches, open_data, open_model_and_data, takes_data
from ..nets.equal_samples import warn_of_contradictions, warn_of_seen
from ..nets.model import in_mode
from ..nets.named_scores import settle_scores
from ..nets.shared import alone, digest_of, is_first_process
from ..result import Status
from ..training import History, save_weights
from ..training.history_file import HistoryFile
from ..training.module_state import tensors_of
from ..training.randomness import Randomness
from ..training.run import analyse_and_warn

HELDOUT = ("accuracy", "log10_mean_loss")
"""Numbers of held-out samples that rows have, after "heldout_"."""
_TOLD_BY = 4096
"""Numbers of a tensor by which its changes are seen: averages change all, and 110 million weights
take longer to digest than a tenth of their samples to score on a GPU.
"""


class Watch:
    """Margins of a net while any loop trains it: one row of a history per measurement.

    A measurement is `nm.measure` on the watched data. It changes nothing: the run is the same with
    and without a watch. The first one is taken here, so that a model or data that cannot be
    measured raise at once. A later one that fails gives one warning, and training goes on. In a
    distributed run the first process measures all of the data and writes.

    Parameters
    ----------
    model : torch.nn.Module
        The net that is trained, also inside `DistributedDataParallel` or `torch.compile`.
    data : pair or iterable
        The samples to watch, as `measure` takes them: (X, y), a dict with labels, or a DataLoader;
        some 10% of the training samples tell most. They are read every time.
    heldout : pair, iterable or None, default None
        Validation data to watch beside them: rows get `heldout_accuracy` and
        `heldout_log10_mean_loss`, and pages say at which epoch they were best.
    folder : str, Path or None, default None
        Folder for history.jsonl, made where it is not there, and for the weights at the end;
        `netmargin page` reads both. Without one nothing is kept on disk.
    every : int, default 1
        Measure at every so many calls of `step`.
    state : dict or None, default None
        What `state_dict` gave when the run was saved, to go on from it: later rows of the folder
        are cut off, as the resumed run makes them again.
    loss, batch_size, class_names, scores : optional
        As for `measure`.

    Attributes
    ----------
    history : History
        The rows so far. Keys: `epoch` (calls of `step`, or where a framework says it stands),
        `step` (the same, or steps of the optimizer) and those of `MarginReport.to_dict()`.
    report : MarginReport or None
        What the last measurement found, with the margin of every sample.

    Raises
    ------
    DataError, ModelError
        The data or the model cannot be measured, or the data can be read only once, or are a part
        of the samples in each process.
    ArgumentError
        Another argument cannot be used.
    CheckpointError
        The folder cannot be written, or holds the history of another run.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> X, y = nm.datasets.digits(limit=50)
    >>> net = nm.models.mlp([64, 16, 10])
    >>> watch = nm.Watch(net, (X, y))
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> for epoch in range(3):
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.cross_entropy(net(X), y).backward()
    ...     optimizer.step()
    ...     row = watch.step()
    >>> watch.history.column("epoch"), sorted(row)[:3]
    ([0, 1, 2, 3], ['accuracy', 'epoch', 'layer_normalized_margin'])
    """

    @takes_data
    def __init__(
        self,
        model: nn.Module,
        data: Data,
        *,
        heldout: Data | None = None,
        folder: str | Path | None = None,
        every: int = 1,
        loss: Loss | str | nn.Module | None = None,
        batch_size: int = 200,
        class_names: Sequence[str] | None = None,
        state: dict[str, Any] | None = None,
        scores: Choice | None = None,
    ) -> None:
        self.model, self._data, self._heldout, self._loss = model, data, heldout, as_loss(loss)
        self.every = check_count("every", every)
        self._batch_size = check_count("batch_size", batch_size)
        self._class_names = class_names
        self.folder = check_optional(check_path, "folder", folder)
        self._calls, rows = _read_state(state)
        self.history = History(rows)
        self.report: MarginReport | None = None
        self._structure: tuple[Any, ...] = ()
        self._measured = b""
        self._warned = False
        given = [data] if heldout is None else [data, heldout]
        for samples in given:
            _require_whole_data(samples)
        if not is_first_process():
            return
        self._randomness = [Randomness(samples, check_model(model)) for samples in given]
        with self._undisturbed():
            self._open()
            if state is None:
                warn_of_contradictions(self._net, self._samples)
            if self._validation is not None:
                warn_of_seen(self._net, self._samples, self._validation)
        self._file = HistoryFile(self.folder) if self.folder else None
        if self._file:
            self._file.begin(rows)
        if state is None:
            self._record(epoch=0, step=0)
            if self.report is not None and self.report.saturated:
                warn_caller(self.report.warning)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} every={self.every} {self.history!r}>"

    def __str__(self) -> str:
        return self.history.summary()

    def step(self) -> dict[str, Any] | None:
        """Count one step of the loop, and measure at every `every`-th; return the row or None."""
        self._calls += 1
        if self._calls % self.every:
            return None
        return self.look(epoch=self._calls, step=self._calls)

    def look(self, *, epoch: float, step: int) -> dict[str, Any] | None:
        """Measure now; return the new row, or None.

        A failure gives one warning. The same step adds no second row. Both arguments say where the
        loop stands: in epochs, over which pages draw rows, and in steps.
        """
        if not is_first_process() or (self.history.rows and self.history.rows[-1]["step"] >= step):
            return None
        return self._try(epoch=epoch, step=step)

    def finish(self) -> None:
        """Say in the history that the run has ended, and write the weights beside it.

        Calls of `step` since the last row are measured first, and weights that have changed since,
        such as averages, as far as some 4,096 numbers of each tensor tell.
        """
        if not is_first_process():
            return
        if self._calls % self.every:
            self.look(epoch=self._calls, step=self._calls)
        if self._measured and self._measured != self._digest():
            self._try(**{unit: self.history.rows[-1][unit] for unit in ("epoch", "step")})
        self.history.status = Status.FINISHED
        self.history.message = f"watched {len(self.history)} times"
        if self.folder:
            save_weights(self.model, self.folder / "model.safetensors")

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint of the loop keeps, for `state` of the watch that goes on."""
        return {"calls": self._calls, "rows": copy.deepcopy(self.history.rows)}

    def _try(self, *, epoch: float, step: int) -> dict[str, Any] | None:
        """Measure; return the row, or None with one warning for all failures."""
        try:
            return self._record(epoch=epoch, step=step)
        except Exception as error:  # training must not end because it is watched
            if not self._warned:
                self._warned = True
                warn_caller(
                    f"Watching the margins failed at step {step}: {type(error).__name__}:"
                    f" {error} Training goes on, and later measurements are tried as usual."
                )
            return None

    def _undisturbed(self) -> AbstractContextManager[Any]:
        """Put all generators back after a block."""
        stack = ExitStack()
        for randomness in self._randomness:
            stack.enter_context(randomness.undisturbed())
        return stack

    def _digest(self) -> bytes:
        """A digest of the weights, of some numbers from all over each."""
        tensors = tensors_of(check_model(self.model)).values()
        return digest_of(*(t.detach().flatten()[:: t.numel() // _TOLD_BY + 1] for t in tensors))

    def _record(self, *, epoch: float, step: int) -> dict[str, Any]:
        """Measure, and add the row to the history and its file. Raises what `measure` raises."""
        # Only the first process comes here: it must not wait for the others.
        with alone(), self._undisturbed():
            if _describe_structure(self.model) != self._structure:
                self._open()
            net = settle_scores(self._net)
            how: dict[str, Any] = {"batch_size": self._batch_size, "homogeneity": self._homogeneity}
            names = self._class_names
            report = measure(net, self._samples, loss=self._loss, class_names=names, **how)
            # Up to the rounding of steps over their number.
            near, epoch = round(epoch), round(float(epoch), 6)
            epoch = near if epoch == near else epoch
            row = {"epoch": epoch, "step": int(step), **report.to_dict()}
            if self._validation is not None:
                held = measure(net, self._validation, loss=self._loss, heldout=True, **how)
                row |= {f"heldout_{name}": getattr(held, name) for name in HELDOUT}
        self.report, self._measured = report, self._digest()
        self.history.rows.append(row)
        if self._file:
            self._file.append(row)
        return row

    def _open(self) -> None:
        """Read model and data, and analyse the net on a first batch."""
        self._net, self._samples = open_model_and_data(self.model, self._data)
        self._validation = None if self._heldout is None else open_data(self._heldout, self._net)
        with in_mode(self._net, training=False):
            x, _ = next(batches(self._samples, self._batch_size, self._net))
            self._homogeneity = analyse_and_warn(self._net, x)
        self._structure = _describe_structure(self.model)


def _describe_structure(model: Any) -> tuple[Any, ...]:
    """The modules and parameters of a net by name: what its analysis rests on."""
    net = check_model(model)
    return (
        tuple((name, type(module)) for name, module in net.named_modules()),
        tuple((name, id(p), p.shape) for name, p in net.named_parameters()),
    )


def _read_state(state: Any) -> tuple[int, list[dict[str, Any]]]:
    """The calls and the rows of a saved watch. Raises ArgumentError for anything else."""
    if state is None:
        return 0, []
    rows = state.get("rows") if isinstance(state, dict) else None
    if not isinstance(rows, list) or not all(isinstance(r, dict) and "step" in r for r in rows):
        raise ArgumentError(
            "state must be what the state_dict() of a watch returned, a dict with calls and rows;"
            f" got {type(state).__name__}"
        )
    return check_count("state['calls']", state.get("calls"), at_least=0), copy.deepcopy(rows)


def _require_whole_data(data: Any) -> None:
    """Raise DataError for data of one pass, and for the share of one process."""
    if not isinstance(data, Arrays) and hasattr(data, "__next__"):
        raise DataError(
            "A watch reads its data several times, and a generator can be read only once. Pass"
            " (X, y) or a DataLoader."
        )
    if isinstance(data, DataLoader) and isinstance(data.sampler, DistributedSampler):
        raise DataError(
            "The data are a DataLoader with a DistributedSampler, which gives each process a part"
            " of the samples. Pass one without it: the first process measures all of them."
        )
