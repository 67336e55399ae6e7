"""Ctrl-C: every function whose work may take long, stopped at the first, a middle and the last call of
what it is made of.

A new one is a row of `ENTRIES`; the solvers are rows of `tests/test_contracts.py`.
"""

import copy
import functools
import importlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

import netmargin as nm
from netmargin import solvers, twolayer
from netmargin.core import cone_program
from netmargin.core.interrupts import Termination, run_apart
from netmargin.papers import chizat_bach, two_homogeneity, wei_2018
from netmargin.papers.ledger.verification import verify
from netmargin.result import Status
from netmargin.solvers.simplex import Simplex
from tests.docs_blocks import ROOT

X = np.array([[2.0, 1.0], [-1.0, -2.0], [1.5, -0.2], [0.3, -2.0], [-2.0, 0.4], [0.6, 2.0]])
Y = np.array([1, -1, 1, -1, -1, 1])
"""What a net is to take at X where it interpolates."""
FEATURES = np.maximum(X @ np.array([[1.0, 0.5, -1.0, -0.3], [0.2, 1.0, -0.4, -1.0]]), 0.0) - 0.3


@functools.cache
def trained() -> nn.Module:
    """A ReLU net that is right on all samples."""
    torch.manual_seed(0)
    net = nm.models.mlp([2, 12, 1], bias="first").double()
    nm.train(net, (X, Y), until=nm.LogLossBelow(-1), progress=False)
    return net


def fresh() -> nn.Module:
    """A net that is not right on all of them."""
    torch.manual_seed(1)
    return nm.models.mlp([2, 12, 1], bias="first").double()


def log_loss(net: nn.Module, loss=None) -> float:
    return nm.measure(net, (X, Y), loss=loss).log_loss


def agree(a, b) -> bool:
    return a == pytest.approx(b, rel=1e-6, abs=1e-9)


def begins(found: list[dict], whole: list[dict]) -> bool:
    """Whether the rows of one history are the first of another."""
    return len(found) < len(whole) and all(
        agree(row[key], other[key])
        for row, other in zip(found, whole, strict=False)
        for key in ("epoch", "log_mean_loss", "log10_mean_loss", "log_loss")
        if row.get(key) is not None
    )


@dataclass(frozen=True)
class Entry:
    """A function whose work may take long.

    call : does the work anew, and returns its record and the model that was worked on, or None.
    inside : functions that it calls again and again, in which Ctrl-C arrives.
    holds : of (record, model, record of the whole work), whether what was returned is true.
    """

    call: Callable[[], tuple[Any, nn.Module | None]]
    inside: tuple[str, ...]
    holds: Callable[[Any, Any, Any], bool]


def on_model(work: Callable, make: Callable[[], nn.Module]) -> Callable:
    """Functions that change a model, or could."""

    def call():
        net = copy.deepcopy(make())
        return work(net), net

    return call


def alone(work: Callable) -> Callable:
    """Functions that take no model."""
    return lambda: (work(), None)


def loss_of_rows(loss=None) -> Callable:
    """The rows are the first ones of the whole, and the model is as at the last."""

    def holds(found, net, whole):
        same = not found.rows or agree(log_loss(net, loss), found.rows[-1]["log_loss"])
        return same and begins(found.rows, whole.rows)

    return holds


def flow_holds(found, net, whole) -> bool:
    net.load_state_dict(found.final, strict=False)
    at_end = not found.rows or agree(log_loss(net), found.rows[-1]["log_loss"])
    return at_end and begins(found.rows, whole.rows) and found.error is None


def mirror_holds(found, net, whole) -> bool:
    return begins(found.rows, whole.rows) and torch.isfinite(found.final["log_u"]).all()


def path_holds(found, _, whole) -> bool:
    known = all(
        torch.equal(found.states[value][name], whole.states[value][name])
        for value in found.states
        for name in found.states[value]
    )
    same = list(found.states) == found.column("regularization")
    return known and same and begins(found.rows, whole.rows)


