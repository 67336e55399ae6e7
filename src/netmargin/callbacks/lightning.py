"""Margins in Lightning's training loop."""

import math
from pathlib import Path
from typing import Any

from ..nets.data import Data
from .frameworks import MarginCallback, find_base, require_base

_Callback: Any = find_base(("lightning.pytorch", "pytorch_lightning"), "Callback")


class LightningMarginMonitor(MarginCallback, _Callback):
    """A callback of Lightning that watches the margins of the module that is trained.

    Each measurement is a row in history.jsonl, which `netmargin page` draws, and goes to all
    loggers of the trainer. The checkpoints of Lightning hold the rows so far:
    `trainer.fit(..., ckpt_path=...)` goes on with them.

    Parameters
    ----------
    data : pair or iterable
        The samples to watch, as `Watch` takes them.
    every, unit : int and {"epoch", "step"}, default 1 and "epoch"
        Measure after every so many epochs, or steps of the optimizer.
    net : str or None, default None
        The name of the net in the module, such as "model.backbone"; by default the module itself,
        whose forward returns scores.
    folder : str, Path or None, default None
        Folder for history.jsonl and the final weights; `name` in the trainer's own log folder by
        default.
    name : str, default "margins"
        What logged values begin with, as in "margins/normalized_margin". Two monitors need two.
    **watched
        `heldout`, the validation data to watch beside them, `loss`, `batch_size`, `class_names`
        and `scores`, as for `Watch`.

    Attributes
    ----------
    watch : Watch
        The watch, once training has begun, with its `history`.

    Raises MissingLibraryError where Lightning is not installed, ArgumentError for other arguments;
    what `Watch` raises comes when training begins.
    """

    def __init__(
        self,
        data: Data,
        *,
        every: int = 1,
        unit: str = "epoch",
        net: str | None = None,
        folder: str | Path | None = None,
        name: str = "margins",
        **watched: Any,
    ) -> None:
        require_base(_Callback, "Lightning")
        self._set_up(data, folder, every, unit, name, watched)
        self.net = net
        self._saved: dict[str, Any] | None = None
        self._reached, self._batches = 0.0, 0

    @property
    def state_key(self) -> str:
        """The key of the rows in checkpoints."""
        return f"{type(self).__qualname__}.{self.name}"

    def state_dict(self) -> dict[str, Any]:
        """The rows so far."""
        return self.watch.state_dict() if self._watch else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the rows of a checkpoint until training begins."""
        self._saved = state_dict or None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to watch, or go on where the checkpoint was saved."""
        net = pl_module.get_submodule(self.net) if self.net else pl_module
        root = Path(trainer.log_dir or trainer.default_root_dir)
        folder = Path(self.folder or root / self.name)
        saved, self._saved = self._saved, None
        self._loggers = trainer.loggers
        self._begin(net, folder, saved, trainer.global_step, trainer.callbacks)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Measure after every so many steps of the optimizer."""
        done, batches = batch_idx + 1, trainer.num_training_batches
        # The length of a stream is that of its last epoch; a longer one nears the next epoch.
        share = done / (max(self._batches, done + 1) if batches == math.inf else batches)
        if trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            self._batches, share = done, 1.0
        self._reached = trainer.current_epoch + share
        if self.unit == "step" and self._is_due(trainer.global_step):
            self._measure(self._reached, trainer.global_step)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure after every so many epochs."""
        if self.unit == "epoch" and (trainer.current_epoch + 1) % self.every == 0:
            self._measure(trainer.current_epoch + 1, trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure the net as training leaves it."""
        self._measure(self._reached, trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Write the weights that all callbacks have left, with a row of their own."""
        if self._watch:  # training has begun
            self._measure(self._reached, trainer.global_step, ended=True)

    def _log(self, values: dict[str, float], step: int) -> None:
        for logger in self._loggers:
            logger.log_metrics(values, step=step)
