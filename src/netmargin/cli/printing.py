"""Results as JSON that every parser takes: no spaces in keys, null for what is not finite."""

import json
from pathlib import Path
from typing import Any

from ..core.progress import say
from ..core.records import json_ready


def as_json(value: Any) -> str:
    """Format a result as JSON: null for what is not finite, keys without spaces."""
    ready = json_ready(value, lambda key: str(key).replace(" + ", "+").replace(" ", "_"))
    return json.dumps(ready, indent=2, allow_nan=False)


def say_written(folder: Path, *files: str | Path) -> None:
    """Say on the standard error what was written into a folder."""
    names = ", ".join(Path(file).name for file in files)
    say(f"Written: {folder}/ ({names})")