def records_hold(*names: str) -> Callable:
    """The records are the first ones of the whole."""

    def holds(found, _, whole):
        count = len(found.times)
        return 0 < count < len(whole.times) and all(
            agree(getattr(found, name), getattr(whole, name)[:count]) for name in names
        )

    return holds


def runs_hold(found, net, whole) -> bool:
    at_end = agree(found.measures[0].normalized_margin(X, Y), found.margins[-1, 0])
    return at_end and records_hold("margins", "log_masses")(found, net, whole)


def projected_holds(found, _, whole) -> bool:
    """As the records of others, but for one between two times that were asked for."""
    count = np.isin(found.times, whole.times).sum()
    ends = found.measures[-1].normalized_margin(X, Y)
    return agree(found.margins[:count], whole.margins[:count]) and agree(ends, found.margins[-1])


def features_hold(found, _, whole) -> bool:
    count = len(found.margins)
    return (
        0 < count <= len(whole.margins)
        and agree(found.margins, whole.margins[:count])
        and found.optimum <= whole.proved * (1 + 1e-9)
        and found.proved >= whole.optimum * (1 - 1e-9)
        and len(found.guarantee) == count - 1
        and bool((found.guarantee <= whole.guarantee[: count - 1] + 1e-9).all())
    )


def certificate_holds(found, net, whole) -> bool:
    """The least epsilon lies in both brackets, and the multipliers attain what is said."""
    residual = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    residual = residual * (found.norm / torch.linalg.vector_norm(residual))
    for p, part in zip(
        net.parameters(), residual.split([p.numel() for p in net.parameters()]), strict=True
    ):
        p.data.copy_(part.reshape(p.shape))
    for (sample, _), weight in zip(found.constraints.tolist(), found.multipliers, strict=True):
        output = Y[sample] * net(torch.from_numpy(X[sample : sample + 1])).sum()
        gradient = torch.autograd.grad(output, list(net.parameters()))
        residual = residual - weight * torch.cat([g.reshape(-1) for g in gradient])
    attained = float(torch.linalg.vector_norm(residual))
    return (
        found.epsilon_lower <= whole.epsilon
        and whole.epsilon_lower <= found.epsilon <= found.norm
        and attained == pytest.approx(found.epsilon, rel=1e-6, abs=1e-9)
        and found.radius_epsilon <= found.epsilon
        and agree((found.alignment, found.loss_epsilon), (whole.alignment, whole.loss_epsilon))
    )


def ascent_holds(found, net, whole) -> bool:
    report = nm.measure(net, (X, Y))
    return (
        found.certificate is None
        and agree(report.normalized_margin, found.report.normalized_margin)
        and begins(found.rows, [*whole.rows, {}])
        and (
            not found.rows
            or agree(report.margins["layers"].value, max(found.column("layer_normalized_margin")))
        )
    )


def radii_hold(found, net, whole) -> bool:
    """The radius of a linear net is |w . x| / ||w||, or 0 on the wrong side."""
    w = net.weight.detach().numpy()[0]
    exact = np.maximum(Y * (X @ w), 0.0) / np.linalg.norm(w)
    tight = slice(0, found.examined)
    return (
        len(found.lower) == len(Y)
        and bool((found.lower <= exact + 1e-9).all() and (found.upper >= exact - 1e-9).all())
        and agree(found.lower[tight], exact[tight])
        and found.examined < len(Y)
    )


def linear() -> nn.Module:
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data.copy_(torch.tensor([[1.0, 0.9]]))
    return net


@functools.cache
def normalized():
    """A normalized net, and states along its flow."""
    net = two_homogeneity.NormalizedNet(two_homogeneity.NormalizedReLU(2, 40), 40)
    flow = nm.gradient_flow(net, (X, Y), time=3.0, levels=[-0.3, -0.5, -0.7], progress=False)
    assert len(flow.states) == 3
    return net, list(flow.states.values())


