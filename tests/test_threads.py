"""Small steps run on one thread, and the caller's number of threads is as before afterwards."""

import tempfile

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn

import netmargin as nm
from netmargin.nets.threads import WORTH_SHARING, work_of
from netmargin.radii import evaluation


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def watched(net: nn.Module) -> tuple[nn.Module, list[int]]:
    """The net, and how many threads it saw in steps of training: forward passes with gradients."""
    seen: list[int] = []
    net.register_forward_pre_hook(
        lambda module, inputs: (
            seen.append(torch.get_num_threads()) if torch.is_grad_enabled() else None
        )
    )
    return net, seen


def train(net, data):
    nm.train(net, data, until=nm.Epochs(1), batch_size=None, lr=0.01, progress=False)


def ascend(net, data):
    nm.maximize_margin(net, data, temperatures=[0.1], iterations=2, progress=False)


def follow(net, data):
    nm.regularization_path(lambda: net, data, lambdas=[0.1], starts=1, iterations=1, progress=False)


def flow(net, data):
    nm.gradient_flow(net, data, time=0.1, max_evaluations=20, progress=False)


def certify(net, data):
    nm.certify(net, (data[0], net(data[0]).argmax(1)))


def attack(net, data):
    nm.robustness(net, data, effort="quick", progress=False)


def show(net, data):
    with tempfile.TemporaryDirectory() as folder:
        nm.page(net, data, out=f"{folder}/page.html")


@pytest.mark.slow_cases("train-8000")
@pytest.mark.parametrize(
    ("loop", "width", "threads"),
    [
        (train, 4, 1),
        (ascend, 4, 1),
        (follow, 4, 1),
        (flow, 4, 1),
        (certify, 4, 1),
        (attack, 4, 1),
        (show, 4, 1),
        (train, 8000, 2),
    ],
)
def test_threads_fit_the_size_of_a_step(two_threads, digits, loop, width, threads):
    torch.manual_seed(0)
    data = (digits[0][:4].float(), digits[1][:4]) if width == 4 else (digits[0].float(), digits[1])
    net, seen = watched(nm.models.mlp([64, width, 10]))
    work = work_of(net, data[0])
    assert (work >= WORTH_SHARING) == (threads == 2), work
    loop(net, data)
    assert set(seen[-3:]) == {threads}
    assert torch.get_num_threads() == 2


def test_threads_are_restored_after_an_error_and_never_raised(two_threads, digits):
    net = nm.models.mlp([64, 4, 10]).double()

    def fail(module, inputs):
        if module.training and torch.is_grad_enabled():
            raise ZeroDivisionError

    net.register_forward_pre_hook(fail)
    with pytest.raises((ZeroDivisionError, nm.NetmarginError)):
        train(net, digits)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    big, seen = watched(nm.models.mlp([64, 8000, 10]))
    train(big, (digits[0].float(), digits[1]))
    assert set(seen) == {1}


def test_blas_has_one_thread_in_the_proofs_of_radii(monkeypatch, digits):
    seen, real = [], evaluation.compute_batch

    def count() -> set[int]:
        return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}

    def compute(*arguments, **options):
        seen.append(count())
        return real(*arguments, **options)

    monkeypatch.setattr(evaluation, "compute_batch", compute)
    with threadpool_limits(2, user_api="blas"):
        nm.robustness(nm.models.mlp([64, 4, 10]), (digits[0][:4], digits[1][:4]), progress=False)
        assert count() == {2}
    assert seen == [{1}]


@pytest.mark.parametrize(
    ("net", "shape", "exact"),
    [
        (
            nn.Sequential(nn.Linear(5, 7, bias=False), nn.ReLU(), nn.Linear(7, 2, bias=False)),
            (3, 5),
            3 * (5 * 7 + 7 * 2),
        ),
        (
            nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 2)),
            (2, 2, 8, 8),
            2 * (64 * 72 + 4 + 288 + 2),
        ),
    ],
)
def test_work_is_the_parameters_times_the_samples(net, shape, exact):
    assert work_of(net, torch.randn(shape)) == exact
