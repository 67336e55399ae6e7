"""The two splits, class-balanced subsets, and the folders and checksums of files of data sets."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import check_count
from ..errors import ArgumentError, DataError

Split = Literal["train", "test"]
FOLDER_VARIABLE = "NETMARGIN_DATA"
"""The environment variable with the folder that holds files of data sets."""


def select(
    X: np.ndarray, y: np.ndarray, limit: int | None, *, scale: float
) -> tuple[Tensor, Tensor]:
    """Return X / scale as float32 and y as int64, of all samples or of the first of each class."""
    y = y.astype(np.int64)
    if limit is not None:
        chosen = choose_balanced(y, limit)
        X, y = X[chosen], y[chosen]
    return torch.from_numpy(X.astype(np.float32) / np.float32(scale)), torch.from_numpy(y)


def choose_balanced(labels: Any, limit: int) -> np.ndarray:
    """The rows of the first samples of each class, `limit` in all, ascending."""
    limit = check_count("limit", limit)
    if limit > (n := len(labels)):
        raise ArgumentError(
            f"limit must lie between 1 and {n}, the number of samples at hand; got {limit}"
        )
    y = np.unique(labels, return_inverse=True)[1]
    # Sorted by rank within the class first and by class second, samples come in rounds of one of
    # each class, so that any number of them is as balanced as can be.
    by_class = np.argsort(y, kind="stable")
    rank_in_class = np.empty(n, dtype=np.int64)
    rank_in_class[by_class] = np.arange(n) - np.searchsorted(y[by_class], y[by_class])
    return np.sort(np.lexsort((y, rank_in_class))[:limit])


def folders(name: str) -> list[Path]:
    """Return the folders in which files of a data set are looked for, in order."""
    root = os.environ.get(FOLDER_VARIABLE)
    return [Path(root) / name, Path(root)] if root else []


@contextmanager
def explain_unreadable(path: Path, what: str) -> Iterator[None]:
    """Raise DataError where a file cannot be read, or does not hold what it should, in a block."""
    try:
        yield
    except (OSError, EOFError, LookupError, ValueError, zlib.error) as error:
        raise DataError(f"Cannot read {path} as {what}: {error}. Fetch it again.") from error


def check_content(content: np.ndarray, expected: str, what: str) -> None:
    """Compare the SHA-256 of decoded content with that of the canonical data. Raises DataError."""
    if hashlib.sha256(content.tobytes()).hexdigest() != expected:
        raise DataError(
            f"{what} does not hold the canonical data (checksum differs). Delete it and fetch it"
            " again."
        )


def from_openml(name: str, version: int, advice: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels from OpenML as uint8; DataError with `advice` where there is no network."""
    from sklearn.datasets import fetch_openml

    try:
        # liac-arff needs no pandas, unlike scikit-learn's default parser.
        data = fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise DataError(
            f"{name} is neither among local files nor to be had from OpenML ({error}). Either"
            f" {advice}, or allow this machine to reach OpenML once."
        ) from error
    return data.data.astype(np.uint8), data.target.astype(np.uint8)


def check_sizes(**given: tuple[int, int]) -> tuple[int, ...]:
    """Return each number, given as (number, least) by its name. Raises ArgumentError."""
    return tuple(check_count(name, value, at_least=least) for name, (value, least) in given.items())


def as_pair(X: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return samples of a distribution as tensors, X as it is (float64) and y as int64."""
    return torch.from_numpy(np.ascontiguousarray(X)), torch.from_numpy(y.astype(np.int64))