def follow(net, p):
    """What the features of a normalized net keep along its flow, with these probabilities."""
    states = normalized()[1]
    return two_homogeneity.early_margin(net, (X, Y), time=1e4, states=states, p=p)


def particles():
    neurons = np.random.default_rng(0).normal(size=(40, 3))
    neurons[:, 2] = np.sign(neurons[:, 2])
    return solvers.ReLUMeasure.projected(neurons, bias=False, power=2)


def certify(net):
    # Few constraints to begin with, so that the search has several rounds.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("netmargin.kkt.constraint_search._INITIAL_CONSTRAINTS", 1)
        return nm.certify(net, (X, Y), radius=1e-3, tol=1e-6)


def both_layers(**options):
    return twolayer.train_both_layers(X, Y, width=10, steps=40, records=5, progress=False)


def perturbed():
    problem = wei_2018.regularized_logistic(X, Y, regularization=0.1)
    start = np.random.default_rng(0).normal(size=(8, 4))
    options = {"sigma": 1e-3, "rate": 0.05, "steps": 40, "records": 6}
    return wei_2018.perturbed_flow(problem, start, **options)


def slackness():
    dual = np.full(len(Y), 1 / len(Y))
    return twolayer.slackness(particles(), X, Y, dual)


def interclass():
    data = nm.datasets.hypercube(20, 4)
    return nm.bounds.interclass_distance(*data, 2, starts=2, iterations=10)


