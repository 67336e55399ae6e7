"""Margins in the training loop of Hugging Face's transformers."""

import sys
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..nets.data import Data
from ..nets.shared import is_first_process
from ..training import History
from ..training.checkpoint import HISTORY
from .frameworks import MarginCallback, find_base, require_base

_Callback: Any = find_base(("transformers",), "TrainerCallback")


class TransformersMarginCallback(MarginCallback, _Callback):
    """A callback of Hugging Face's `Trainer` that watches the margins of its model.

    Each measurement is a row in history.jsonl, which `netmargin page` draws, and goes to
    `trainer.log`, and so to all that the trainer reports to. With `resume_from_checkpoint` the
    history goes on: rows beyond the checkpoint are cut off, as the run makes them again.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer: `trainer.add_callback(TransformersMarginCallback(trainer, data))`.
    data : pair, dict or iterable
        The samples to watch, as `Watch` takes them, such as a dict with `input_ids`,
        `attention_mask` and `labels`, or a DataLoader of such dicts.
    folder : str, Path or None, default None
        Folder for history.jsonl and the final weights; `name` in the trainer's `output_dir` by
        default.
    every, unit, name, **watched
        As for `LightningMarginMonitor`, and so are the attribute `watch` and what is raised.
    """

    def __init__(
        self,
        trainer: Any,
        data: Data,
        *,
        every: int = 1,
        unit: str = "epoch",
        folder: str | Path | None = None,
        name: str = "margins",
        **watched: Any,
    ) -> None:
        require_base(_Callback, "transformers")
        if not hasattr(trainer, "callback_handler"):
            raise ArgumentError(
                f"trainer must be the transformers.Trainer; got {type(trainer).__name__}. Write"
                " trainer.add_callback(TransformersMarginCallback(trainer, data))."
            )
        self._set_up(data, folder, every, unit, name, watched)
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Begin to watch, or go on where the checkpoint was saved."""
        folder = Path(self.folder or Path(args.output_dir) / self.name)
        saved = None
        if state.global_step:  # resumed
            file = folder / HISTORY
            rows = History.load(file).rows if is_first_process() and file.exists() else []
            saved = {"calls": 0, "rows": [r for r in rows if r["step"] <= state.global_step]}
        self._epochs = round(state.epoch or 0)
        others = self.trainer.callback_handler.callbacks
        self._begin(self.trainer.model, folder, saved, state.global_step, others)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure after every so many steps of the optimizer."""
        if self.unit == "step" and self._is_due(state.global_step):
            self._measure(state.epoch, state.global_step)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure after every so many epochs."""
        # The trainer takes all its steps for one epoch where it does not know the length of data.
        self._epochs += 1
        if self.unit == "epoch" and self._epochs % self.every == 0:
            stream = state.num_train_epochs == sys.maxsize
            self._measure(self._epochs if stream else state.epoch, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure the net as it is at the end, and write its weights beside the history."""
        self._measure(state.epoch, state.global_step, ended=True)

    def _log(self, values: dict[str, float], step: int) -> None:
        self.trainer.log(values)
