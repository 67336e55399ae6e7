import gc
import os
import random
import signal

import pytest

# Every test draws the same numbers whichever tests run before it, beside it or without it: with other numbers in
# each run, a net that a test trains fails it once in thirty runs, and nobody can repeat that.  `make check-all`
# asks for other numbers, as a test that holds for one seed only is none.
SEED = int(os.environ.get("NETMARGIN_TEST_SEED", "0"))

# Scripts that tests start in processes of their own; looking for examples in them would import what they need.
collect_ignore_glob = ["integrations/*_run.py"]

# A shell that starts pytest in the background makes it ignore Ctrl-C, and with it all processes that tests start
# in order to interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Prepare the libraries; not where other processes run the tests, which wait for this one."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return
    gc.disable()  # what is imported stays: to look for garbage in it is a fifth of collecting the tests
    import hypothesis
    import torch

    # Several threads of torch and BLAS in each of several processes wait for one another, and tests take ten times
    # as long.
    os.environ["OMP_NUM_THREADS"] = "1"  # of processes that tests start
    torch.set_num_threads(1)
    hypothesis.settings.register_profile("same examples in every run", derandomize=True)
    if not SEED:
        hypothesis.settings.load_profile("same examples in every run")


def pytest_collection_finish(session):
    """From here on garbage is looked for, in what tests make alone: not among all modules."""
    gc.freeze()
    gc.enable()


def seed_generators():
    import numpy as np

    from netmargin.core.generators import seed_torch

    random.seed(SEED)
    np.random.seed(SEED)
    seed_torch(SEED)


def pytest_collectstart(collector):
    """Seed the generators before each file is imported, for the arrays that a file makes once."""
    seed_generators()


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the test draw theirs
def pytest_runtest_setup(item):
    seed_generators()


@pytest.fixture(scope="session")
def digits():
    """200 digits in float64, all classes."""
    import netmargin as nm

    X, y = nm.datasets.digits(limit=200)
    return X.double(), y


@pytest.fixture(scope="session")
def separated(digits):
    """A ReLU net that classifies `digits` correctly."""
    import torch

    import netmargin as nm

    torch.manual_seed(0)
    model = nm.models.mlp([64, 32, 10]).double()
    nm.train(model, digits, until=nm.LogLossBelow(-3), progress=False)
    return model


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked
def pytest_collection_modifyitems(items):
    for item in items:
        for mark in [*item.iter_markers("slow_cases"), *item.iter_markers("nightly_cases")]:
            if item.name.partition("[")[2].startswith(mark.args):
                item.add_marker(mark.name.removesuffix("_cases"))