QUIET = {"progress": False}
BRIEF = QUIET | {"temperatures": [0.1, 0.01], "iterations": 10, "multiplier_steps": 1}
LAMBDAS = {"lambdas": [1e-2, 1e-3, 1e-4], "starts": 2, "iterations": 5, "progress": False}
FLOW = {"time": 1.0, "progress": False}
PROXIMAL = FLOW | {"method": "proximal", "step_size": 0.2}
STEP, MINIMIZED = "flow.exact:step", "regularization.objective:minimize"
ENTRIES = {
    "train": Entry(
        on_model(
            lambda net: nm.train(net, (X, Y), until=nm.Epochs(5), batch_size=2, **QUIET), fresh
        ),
        ("training.run:descend", "training.run:Run.epoch"),
        loss_of_rows(),
    ),
    "robustness": Entry(
        on_model(
            lambda net: nm.robustness(net, (X, Y), attacks=False, batch_size=2, **QUIET), linear
        ),
        ("radii.batch_radii:certified_radii",),
        radii_hold,
    ),
    "maximize_margin": Entry(
        on_model(lambda net: nm.maximize_margin(net, (X, Y), **BRIEF), trained),
        (
            "ascent.stages:minimize",
            "ascent.smoothed_margin:SmoothedMargin.loss",
            "ascent.stages:Ascent.keep",
            "ascent.maximize_margin:certify",
        ),
        ascent_holds,
    ),
    "maximize_margin, not separated": Entry(
        on_model(lambda net: nm.maximize_margin(net, (X, Y), **BRIEF), fresh),
        ("training.run:descend",),
        lambda found, net, _: not found.rows and agree(found.report.log_loss, log_loss(net)),
    ),
    "flow.gradient_descent": Entry(
        on_model(lambda net: nm.flow.gradient_descent(net, (X, Y), steps=8, rate=0.05), trained),
        ("flow.gradient_descent:make_report",),
        loss_of_rows(nm.losses.Exponential()),
    ),
    "gradient_flow": Entry(
        on_model(lambda net: nm.gradient_flow(net, (X, Y), **FLOW), trained),
        (STEP, "flow.run:make_report"),
        flow_holds,
    ),
    "gradient_flow, proximal": Entry(
        on_model(lambda net: nm.gradient_flow(net, (X, Y), **PROXIMAL), trained),
        ("flow.proximal:minimize", "flow.run:make_report"),
        flow_holds,
    ),
    "papers.two_homogeneity.mirror_flow": Entry(
        on_model(
            lambda net: two_homogeneity.mirror_flow(net, (X, Y), time=0.2, **QUIET),
            lambda: normalized()[0],
        ),
        (STEP, "flow.run:make_report"),
        mirror_holds,
    ),
    "regularization_path": Entry(
        alone(lambda: nm.regularization_path(fresh, (X, Y), **LAMBDAS)), (MINIMIZED,), path_holds
    ),
    "twolayer.train_both_layers": Entry(
        alone(both_layers),
        ("twolayer.run_group:sample_weights", "twolayer.run_group:RunGroup._store"),
        runs_hold,
    ),
    "papers.wei_2018.perturbed_flow": Entry(
        alone(perturbed),
        ("papers.wei_2018._particles:Dynamics.advance",),
        records_hold("values", "moments"),
    ),
    "papers.chizat_bach.projected_flow": Entry(
        alone(lambda: chizat_bach.projected_flow(particles(), X, Y, times=[0, 0.2, 0.4, 0.6])),
        ("papers.chizat_bach._projected_flow:_FlowField.__call__",),
        projected_holds,
    ),
    "papers.chizat_bach.train_magnitudes": Entry(
        alone(lambda: chizat_bach.train_magnitudes(FEATURES, Y, steps=30)),
        (
            "papers.chizat_bach._fixed_features:softmax",
            "papers.ledger.directions:linprog",
        ),
        features_hold,
    ),
    "papers.chizat_bach.train_output_layer": Entry(
        alone(lambda: chizat_bach.train_output_layer(FEATURES, Y, steps=30)),
        ("papers.chizat_bach._fixed_features:softmax", "solvers.linear_search:minimize"),
        features_hold,
    ),
    "papers.two_homogeneity.early_margin": Entry(
        on_model(lambda net: follow(net, None), lambda: normalized()[0]),
        ("papers.two_homogeneity._early_margin:_load_inner",),
        lambda found, net, whole: (
            follow(net, found.p).gamma == found.gamma
            and found.kept >= follow(net, found.p).kept
            and 0 < found.C_1 <= whole.C_1
            and found.C_2 <= whole.C_2
            and found.guarantee in (None, whole.guarantee)  # None while no state was seen
        ),
    ),
    "twolayer.slackness": Entry(
        alone(slackness),
        (
            "twolayer.slackness:search_neurons",
            "twolayer.slackness:PricingBound.price_neurons",
        ),
        lambda found, _, whole: (
            not found.proved
            and found.samples == whole.samples
            and 0 < found.neurons <= whole.neurons + 1e-12
        ),
    ),
    "certify": Entry(
        on_model(certify, trained),
        (
            "kkt.constraint_search:multipliers",
            "kkt.constraints:Constraints.slopes",
            "kkt.subgradients:multipliers",
        ),
        certificate_holds,
    ),
    "tangent_svm": Entry(
        on_model(lambda net: nm.tangent_svm(net, (X, Y)), trained),
        ("solvers.kernel_engine:descend",),
        lambda found, _, whole: (
            0 <= found.margin <= whole.margin * (1 + 1e-9)
            and agree(found.dual.sum(), 1.0)
            and abs(found.cosine) <= 1
        ),
    ),
    "papers.chizat_bach.tangent_max_margin": Entry(
        alone(lambda: chizat_bach.tangent_max_margin(particles().atoms, X, Y, bias=False)),
        ("solvers.kernel_engine:descend",),
        lambda found, _, whole: (
            found.margin <= whole.upper_bound and found.upper_bound >= whole.margin
        ),
    ),
    "papers.wei_2018.narrow_max_margin": Entry(
        alone(lambda: wei_2018.narrow_max_margin(*nm.datasets.parity(2, 2), 4)),
        ("papers.wei_2018._narrow:_solve_choice",),
        lambda found, _, whole: (
            found.margin <= whole.upper_bound and found.upper_bound >= whole.margin
        ),
    ),
    "bounds.interclass_distance": Entry(
        alone(interclass),
        (
            "bounds.view_search:minimize",
            "bounds.view_search:ViewSearch._bound",
        ),
        lambda found, _, whole: (
            found.distance <= whole.upper_bound and found.upper_bound >= whole.distance
        ),
    ),
    "theory.verify": Entry(
        alone(lambda: verify(["lyu-li/euler", "lyu-li/sandwich"], trials=[0, 1, 2], jobs=1)),
        ("papers.ledger.claim:Claim.examine", "papers.ledger.claim:Trial"),
        lambda found, _, whole: (
            not found.holds
            and [e.worst for e in found] == [e.worst for e in whole][: len(found.entries)]
            and len(found.entries) + len(found.missing) == 2
        ),
    ),
}
ENDED = (Status.FINISHED, Status.OPTIMAL)


