"""Rows of an answer are those of the data set, however a loader shuffles, or refused."""

import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import netmargin as nm

X = torch.randn(18, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = (X.sum(1) > 0).long()
SET = TensorDataset(X, Y)
WEIGHTS = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -1.5, 1.0]], dtype=torch.float64)


def net():
    layer = nn.Linear(3, 2, bias=False, dtype=torch.float64)
    layer.weight.data.copy_(WEIGHTS)
    return layer


def as_dict(samples):
    x, y = map(torch.stack, zip(*samples, strict=True))
    return {"x": x, "labels": y}


LOADERS = {
    "shuffled": lambda: DataLoader(SET, 4, shuffle=True),
    "shuffled, last batch dropped": lambda: DataLoader(SET, 4, shuffle=True, drop_last=True),
    "one by one": lambda: DataLoader(
        SET, None, shuffle=True, collate_fn=lambda s: (s[0][None], s[1])
    ),
    "batches of a sampler": lambda: DataLoader(
        SET, batch_sampler=torch.utils.data.BatchSampler(RandomSampler(SET), 5, False)
    ),
    "dicts": lambda: DataLoader(SET, 4, shuffle=True, collate_fn=as_dict),
    "indices": lambda: DataLoader(SET, 4, sampler=SubsetRandomSampler(range(len(X)))),
}
BRIEF = {"temperatures": (0.1,), "iterations": 2, "progress": False}
NUMBERED = {
    "measure": lambda data: nm.measure(net(), data).q,
    "input_margins": lambda data: nm.input_margins(net(), data, progress=False).distances,
    "robustness": lambda data: nm.robustness(net(), data, attacks=False, progress=False).lower,
    "label_errors": lambda data: nm.label_errors(data).scores,
    "compare": lambda data: nm.compare([net(), net()], data, progress=False).reports[1].q,
    "maximize_margin": lambda data: [nm.maximize_margin(net(), data, **BRIEF).rows[-1]["q_min"]],
}


@pytest.mark.nightly_cases(
    "maximize_margin-batches",
    "maximize_margin-dicts",
    "maximize_margin-indices",
    "maximize_margin-one",
    "maximize_margin-shuffled,",
)
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("entry", NUMBERED)
def test_a_loader_that_shuffles_is_read_in_the_order_of_its_data_set(entry, loader):
    if (entry, loader) == ("label_errors", "dicts"):
        pytest.skip("takes no inputs by name")
    pairs = NUMBERED[entry](LOADERS[loader]()), NUMBERED[entry]((X, Y))
    found, wanted = (torch.as_tensor(numbers) for numbers in pairs)
    # The last digit may depend on how many samples a batch has.
    assert torch.allclose(found, wanted, rtol=1e-13, atol=1e-15)


class Sometimes:
    """Batches in another order at each pass, which nothing tells beforehand."""

    def __iter__(self):
        order = torch.randperm(len(X))
        return iter(zip(X[order].split(7), Y[order].split(7), strict=True))


class DataLoaderOfOnesOwn(DataLoader):
    pass


DRAWN = {
    "WeightedRandomSampler": DataLoader(
        SET, 4, sampler=WeightedRandomSampler([1.0] * len(X), len(X))
    ),
    "RandomSampler": DataLoader(SET, 4, sampler=RandomSampler(SET, replacement=True)),
    "DistributedSampler": DataLoader(SET, 4, sampler=DistributedSampler(SET, 2, 0)),
    "OfOnesOwn with a RandomSampler": DataLoaderOfOnesOwn(SET, 4, shuffle=True),
}


@pytest.mark.parametrize("drawn", DRAWN)
def test_samples_that_are_drawn_anew_have_no_rows(drawn):
    for entry in ("input_margins", "robustness", "label_errors"):
        with pytest.raises(nm.DataError, match=f"{drawn}.*shuffle=False"):
            NUMBERED[entry](DRAWN[drawn])
    assert nm.measure(net(), DRAWN[drawn]).n  # means and minima need no rows
    with pytest.raises(nm.DataError, match=f"{drawn}.*shuffle=False"):  # the nearest ones do
        nm.measure(net(), DRAWN[drawn], input_margins=True)


