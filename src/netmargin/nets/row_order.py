"""The order of samples: that of the data set, wherever what is found has a row for each."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ..core.caller import warn_caller
from ..errors import DataError
from .named_inputs import tensors_of

_KEPT = (
    *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "prefetch_factor"),
    *("multiprocessing_context", "persistent_workers", "generator"),
)
"""What a loader in order has of one that shuffles; the generator, which seeds its workers, too."""


def in_order(data: Any) -> Any:
    """Data in the order of their data set, to its last sample, where a DataLoader has others."""
    if type(data) is not DataLoader:  # a class of its own may read in a way of its own
        return data
    sampler, batch_size = _sampler_of(data)
    if (
        type(sampler) is RandomSampler  # that leaves no sample out, and draws none twice
        and not sampler.replacement
        and sampler.num_samples == len(sampler.data_source)
    ):
        sampler = SequentialSampler(sampler.data_source)
    elif type(sampler) is SubsetRandomSampler:
        sampler = list(sampler.indices)
    elif not getattr(data.batch_sampler, "drop_last", False):
        return data
    elif isinstance(data.dataset, IterableDataset):  # which takes no sampler
        sampler = None
    same: dict[str, Any] = {name: getattr(data, name) for name in _KEPT}
    return DataLoader(data.dataset, batch_size, sampler=sampler, **same)


def require_order(data: Any) -> None:
    """Raise DataError for a loader whose samples are drawn anew in every pass."""
    if not isinstance(data, DataLoader):
        return
    sampler, _ = _sampler_of(data)
    drawn = isinstance(sampler, (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)) or (
        isinstance(sampler, DistributedSampler) and sampler.shuffle
    )
    if drawn:
        raise DataError(
            f"The data are a {type(data).__name__} with a {type(sampler).__name__}, which draws its"
            " samples anew in every pass, and the answer has a row for each. Pass a pair (X, y), or"
            " DataLoader(loader.dataset, 100, shuffle=False, collate_fn=loader.collate_fn)."
        )


def require_same_order(data: Iterable[Any], y: Tensor, read: Callable[[], list[Tensor]]) -> None:
    """Raise DataError where another pass, which `read` makes, yields other labels than y."""
    require_order(data)
    if isinstance(data, (list, tuple, Iterator)) or (
        type(data) is DataLoader
        and not isinstance(data.dataset, IterableDataset)
        and isinstance(_sampler_of(data)[0], (SequentialSampler, list, range))
    ):
        return
    again = read()
    # Nothing: an iterable of one pass, though it does not look like one.
    if again and not torch.equal(torch.cat(again).to(y), y):
        raise DataError(
            f"A second pass over the data ({type(data).__name__}) yields other labels than the"
            " first. Read them once into a pair: X, y = map(torch.cat, zip(*data))."
        )


def require_paired_rows(data: Any) -> None:
    """Raise DataError for a frame and labels whose indices name other rows, or in another order."""
    if not isinstance(data, (tuple, list)) or not all(hasattr(part, "iloc") for part in data):
        return
    if len(data) != 2 or len(data[0]) != len(data[1]) or data[0].index.equals(data[1].index):
        return
    X, y = (part.index for part in data)
    if X.is_unique and y.is_unique and X.isin(y).all():
        raise DataError(
            "X and y have the same index in another order: sample by sample they are not of the"
            " same rows. Give (X, y.loc[X.index])."
        )
    if not (_counts(X) or _counts(y)):
        raise DataError(
            f"The index of X names other rows ({X[0]!r}, ...) than that of y ({y[0]!r}, ...). If"
            " they are the same, one by one, give (X, y.to_numpy())."
        )


def name_rows(data: Any) -> tuple[int | str, ...] | None:
    """What the index of inputs, or else of labels, calls their rows; None where it only counts."""
    for part in data if isinstance(data, (tuple, list)) else ():
        if hasattr(part, "iloc") and not _counts(part.index):
            return tuple(n if isinstance(n, int) else str(n) for n in part.index.tolist())
    return None


def _counts(index: Any) -> bool:
    """Whether an index of pandas counts rows, from 0, and so does not name them."""
    names: list[Any] = index.tolist()
    return names == list(range(len(names)))


def warn_of_dropped_rows(data: Any, read: int) -> None:
    """Warn where a loader yields other rows than its data set has, as a collate_fn may."""
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset):
        return
    sampler, batch_size = _sampler_of(data)
    if batch_size is None or not hasattr(sampler, "__len__"):  # the data set may hold batches
        return
    if read != (expected := len(sampler)):
        warn_caller(
            f"The loader yields {read:,} rows for {expected:,} samples of its data set, as where a"
            " collate_fn or drop_last leaves some out. Rows of the answer are numbered as read, and"
            " not as in the data set. Give Subset(dataset, rows) without those that are left out."
        )


def warn_of_copied_stream(data: Any, first: Any, second: Any) -> None:
    """Warn where the first two batches, of two workers, are equal: each reads the whole stream."""
    if not isinstance(data, DataLoader) or not isinstance(data.dataset, IterableDataset):
        return
    if data.num_workers > 1 and all(map(torch.equal, tensors_of(first), tensors_of(second))):
        warn_caller(
            f"The first batches of two workers are equal: each of {data.num_workers} seems to read"
            " the whole stream, so that every sample counts as often. Share the samples by"
            " torch.utils.data.get_worker_info() in __iter__, or give num_workers=0."
        )


def _sampler_of(loader: DataLoader[Any]) -> tuple[Any, int | None]:
    """What chooses the samples (or batches) of a loader, and how many make a batch, or None."""
    batches = loader.batch_sampler
    if batches is None:
        return loader.sampler, None
    if type(batches) is BatchSampler:
        return batches.sampler, batches.batch_size
    return batches, None
