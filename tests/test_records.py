"""How records print: one line with the numbers that matter, whatever they hold."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from decimal import ROUND_CEILING, ROUND_FLOOR
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

import netmargin as nm
from netmargin.core.records import Shown, number
from tests.docstrings import list_public

INTERNAL = {  # never returned by a public function
    "netmargin.core.records.Table",
    "netmargin.homogeneity.degree.Constraint",
    "netmargin.homogeneity.degree.Unknown",
    "netmargin.kkt.constraint_subset.ConstraintSubset",
    "netmargin.label_errors.groups.Groups",
    "netmargin.solvers.columns.engine.Ending",
    "netmargin.solvers.columns.options.Options",
    "netmargin.solvers.columns.master.Constraints",
    "netmargin.papers.ledger.trial.Trial",
    "netmargin.papers.ledger.points.Points",
    "netmargin.papers.chizat_bach._instances.Intervals",
    "netmargin.papers.gallery.runs.PlannedRun",
    "netmargin.papers.lyu_li._instances.Start",
    "netmargin.papers.wei_2018._particles.Dynamics",
    "netmargin.papers.wei_2019._cube.Span",
    "netmargin.flow.dormand_prince.Step",
    "netmargin.flow.kinks.Kinks",
    "netmargin.flow.kinks.Pattern",
    "netmargin.flow.field.Velocity",
    "netmargin.solvers.pricing.node_bound.Nodes",
    "netmargin.solvers.pricing.node_bound.Quadratics",
}


def all_records() -> dict[str, type]:
    """Every dataclass of the package without an underscore that is no estimator, by full name."""
    found = {}
    for module in pkgutil.walk_packages(nm.__path__, "netmargin."):
        if module.name.endswith("__main__"):
            continue
        for name, kind in vars(importlib.import_module(module.name)).items():
            own = (
                isinstance(kind, type)
                and dataclasses.is_dataclass(kind)
                and not issubclass(kind, BaseEstimator)
                and kind.__module__ == module.name
            )
            if own and not name.startswith("_"):
                found[f"{module.name}.{name}"] = kind
    return found


def records() -> dict[str, type]:
    """Those that a public function returns, alone or in another one."""
    return {
        name: kind
        for name, kind in all_records().items()
        # What a page is written from, and how radii and neurons are searched, stays in its package:
        # callers get the file, and the report.
        if name not in INTERNAL
        and (kind is nm.PageFile or not name.startswith("netmargin.page."))
        and not name.startswith(("netmargin.radii.exact.", "netmargin.solvers.neurons."))
    }


def test_the_list_of_internal_records_is_of_records_that_exist():
    assert INTERNAL - all_records().keys() == set()


def test_help_says_what_every_field_of_a_public_record_is():
    told = [
        kind
        for kind in list_public().values()
        if dataclasses.is_dataclass(kind) and issubclass(kind, Shown)
    ]
    assert len(told) > 30
    for kind in told:
        text = inspect.getdoc(kind)
        for name in kind.__dataclass_fields__:
            own = re.search(rf"^{name} : .+\n    \S", text, re.MULTILINE)
            # Or the text about the class says it, or that about another field.
            assert name.startswith("_") or own or re.search(rf"`{name}`", text), (kind, name)


def test_help_holds_every_line_of_the_comments_at_fields():
    for name, kind in records().items():
        source = inspect.getsource(kind)
        lines = re.findall(r"^    (?:#:|\w+: .+?  #:) (.*)", source, re.MULTILINE)
        text = inspect.getdoc(kind)
        assert [line for line in lines if f"\n    {line}" not in text] == [], name


def test_help_reads_like_a_docstring_of_numpydoc():
    text = inspect.getdoc(nm.solvers.ReLUMeasure)
    assert text.startswith("A function of two-layer nets, f(x) = ")
    assert (
        "with a bias.\n\nAttributes\n----------\natoms : np.ndarray\n    (k, D): Rows (a, b), D = d +"
        " 1, or d + 2 with a bias\n"
    ) in text
    assert "\n\nExamples\n--------\n>>> import numpy as np\n" in text.partition("slope : float")[2]
    inherited = "margin : float\n    The margin that the returned solution attains"
    assert inherited in inspect.getdoc(nm.solvers.VariationNormSolution)


def test_no_source_is_read_before_help_asks_for_it(monkeypatch):
    monkeypatch.setattr(inspect, "getsource", lambda _: pytest.fail("read"))

    @dataclasses.dataclass
    class Probe(Shown):
        """A probe."""

        depth: float  #: In metres

    assert Probe.__doc__ == "A probe."


def test_a_program_without_its_source_has_the_docstrings_without_fields(monkeypatch):
    def fail(_):
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", fail)
    assert inspect.getdoc(nm.Bracket) == "A number known to lie in [lower, upper]."


LARGE = [  # by what an annotation contains, the first that fits
    (
        "list[dict]",
        [{"log10_mean_loss": -3.0, "normalized_margin": 0.1, "accuracy": 1.0, "q_min": 2.0}] * 3000,
    ),
    ("list[dict[str, ", [{"seconds": 1.0}] * 3000),
    ("Check]", []),
    ("MarginReport", None),
    ("KKTCertificate", None),
    ("Homogeneity", SimpleNamespace(order=2)),
    ("dict[str, float | None]", {"global": 1.0, "layers": 1.0, "partial": 1.0}),
    ("Loss", nm.losses.Exponential()),
    ("SolverData", None),
    ("Figure", None),
    ("Claim", None),
    ("Tensor", torch.rand(500, 40, dtype=torch.float64)),
    ("ndarray", np.random.default_rng(0).random((500, 40))),
    ("tuple[float, float]", (0.0, 1.0)),
    ("tuple[Entry", ()),
    ("tuple", ("a long sentence " * 20,) * 500),
    ("list", [np.zeros(500)] * 500),
    ("Mapping", {f"name {i}": 1.0 for i in range(500)}),
    ("dict", {f"name {i}": torch.zeros(500) for i in range(500)}),
    ("Callable", len),
    ("bool", True),
    ("int", 1_797),
    ("float", 0.12345678901234567),
    ("str", "a long sentence " * 20),
    ("Exponent", 2),
    ("", "one: a sentence " * 10),
]


def filled(kind: type):
    """An instance whose every field is as large as it gets, without its constructor's checks."""
    record = object.__new__(kind)
    for field in dataclasses.fields(kind):
        value = next(value for part, value in LARGE if part in str(field.type))
        object.__setattr__(record, field.name, value)
    return record


