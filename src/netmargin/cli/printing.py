"""What the command line prints: JSON that every parser takes, and text in the words of a shell."""

import json
import re
from pathlib import Path
from typing import Any

from ..core.progress import say
from ..core.records import json_ready

_WORDS = {
    r"nm\.label_errors\([^()]*\)": "netmargin labels",
    r"nm\.(page|compare|measure|robustness)\([^()]*\)": r"netmargin \1",
    r"summary\(full=True\)": "--full",
    r"see disagreements\(\)": "netmargin page --compare shows them",
    r"\binput_margins=True": "--input-margins",
    r"\bheldout=True": "--heldout",
    r"\bclass_names\b": "--class-names",
    r'\b(effort|norm)="(\w+)"': r"--\1 \2",
}
"""What the library's advice calls functions and options, and how a shell does."""


def in_shell_words(text: str) -> str:
    """A text of the library with functions and options as a shell calls them."""
    for pattern, words in _WORDS.items():
        text = re.sub(pattern, words, text)
    return text


def as_json(value: Any) -> str:
    """Format a result as JSON: null for what is not finite, keys without spaces."""
    ready = json_ready(value, lambda key: str(key).replace(" + ", "+").replace(" ", "_"))
    return json.dumps(ready, indent=2, allow_nan=False)


def say_written(folder: Path, *files: str | Path) -> None:
    """Say on the standard error what was written into a folder."""
    names = ", ".join(Path(file).name for file in files)
    say(f"Written: {folder}/ ({names})")
