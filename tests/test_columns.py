"""The one loop of column generation: how it ends, and what is left wherever Ctrl-C arrives."""

import sys
import time
from collections import Counter
from pathlib import Path

import highspy
import numpy as np
import pytest

from netmargin.result import Bracket, Status
from netmargin.solvers import f1_max_margin, min_norm_interpolation
from netmargin.solvers.columns import engine
from netmargin.solvers.columns.engine import Patience, generate_columns
from tests.test_contracts import ROWS, TOL, X, Y, solved

NEURONS = np.eye(2)


class Scripted:
    """A problem whose bracket closes with its third proof; `happens` says by step what comes."""

    deadline, tol, exact, zero = np.inf, 1e-6, True, None

    def __init__(self, **happens):
        self.happens, self.calls, self.proofs = happens, [], 0

    def step(self, name, answer=None):
        self.calls.append(name)
        done = self.happens.get(name)
        if isinstance(done, type):
            raise done
        return answer if done is None else done()

    @property
    def bracket(self):
        return Bracket(1.0 - 0.1 * max(3 - self.proofs, 0), 1.0)

    @property
    def searched_bracket(self):
        return Bracket(self.bracket.lower, 1.0)

    def start(self):
        return self.step("start", NEURONS)

    def solve(self, neurons):
        self.step("solve")

    def search(self):
        return self.step("search", NEURONS)

    def proof_is_due(self):
        return self.step("proof_is_due", True)

    def prove(self, report):
        self.proofs += 1
        report(self.bracket)
        return self.step("prove", NEURONS)

    def select(self, found):
        assert found.shape == (4, 2)  # those of the search and those of the proof
        self.calls.append("select")
        return None if self.happens.get("select") == "nothing" else found

    def finish(self, *, early):
        self.step("finish early" if early else "finish")


def run(problem):
    return generate_columns(problem, progress=False, title="", in_units=lambda bracket: bracket)


def interrupt_again():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("happens", "status", "rounds"),
    [
        ({}, Status.OPTIMAL, 3),
        ({"select": "nothing"}, Status.STALLED, 1),
        ({"start": KeyboardInterrupt}, Status.INTERRUPTED, 0),
        ({"solve": KeyboardInterrupt}, Status.INTERRUPTED, 1),
        ({"search": KeyboardInterrupt}, Status.INTERRUPTED, 1),
        ({"prove": KeyboardInterrupt}, Status.INTERRUPTED, 1),
        ({"solve": TimeoutError}, Status.TIME_LIMIT, 1),
        # What follows the end may be cut short as well, which changes no proof.
        ({"finish": KeyboardInterrupt}, Status.INTERRUPTED, 3),
        ({"finish": TimeoutError}, Status.OPTIMAL, 3),
        ({"solve": TimeoutError, "finish early": KeyboardInterrupt}, Status.INTERRUPTED, 1),
        ({"solve": KeyboardInterrupt, "finish early": interrupt_again}, Status.INTERRUPTED, 1),
    ],
)
def test_the_loop_ends_as_its_steps_say(happens, status, rounds):
    problem = Scripted(**happens)
    ending = run(problem)
    assert (ending.status, ending.rounds) == (status, rounds)
    # Every end, early or not, has one last touch, and knows which of the two it is.
    stopped = [name for name in happens if name not in ("select", "finish", "finish early")]
    assert problem.calls[-1] == ("finish early" if stopped else "finish")


def test_a_search_that_sees_all_neurons_stalls_and_another_is_locally_optimal():
    problem = Scripted(select="nothing")
    problem.exact = False
    assert run(problem).status is Status.LOCALLY_OPTIMAL


@pytest.mark.parametrize(("late", "rounds"), [("solve", 1), ("select", 1)])
def test_the_deadline_is_looked_at_after_a_round_and_at_the_end(late, rounds):
    problem = Scripted(select="nothing")

    def be_late():
        problem.deadline = time.monotonic() - 1.0

    if late == "solve":
        problem.happens["solve"] = be_late
    else:
        problem.happens["prove"] = lambda: (be_late(), NEURONS)[1]
    ending = run(problem)
    assert (ending.status, ending.rounds) == (Status.TIME_LIMIT, rounds)
    assert ("search" in problem.calls) == (late == "select")