def test_another_order_is_seen_in_a_second_pass():
    torch.manual_seed(0)
    for entry in ("robustness", "label_errors"):
        with pytest.raises(nm.DataError, match=r"second pass over the data \(Sometimes\)"):
            NUMBERED[entry](Sometimes())

    class Wrapped:  # in order: nothing is wrong with it
        def __iter__(self):
            return iter([(X[:9], Y[:9]), (X[9:], Y[9:])])

    once = ((x, y) for x, y in Wrapped())
    for data in (Wrapped(), once):
        assert torch.equal(NUMBERED["label_errors"](data), NUMBERED["label_errors"]((X, Y)))


def test_rows_that_a_loader_leaves_out_are_said():
    def collate(batch):
        kept = [(x, y) for x, y in batch if y == 1 - Y[0]]
        return torch.utils.data.default_collate(kept)

    kept = int((1 - Y[0] == Y).sum())
    for entry in ("measure", "input_margins", "robustness", "compare"):
        with pytest.warns(UserWarning, match=f"yields {kept} rows for {len(X)} samples") as heard:
            assert (
                len(NUMBERED[entry](DataLoader(SET, 8, shuffle=True, collate_fn=collate))) == kept
            )
        assert len(heard) == 1
    with pytest.warns(UserWarning, match="yields 14 rows for 18 samples.*drop_last"):
        nm.measure(net(), DataLoaderOfOnesOwn(SET, 7, drop_last=True))


def test_what_fills_no_batch_is_measured_too():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(SET)

    sampler = torch.utils.data.BatchSampler(range(len(X)), 7, drop_last=True)
    expected = nm.measure(net(), (X, Y)).q
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loader in (
            DataLoader(SET, 7, drop_last=True),
            DataLoader(Stream(), 7, drop_last=True),
            DataLoader(SET, batch_sampler=sampler),
        ):
            assert torch.equal(nm.measure(net(), loader).q, expected)
            assert nm.compare([net(), net()], loader, progress=False).reports[0].n == len(X)


def test_a_stream_that_every_worker_reads_whole_is_told():
    class Whole(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(SET)

    class Shared(torch.utils.data.IterableDataset):
        def __iter__(self):
            own = torch.utils.data.get_worker_info()
            return iter([SET[n] for n in range(own.id, len(X), own.num_workers)])

    with pytest.warns(UserWarning, match="each of 2 seems to read the whole stream"):
        assert nm.measure(net(), DataLoader(Whole(), 7, num_workers=2)).n == 2 * len(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert nm.measure(net(), DataLoader(Shared(), 7, num_workers=2)).n == len(X)


def test_training_draws_nothing_before_it_begins_and_reads_as_often_as_it_must():
    passes = []

    class Counted(TensorDataset):
        def __getitem__(self, index):
            passes.append(index)
            return super().__getitem__(index)

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(7)
    before = generator.get_state()
    loader = DataLoader(Counted(X, Y), 40, shuffle=True, generator=generator)
    nm.train(net(), loader, until=nm.Epochs(0), progress=False)
    # A batch to analyse the net on, and a pass to measure it.
    assert len(passes) == 2 * len(X)
    assert passes[-len(X) :] == list(range(len(X)))
    # The first epoch shuffles as the first pass of a loop would, after the seed that each pass draws.
    seeds = torch.Generator()
    seeds.set_state(before)
    torch.empty((), dtype=torch.int64).random_(generator=seeds)
    assert torch.equal(generator.get_state(), seeds.get_state())


def test_a_stream_is_begun_as_often_as_it_is_read():
    """Also one that has no single samples to look at, and whose loader has a generator."""
    begun = []

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            begun.append(torch.initial_seed())
            return iter(zip(X, Y, strict=True))

    generator = torch.Generator().manual_seed(7)
    loader = DataLoader(Stream(), 6, generator=generator)
    nm.train(net(), loader, until=nm.Epochs(2), progress=False)
    # A batch to analyse the net on, a pass to measure it, and for each epoch two more.
    assert len(begun) == 1 + 1 + 2 * 2
    seeds = torch.Generator().manual_seed(7)
    for _ in range(1 + 2 * 2):  # what a pass draws
        torch.empty((), dtype=torch.int64).random_(generator=seeds)
    assert torch.equal(generator.get_state(), seeds.get_state())