def test_every_record_prints_in_a_line():
    """In one test: to list records while tests are collected imports Lightning in each process."""
    assert len(records()) > 40
    for name, kind in records().items():
        shown = repr(filled(kind))
        assert len(shown) <= 300, name
        assert "\n" not in shown, name
        assert kind.__name__ in shown
        assert "array(" not in shown, name
        assert "tensor(" not in shown, name
        # Tables of their own are tested on answers, in test_printed_answers.py.
        if getattr(kind, "_table", None) is Shown._table and "__str__" not in vars(kind):
            text = str(filled(kind))
            assert text != shown, name
            assert len(text.splitlines()) <= 20, name
            assert "array(" not in text, name
            assert "tensor(" not in text, name


def test_records_of_samples_are_alike():
    net, data = torch.nn.Linear(2, 2), (torch.randn(40, 2), torch.arange(40) % 2)
    found = {
        "RobustnessReport": nm.robustness(net, data, attacks=False, progress=False),
        "InputMargins": nm.input_margins(net, data, progress=False),
        "LabelErrors": nm.label_errors(data),
        "Comparison": nm.compare([net, torch.nn.Linear(2, 2)], data, progress=False),
    }
    for name, record in found.items():
        assert record.summary() in record.summary(full=True)
        assert len(record.frame()) == (2 if name == "Comparison" else 40)


@pytest.mark.slow
def test_records_show_the_numbers_that_matter(digits, separated):
    report = nm.measure(separated, digits)
    assert f"n={report.n} " in repr(report)
    assert f"q_min={report.q_min:.6g} " in repr(report)
    history = nm.train(separated, digits, until=nm.Epochs(2), progress=False)
    assert repr(history).startswith("<History 3 rows log10_mean_loss=-")
    assert "message='ran 2 epochs'" in repr(history)
    solution = nm.solvers.f1_max_margin(np.array([[1.0, 2.0], [2.0, -1.0]]), [1, -1])
    assert f"margin={solution.margin:.6g} " in repr(solution)
    assert "certified=True status='optimal" in repr(solution)
    assert repr(nm.History()) == "<History 0 rows status='running'>"


@pytest.mark.slow
def test_an_ascent_is_shown_by_the_net_that_it_returns():
    """Not by its last row, which is about a net of another norm."""
    torch.manual_seed(0)
    net = nm.models.mlp([5, 8, 3])
    X = torch.randn(12, 5)
    ascent = nm.maximize_margin(net, (X, torch.arange(12) % 3), progress=False)
    report = nm.measure(net, (X, torch.arange(12) % 3))
    assert report.norm > 1.1 * ascent.rows[-1]["norm"]
    shown = repr(ascent)
    for name in ("log10_mean_loss", "normalized_margin", "q_min"):
        assert f" {name}={getattr(report, name):.6g} " in shown


def test_bounds_are_rounded_outwards_and_the_last_digits_of_float64_do_not_move_the_fourth():
    bounds = {
        1.0: ("1", "1"),
        0.7: ("0.7", "0.7"),
        1 + 1e-14: ("1", "1 + 1e−14"),
        1 - 1e-14: ("1 − 1e−14", "1"),
        -1 - 1e-14: ("−1 − 1e−14", "−1"),
        1.000001: ("1", "1.001"),
        0.123449: ("0.1234", "0.1235"),
    }
    for value, (below, above) in bounds.items():
        assert (number(value, ROUND_FLOOR), number(value, ROUND_CEILING)) == (below, above)
    for value in np.random.default_rng(0).normal(size=100).round(3) * (1 + 3e-13):
        low, high = (number(value, way).replace("−", "-") for way in (ROUND_FLOOR, ROUND_CEILING))
        assert eval(low) <= value <= eval(high)
        assert eval(high) - eval(low) <= 1e-3 * abs(value)
