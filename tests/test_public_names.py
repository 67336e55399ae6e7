"""The public package: one table of names, all of them there, and each explained."""

import multiprocessing
import pickle
import re
import subprocess
import sys
from importlib.metadata import version
from types import FunctionType

import pytest
import torch
from joblib import Parallel, delayed

import netmargin as nm
from tests.docs_blocks import ROOT


def test_what_tab_completion_shows_is_what_is_public():
    assert dir(nm) == sorted(nm.__all__)
    assert all(getattr(nm, name) is not None for name in nm.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        nm.no_such_name  # noqa: B018


def test_importing_the_package_loads_no_solver_and_no_plots():
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


def test_the_package_itself_can_be_pickled():
    assert pickle.loads(pickle.dumps(nm)) is nm


def train_with(seed):
    """What `docs/cluster.md` shows: a function of one's own that uses `nm` as a global."""
    torch.manual_seed(seed)
    net = nm.models.mlp([3, 8, 1])
    data = nm.datasets.parity(3, 2)
    return nm.train(net, data, until=nm.Epochs(2), seed=seed, progress=False).rows[-1]["q_min"]


@pytest.mark.slow  # processes that import torch
def test_a_function_that_uses_the_package_runs_in_other_processes():
    wanted = [train_with(seed) for seed in range(2)]
    by_value = FunctionType(train_with.__code__, {"nm": nm, "torch": torch}, "own")
    assert Parallel(n_jobs=2)(delayed(by_value)(seed) for seed in range(2)) == wanted
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(getattr, (nm, "__version__")) == nm.__version__