def test_patience_counts_rounds_without_progress():
    patience = Patience(2, 0.1)
    counts = []
    for value in (1.0, 0.95, 0.84, 0.83, 0.8, 0.5):
        patience.count_round(value)
        counts.append((patience.idle, patience.is_over))
    assert counts == [(0, False), (1, False), (0, False), (1, False), (2, True), (0, False)]
    patience.reset()
    patience.count_round(7.0)
    assert patience.idle == 0
    patience = Patience(2, 0.1)
    for value in (1.0, -0.5, -0.5, -0.5):  # a gap below 0 by rounding is no progress for ever
        patience.count_round(value)
    assert patience.is_over


PACKAGE = str(Path(engine.__file__).parent)
AFTER_THE_SEARCH = {"extract_net", "columns", "norm", "local_gap", "generate_columns", "t"} | {
    "log_mean_loss", "function",
}  # fmt: skip


class Interrupt:
    """Ctrl-C at the `at`-th line of `function` of the package `columns`; all lines are counted."""

    def __init__(self, function: str = "", at: int = 0):
        self.function, self.at, self.lines, self.searching = function, at, Counter(), False

    def trace(self, frame, event, arg):
        name, file = frame.f_code.co_qualname, frame.f_code.co_filename
        if not file.startswith(PACKAGE) or frame.f_code.co_name in AFTER_THE_SEARCH:
            return None
        self.searching |= name.endswith("Problem.start")
        if event == "line" and self.searching:
            self.lines[name] += 1
            if name == self.function and self.lines[name] == self.at:
                raise KeyboardInterrupt
        return self.trace

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)


BY_COLUMNS = ["f1_max_margin", "f1_max_margin, squared", "f1_soft_margin", "f1_logistic"]
BY_COLUMNS += ["min_norm_interpolation, l1"]


@pytest.mark.slow
@pytest.mark.nightly_cases("f1_logistic", "f1_soft_margin", "min_norm")
@pytest.mark.parametrize("name", BY_COLUMNS)
def test_ctrl_c_in_any_phase_of_the_search_leaves_a_valid_answer(name):
    row, whole = ROWS[name], solved(name)
    with Interrupt() as all_lines:
        row.solve(X, Y, tol=TOL)
    assert len(all_lines.lines) > 15
    for function, lines in all_lines.lines.items():
        with Interrupt(function, (lines + 1) // 2):
            found = row.solve(X, Y, tol=TOL)
        assert found.status is Status.INTERRUPTED, function
        assert row.can_be_true(found, whole), function
        assert row.can_be_true(whole, found), function
        assert not found.certified, function
        assert 0 < row.bound(found) < np.inf, function
        if function == "DualSearch.drop_dust":  # the bracket was closed before
            assert found.gap <= TOL
        # The function and the weights of the samples fit their numbers.
        if 0 < row.value(found) < np.inf and found.mass:
            assert row.attains(found, X, Y, 1.0) == pytest.approx(row.value(found), rel=1e-6)
        if found.dual.any():
            proof, bound = row.proof(found, X, Y), row.bound(found)
            assert proof <= bound * (1 + 1e-9) if row.maximizes else proof >= bound * (1 - 1e-4)


@pytest.mark.slow
def test_no_linear_program_prints_a_banner(monkeypatch):
    # HiGHS 1.16 prints it in its constructor, at the first call after those that set options.
    printing, original = [], highspy.Highs.enableCallbacks

    def enable(self):
        printing.append(self.getOptionValue("output_flag")[1])
        original(self)

    monkeypatch.setattr(highspy.Highs, "enableCallbacks", enable)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5))
    f1_max_margin(X, np.where(X[:, 0] > 0, 1, -1), pricing="complete", time_limit=2)
    min_norm_interpolation(X, X[:, 0], pricing="local")
    assert printing
    assert not any(printing)
