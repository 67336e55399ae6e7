import signal

import pytest
import torch

import netmargin as nm

# Scripts that tests start in processes of their own; looking for examples in them would import what they need.
collect_ignore_glob = ["integrations/*_run.py"]

# A shell that starts pytest in the background makes it ignore Ctrl-C, and with it all processes that tests start
# in order to interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def digits():
    """200 digits in float64, all classes."""
    X, y = nm.datasets.digits(limit=200)
    return X.double(), y


@pytest.fixture(scope="session")
def separated(digits):
    """A ReLU net that classifies `digits` correctly."""
    torch.manual_seed(0)
    model = nm.models.mlp([64, 32, 10]).double()
    nm.train(model, digits, until=nm.LogLossBelow(-3), progress=False)
    return model


HEAVY = (
    "test_papers.py::test_figures_at_smoke_scale[chizat-bach/fig2d]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig1]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig4]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig5]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig6]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig7]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig8]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/table1]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2018/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig2]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig4]",
    "test_papers.py::test_figures_share_their_runs",
    "test_papers.py::test_a_killed_sweep_goes_on",
    "test_flows.py::test_exact_flow_foretells_what_it_cannot_reach",
    "test_flows.py::test_flow_passes_where_kinks_meet[widths2",
    "test_flows.py::test_flow_passes_where_kinks_meet[widths3",
    "test_flows.py::test_flow_of_a_relu_net_approaches_a_kkt_point_within_a_radius",
    "test_flows.py::test_proximal_steps_end_where_the_exact_flow_ends[widths2",
    "test_flows.py::test_relu_flow_equals_tiny_steps[widths1",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[hexagon]",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[square]",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[inside, outside]",
    "test_regularization.py::test_multi_class_path_meets_a_margin_ascent",
    "test_regularization.py::test_weak_squared_loss_finds_the_least_norm",
    "test_regularization.py::test_nets_beat_kernels_on_the_hypercube",
    "test_training.py::test_runs_killed_at_random_moments_resume_bit_for_bit[10",
)
"""Beginnings of the names of tests that take more than about 6 seconds of a quiet core, and of those that wait for them:
`make test-slow` runs them, as it runs all that read the quick ledger, a fixture of a minute. Of every kind a smaller one stays
in `make test`."""


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked slow
def pytest_collection_modifyitems(items):
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if name.startswith(HEAVY) or "ledger" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        # Tests of one file that share a fixture of minutes go to one process.
        for file in ("test_papers.py", "test_ledger.py"):
            if name.startswith(file):
                item.add_marker(pytest.mark.xdist_group(file))
