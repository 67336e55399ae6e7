"""What all data sets share: the two splits, class-balanced subsets, and where files are looked
for.
"""

import hashlib
import os
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import check_choice, check_count
from ..errors import ArgumentError, DataError

Split = Literal["train", "test"]
FOLDER_VARIABLE = "NETMARGIN_DATA"


def check_split(split: str) -> str:
    """The split, or an ArgumentError that lists both."""
    return check_choice("split", split, ("train", "test"))


def select(
    X: np.ndarray, y: np.ndarray, limit: int | None, *, scale: float
) -> tuple[Tensor, Tensor]:
    """X / scale as float32 and y as int64: all samples, or the first of each class, balanced, in
    their original order.
    """
    y = y.astype(np.int64)
    limit = check_count("limit", limit, optional=True)
    if limit is not None:
        if limit > len(y):
            raise ArgumentError(
                f"limit must lie between 1 and {len(y)}, the number of samples at hand; got {limit}"
            )
        by_class = np.argsort(y, kind="stable")
        starts = np.searchsorted(y[by_class], y[by_class])
        rank_in_class = np.empty(len(y), dtype=np.int64)
        rank_in_class[by_class] = np.arange(len(y)) - starts
        chosen = np.sort(np.lexsort((y, rank_in_class))[:limit])
        X, y = X[chosen], y[chosen]
    return torch.from_numpy(X.astype(np.float32) / np.float32(scale)), torch.from_numpy(y)


def folders(name: str) -> list[Path]:
    """Where files of a data set may lie."""
    root = os.environ.get(FOLDER_VARIABLE)
    return [Path(root) / name, Path(root)] if root else []


def check_content(content: np.ndarray, expected: str, what: str) -> None:
    """Compare the SHA-256 of decoded content with that of the canonical data. Raises DataError."""
    if hashlib.sha256(content.tobytes()).hexdigest() != expected:
        raise DataError(
            f"{what} does not hold the canonical data (checksum differs). Delete it and fetch it"
            " again."
        )


def from_openml(name: str, version: int, advice: str) -> tuple[np.ndarray, np.ndarray]:
    """Download (once) from OpenML through scikit-learn, as uint8 rows and labels. Raises
    DataError.
    """
    from sklearn.datasets import fetch_openml

    try:
        data = fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise DataError(
            f"{name} is neither among local files nor to be had from OpenML ({error}). Either"
            f" {advice}, or allow this machine to reach OpenML once."
        ) from error
    return data.data.astype(np.uint8), data.target.astype(np.uint8)