@functools.cache
def whole_work(name: str):
    """The record of the function when nothing interrupts it."""
    return ENTRIES[name].call()[0]


def call_interrupted(call: Callable, inside: str, moment: int | None) -> tuple[Any, int]:
    """What a call returns where its `moment`-th call inside is interrupted, and their number."""
    module, _, inner = inside.partition(":")
    *owners, last = inner.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(f"netmargin.{module}"))
    original, count = getattr(owner, last), 0
    with pytest.MonkeyPatch.context() as patched:

        def interrupted(*args, **options):
            nonlocal count
            count += 1
            if count == moment:
                raise KeyboardInterrupt
            return original(*args, **options)

        patched.setattr(owner, last, interrupted)
        try:
            return call(), count
        except nm.Interrupted:
            raise
        except KeyboardInterrupt:
            pytest.fail(f"Ctrl-C at call {moment} of {inside} was let through")


@pytest.mark.nightly_cases(
    "regularization_path", "gradient_flow, proximal", "maximize_margin, not separated"
)
@pytest.mark.slow_cases(
    "gradient_flow, proximal",
    "maximize_margin, not separated",
    "maximize_margin-ascent.smoothed_margin",
    "regularization_path",
    "papers.two_homogeneity.mirror_flow-flow",
    "papers.two_homogeneity.early_margin",
    "papers.chizat_bach.projected_flow",
    "maximize_margin-ascent.stages",
    "gradient_flow-flow",
    "certify-kkt.constraint_search",
    "certify-kkt.subgradients",
    "bounds.interclass_distance-bounds.view_search:minimize",
)
@pytest.mark.parametrize(
    ("name", "inside"),
    [(name, inside) for name, entry in ENTRIES.items() for inside in entry.inside],
)
def test_ctrl_c_returns_what_is_true_so_far(name, inside):
    entry, whole = ENTRIES[name], whole_work(name)
    assert whole.status in ENDED
    _, count = call_interrupted(entry.call, inside, None)
    assert count > 0
    for moment in sorted({1, (count + 1) // 2, count}):
        (found, model), _ = call_interrupted(entry.call, inside, moment)
        assert found.status is Status.INTERRUPTED, (moment, found)
        assert entry.holds(found, model, whole), (moment, found)
        assert model is None or all(torch.isfinite(p).all() for p in model.parameters())
    again, _ = entry.call()
    assert again.status is whole.status


def test_the_page_names_the_functions_that_return():
    """The second table of docs/interrupting.md, against these rows and those of the solvers."""
    page = (ROOT / "docs" / "interrupting.md").read_text()
    table = page.split("## Returns with a status")[1].split("\n## ")[0]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w.]+)`", line.split("|")[1])
    }
    rows = {name.partition(",")[0] for name in ENTRIES} | {
        f"solvers.{name}" for name in solvers.__all__ if name.islower()
    }
    assert named == rows


@pytest.mark.parametrize("fitted", [False, True])
def test_an_interrupted_fit_leaves_no_classifier(fitted):
    classifier = nm.estimators.NTKClassifier(C=None)
    if fitted:
        classifier.fit(X, Y)
    with pytest.raises(nm.Interrupted, match="not fitted"):
        call_interrupted(lambda: classifier.fit(X, Y), "solvers.kernel_engine:descend", 1)
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    assert (classifier.fit(X, Y).predict(X) == Y).all()


def test_sigterm_saves_a_run_that_has_a_folder(tmp_path):
    net, whole = fresh(), fresh()
    rows = nm.train(whole, (X, Y), until=nm.Epochs(6), progress=False).rows
    steps = iter(range(100))

    def terminate(module, inputs):
        if module.training and next(steps) == 3:
            signal.raise_signal(signal.SIGTERM)

    handle = net.register_forward_pre_hook(terminate)
    options = {"until": nm.Epochs(6), "progress": False, "checkpoint_dir": tmp_path / "run"}
    with pytest.raises(nm.Interrupted, match=r"ended by SIGTERM after epoch 3; saved in .*goes on"):
        nm.train(net, (X, Y), **options)
    handle.remove()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert nm.train(net, (X, Y), **options).rows == rows


def test_sigterm_that_came_too_early_or_too_late_is_not_lost(monkeypatch):
    sent = []
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    with Termination(True) as termination:
        os.kill(os.getpid(), signal.SIGTERM)  # nothing to interrupt yet
        with pytest.raises(KeyboardInterrupt), termination.interrupting():
            raise AssertionError("not reached")
        os.kill(os.getpid(), signal.SIGTERM)  # while the work is saved
    assert sent == []
    with Termination(True):
        os.kill(os.getpid(), signal.SIGTERM)
    assert sent == [signal.SIGTERM]
    own = signal.signal(signal.SIGTERM, lambda *_: sent.append("own"))
    try:
        with Termination(True) as termination, termination.interrupting():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, own)
    assert sent == [signal.SIGTERM, "own"]


def test_a_second_sigterm_does_not_break_what_ends_after_the_first():
    ended = []

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append("cleaned up")

    with (
        Termination(True) as termination,
        termination.interrupting(),
        pytest.raises(KeyboardInterrupt),
    ):
        work()
    assert ended == ["cleaned up"]


@pytest.mark.parametrize("at_optimum", [False, True])
def test_ctrl_c_ends_a_linear_program_and_keeps_what_it_has_reached(at_optimum, monkeypatch):
    """The signal comes while the compiled program runs, which no handler of Python ends."""
    run = Simplex.run

    def slow(program):
        if at_optimum:
            run(program)
        os.kill(os.getpid(), signal.SIGINT)
        while program.getOptionValue("time_limit")[1] > 0:  # until it is told to end
            time.sleep(1e-3)

    whole = solvers.linear_max_margin(X, Y, norm="l1")
    monkeypatch.setattr(Simplex, "run", slow)
    found = solvers.linear_max_margin(X, Y, norm="l1")
    assert found.status is Status.INTERRUPTED
    assert found.margin <= whole.margin <= whole.upper_bound <= found.upper_bound
    assert (found.margin == pytest.approx(whole.margin, rel=1e-9)) is at_optimum


def test_ctrl_c_ends_a_cone_program(monkeypatch):
    class Solver:
        def __init__(self, *_):
            self.told = threading.Event()

        def set_termination_callback(self, callback):
            def watch():
                while not callback(None):
                    time.sleep(1e-3)
                self.told.set()

            threading.Thread(target=watch, daemon=True).start()

        def solve(self):
            os.kill(os.getpid(), signal.SIGINT)
            assert self.told.wait(60)

    monkeypatch.setattr(cone_program.clarabel, "DefaultSolver", Solver)
    found = solvers.linear_max_margin(X, Y)
    assert found.status is Status.INTERRUPTED
    assert 0 <= found.margin < found.upper_bound < np.inf


def test_a_program_apart_hands_on_its_answer_and_its_errors():
    assert run_apart(lambda: 3, list) == 3
    with pytest.raises(ZeroDivisionError):
        run_apart(lambda: 1 / 0, list)
    seen = []
    worker = threading.Thread(target=lambda: seen.append(run_apart(threading.get_ident, list)))
    worker.start()
    worker.join()
    assert seen == [worker.ident]  # no signal arrives there
