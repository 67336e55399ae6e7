"""Results as JSON that every parser takes: no spaces in keys, null for what is not finite."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch


def as_json(value: Any) -> str:
    """Format a result as JSON, indented by two.

    Examples
    --------
    >>> print(as_json({"groups": {"0 + 2": 1}, "gap": float("inf")}))
    {
      "groups": {
        "0+2": 1
      },
      "gap": null
    }
    """
    return json.dumps(_as_json_types(value), indent=2, allow_nan=False)


def _as_json_types(value: Any) -> Any:
    """The value in types that JSON has."""
    if isinstance(value, dict):
        return {
            str(key).replace(" + ", "+").replace(" ", "_"): _as_json_types(part)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_as_json_types(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic, torch.Tensor)):
        return _as_json_types(value.tolist())
    if isinstance(value, (Path, Fraction)):
        return str(value) if isinstance(value, Path) else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say_written(folder: Path, *files: str | Path) -> None:
    """Say on the standard error what was written into a folder."""
    names = ", ".join(Path(file).name for file in files)
    print(f"Written: {folder}/ ({names})", file=sys.stderr)
