"""The public door: one table of names, all of them there, and each explained."""

import pickle
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

import netmargin as nm
from tests.docs_blocks import ROOT


def test_what_tab_completion_shows_is_what_is_public():
    assert dir(nm) == sorted(nm.__all__)
    assert all(getattr(nm, name) is not None for name in nm.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        nm.no_such_name  # noqa: B018


def test_importing_the_door_loads_no_solver_and_no_plots():
    heavy = ("highspy", "clarabel", "matplotlib", "sklearn", "torch")
    code = f"import sys, netmargin; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize(
    "name", sorted(n for n in nm.__all__ if n.endswith(("Error", "Interrupted")))
)
def test_errors_survive_a_trip_to_another_process(name):
    """joblib sends errors of workers home as pickles."""
    error = getattr(nm, name)("the sentence")
    assert str(pickle.loads(pickle.dumps(error))) == "the sentence"


def test_the_version_is_the_one_that_is_installed_and_cited():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert nm.__version__ == version("netmargin") == cited.group(1)
