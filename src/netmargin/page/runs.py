"""The folder of a run as what a page is made of: its history, and its net and data where known."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from .. import datasets
from ..errors import ArgumentError, CheckpointError
from ..training import History, load_weights
from ..training.recipes import RECIPES

HISTORY, SUMMARY = "history.jsonl", "summary.json"
"""The files of a run that are read here."""
WEIGHTS = ("model.safetensors", "model.pt", "checkpoint.pt")
"""Files with weights, of which the newest is read; a run that goes on has the last one."""


@dataclass(frozen=True)
class RunFolder:
    """A folder that `netmargin train`, `train` with `checkpoint_dir`, or a `Watch` wrote; `made_by`
    is what the first was asked for: "factory", "bias", "data", "split" and "limit"; else empty.
    """

    path: Path
    history: History
    made_by: dict[str, Any]

    def load_into(self, model: nn.Module) -> nn.Module:
        """Load the weights of the run into a net, and return it. Raises CheckpointError."""
        files = [self.path / name for name in WEIGHTS if (self.path / name).exists()]
        if not files:
            raise CheckpointError(
                f"{self.path} holds a history, but no weights ({' or '.join(WEIGHTS)}). Put them"
                f" back, or show nm.History.load({str(self.path / HISTORY)!r}) alone."
            )
        # A run that was ended and then continued has a checkpoint newer than its final weights.
        load_weights(model, max(files, key=lambda file: file.stat().st_mtime_ns))
        return model

    def make_model(self) -> nn.Module:
        """The net of the run's recipe, with its weights. Raises ArgumentError, CheckpointError."""
        recipe = RECIPES.get(self.made_by.get("factory", ""))
        if recipe is None:
            raise ArgumentError(
                f"{self.path} does not say how its net is made. Give the net, and the folder as a"
                f" record: nm.page(model, data, records=[{str(self.path)!r}])."
            )
        return self.load_into(recipe.make_model(bias=self.made_by.get("bias", "first")))

    def load_data(self) -> tuple[Any, Any]:
        """The named data set that the run was trained on, and its test part, or None for each."""
        name = self.made_by.get("data")
        if name not in datasets.BY_NAME:
            return None, None
        split, limit = self.made_by.get("split", "train"), self.made_by.get("limit")
        data = datasets.BY_NAME[name](split, limit=limit)
        return data, datasets.BY_NAME[name]("test") if split == "train" else None


def read_run(path: Path) -> RunFolder:
    """Read the folder of a run. Raises CheckpointError for a folder that holds none."""
    if not (path / HISTORY).exists():
        raise CheckpointError(
            f"{path} is not the folder of a run: it has no {HISTORY}. Name a folder that netmargin"
            " train wrote, such as runs/demo."
        )
    made_by: dict[str, Any] = {}
    if (path / SUMMARY).exists():
        try:
            made_by = json.loads((path / SUMMARY).read_text()).get("made_by") or {}
        except (OSError, ValueError, AttributeError) as error:
            raise CheckpointError(
                f"{path / SUMMARY} cannot be read: {error}. Remove it, and give the net yourself:"
                f" nm.page(model, data, records=[{str(path)!r}])."
            ) from error
    return RunFolder(path, History.load(path / HISTORY), made_by)
