"""`import netmargin` and its first use against `import torch`, in fresh interpreters."""

import subprocess
import sys

from .runner import compare


def main() -> None:
    """Compare whole processes, each of which begins without any module."""

    def importing(module: str):
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    compare(
        "import netmargin",
        importing("netmargin; netmargin.train"),
        importing("torch"),
        "import torch",
        repeats=7,
        target=1.3,
    )
