"""Histories of training as the small tables of notebooks."""

from ..core.notebook_tables import Cell, Certainty, NotebookTable, describe_in_notebook, number
from .history import History

_SHOWN = 6
"""Epochs of the table, evenly over the run: the last one is among them."""
_COLUMNS = {
    "log10_mean_loss": "log10 of the mean loss",
    "accuracy": "right",
    "normalized_margin": "normalized margin",
}


@describe_in_notebook.register
def describe_history(found: History) -> NotebookTable:
    """Some epochs, evenly over the run, and how it ended."""
    last = len(found.rows) - 1
    chosen = sorted({round(last * k / (_SHOWN - 1)) for k in range(_SHOWN)} if found.rows else ())
    columns = {key: name for key, name in _COLUMNS.items() if last >= 0 and key in found.rows[0]}
    if last >= 0 and "temperature" in found.rows[0]:  # an ascent, whose rows have a norm of its own
        del columns["log10_mean_loss"]
    rows = [
        (
            str(found.rows[index].get("epoch", index)),
            *(number(found.rows[index].get(key)) for key in columns),
        )
        for index in chosen
    ]
    heads: list[Cell] = ["epoch"] * bool(rows)
    heads += [(name, Certainty.MEASURED) for name in columns.values()]
    return NotebookTable("Training", rows, heads, [found.message or str(found.status)])
