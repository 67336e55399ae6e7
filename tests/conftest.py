import os
import random
import signal

import hypothesis
import numpy as np
import pytest
import torch

import netmargin as nm

# Several threads of torch and BLAS in each of several processes wait for one another, and tests take ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"  # of processes that tests start
torch.set_num_threads(1)

# Every test draws the same numbers whichever tests run before it, beside it or without it: with other numbers in
# each run, a net that a test trains fails it once in thirty runs, and nobody can repeat that.  `make check-all`
# asks for other numbers, as a test that holds for one seed only is none.
SEED = int(os.environ.get("NETMARGIN_TEST_SEED", "0"))
hypothesis.settings.register_profile("same examples in every run", derandomize=True)
if not SEED:
    hypothesis.settings.load_profile("same examples in every run")

# Scripts that tests start in processes of their own; looking for examples in them would import what they need.
collect_ignore_glob = ["integrations/*_run.py"]

# A shell that starts pytest in the background makes it ignore Ctrl-C, and with it all processes that tests start
# in order to interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def seed_generators():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


def pytest_collectstart(collector):
    """Seed the generators before each file is imported, for the arrays that a file makes once."""
    seed_generators()


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the test draw theirs
def pytest_runtest_setup(item):
    seed_generators()


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
    "test_arguments.py::test_good_calls_are_answered_under_no_grad_as_well[drawing",
    "test_arguments.py::test_odd_arguments_are_answered_or_named[drawing",
    "test_attacks.py::test_no_weaker_than_the_attacks_of_foolbox",
    "test_bounds.py::test_interclass_distance_finds_planted_structure",
    "test_bounds.py::test_interclass_distance_in_one_dimension_by_brute_force",
    "test_cli.py::test_certify",
    "test_compare.py::test_intervals_cover_what_they_say",
    "test_docs.py::test_python_blocks_run_as_they_are",
    "test_estimators.py::test_classifiers_conform[estimator2",
    "test_exact_radii_rounds.py::test_a_descent_from_a_poor_attack_takes_few_rounds",
    "test_exact_radii_search.py::test_ctrl_c_keeps_batches",
    "test_exact_radii_search.py::test_more_effort_certifies_more",
    "test_exact_radii_search.py::test_small_nets_against_all_patterns[3",
    "test_flows.py::test_closed_form_of_one_weight_deep_in_time",
    "test_flows.py::test_error_of_proximal_steps_is_the_distance_to_halved_ones",
    "test_flows.py::test_flow_of_a_relu_net_approaches_a_kkt_point_within_a_radius",
    "test_flows.py::test_flow_of_a_smooth_net_approaches_a_kkt_point",
    "test_flows.py::test_flow_passes_where_kinks_meet",
    "test_flows.py::test_flow_says_where_it_stalls",
    "test_flows.py::test_gamma_hat_never_falls_under_s5",
    "test_flows.py::test_margin_ascent_beats_training_and_ends_near_a_kkt_point",
    "test_flows.py::test_order_of_the_integrator",
    "test_flows.py::test_proximal_steps_end_where_the_exact_flow_ends",
    "test_flows.py::test_relu_flow_equals_tiny_steps[widths0-0-10.0-5000",
    "test_flows.py::test_relu_flow_equals_tiny_steps[widths1",
    "test_flows.py::test_smoothed_margin_never_falls_along_relu_flow",
    "test_flows.py::test_time_left_is_shown_while_a_flow_runs[proximal",
    "test_ledger.py::test_a_broken_claim_fails[chizat-bach/mirror-rate",
    "test_ledger.py::test_a_broken_claim_fails[chizat-bach/output-rate",
    "test_ledger.py::test_a_broken_claim_fails[lyu-li/kkt-finite-time",
    "test_ledger.py::test_a_broken_claim_fails[lyu-li/kkt-limit",
    "test_ledger.py::test_a_broken_claim_fails[lyu-li/ntk-svm",
    "test_ledger.py::test_a_broken_claim_fails[lyu-li/rates",
    "test_ledger.py::test_a_broken_claim_fails[two-homogeneity/parity-error",
    "test_ledger.py::test_a_broken_claim_fails[wei/mass-growth",
    "test_ledger.py::test_a_broken_claim_fails[wei/net-beats-kernel",
    "test_ledger.py::test_a_broken_claim_fails[wei/perturbed-flow",
    "test_ledger.py::test_a_broken_claim_fails[wei/regression-limit",
    "test_ledger.py::test_command_line",
    "test_normalized_nets.py::test_another_mirror_map_is_another_flow",
    "test_normalized_nets.py::test_gradient_flow_is_mirror_flow",
    "test_normalized_nets.py::test_smooth_margin_never_falls_along_the_flow[normalized",
    "test_page_browser.py::test_axe_finds_nothing_serious",
    "test_page_browser.py::test_every_chart_holds_marks_and_no_width_scrolls_sideways",
    "test_papers.py::test_a_killed_sweep_goes_on",
    "test_papers.py::test_a_killed_training_run_goes_on",
    "test_papers.py::test_a_run_whose_process_is_killed",
    "test_papers.py::test_ctrl_c_keeps_no_halves",
    "test_papers.py::test_figures_at_smoke_scale[chizat-bach/fig1",
    "test_papers.py::test_figures_at_smoke_scale[chizat-bach/fig2b",
    "test_papers.py::test_figures_at_smoke_scale[chizat-bach/fig2c]",
    "test_papers.py::test_figures_at_smoke_scale[chizat-bach/fig2d]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig1]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig4]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig5]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig6]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig7]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/fig8]",
    "test_papers.py::test_figures_at_smoke_scale[lyu-li/table1]",
    "test_papers.py::test_figures_at_smoke_scale[two-homogeneity/monotone]",
    "test_papers.py::test_figures_at_smoke_scale[two-homogeneity/parity]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2018/fig2]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2018/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2018/table1]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig2]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig3]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig4]",
    "test_papers.py::test_figures_at_smoke_scale[wei-2019/fig5]",
    "test_papers.py::test_figures_share_their_runs",
    "test_papers.py::test_list_and_gallery",
    "test_perturbed_flow.py::test_perturbed_flow_leaves_where_the_unperturbed_is_stuck",
    "test_random_nets.py::test_derived_exponents_are_the_measured_ones",
    "test_random_nets.py::test_no_other_parameters_have_a_larger_order",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[hexagon]",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[inside, outside]",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[square]",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[two",
    "test_regularization.py::test_margins_tend_to_the_certified_optimum[xor",
    "test_regularization.py::test_multi_class_path_meets_a_margin_ascent",
    "test_regularization.py::test_nets_beat_kernels_on_the_hypercube",
    "test_regularization.py::test_the_path_is_the_exact_path",
    "test_regularization.py::test_two_approximate_minimizers_keep_their_margin",
    "test_regularization.py::test_weak_squared_loss_finds_the_least_norm",
    "test_robustness.py::test_command_line",
    "test_robustness.py::test_lower_is_below_upper[convolutions",
    "test_robustness.py::test_squares_of_slopes_do_not_underflow[1e-90",
    "test_robustness.py::test_two_dimensions_by_a_grid[0",
    "test_saved_records.py::test_a_fresh_process_reads_it_with_numpy_alone_or_with_us",
    "test_solvers.py::test_equals_brute_force_over_all_cells[2",
    "test_solvers.py::test_higher_dimensions_are_certified_by_branch_and_bound",
    "test_targets.py::test_targets_bracket_the_optimum_of_every_problem[interpolation",
    "test_targets.py::test_targets_fall_and_say_how_far_they_are",
    "test_training.py::test_a_margin_ascent_keeps_the_norm_and_training_goes_on_from_it[ReLU",
    "test_training.py::test_a_margin_ascent_keeps_the_norm_and_training_goes_on_from_it[linear",
    "test_training.py::test_a_margin_ascent_keeps_the_norm_and_training_goes_on_from_it[squared",
    "test_training.py::test_a_margin_ascent_keeps_the_norm_and_training_goes_on_from_it[three",
    "test_training.py::test_runs_killed_at_random_moments_resume_bit_for_bit[1-kinds1",
    "test_training.py::test_runs_killed_at_random_moments_resume_bit_for_bit[10",
    "test_training.py::test_runs_on_every_kind_of_loader_resume_or_are_told_beforehand[worker",
    "test_twolayer.py::test_both_layers_approach_the_variation_norm_margin",
    "test_twolayer.py::test_guarantees_are_not_empty",
)
"""Beginnings of the names of tests that take more than about 3 seconds of a quiet core, and of those that wait for them:
`make test-slow` runs them, as it runs all that read the quick ledger, a fixture of a minute. Of every kind a smaller one stays
in `make test`."""


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked slow
def pytest_collection_modifyitems(items):
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if name.startswith(HEAVY) or "ledger" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        # Tests of one file that share a fixture of minutes go to one process (pytest-xdist 3.8 forgets that with
        # pytest 9.2: its issue 1386; each process then computes the fixture, which only takes longer).
        for file in ("test_papers.py", "test_ledger.py"):
            if name.startswith(file):
                item.add_marker(pytest.mark.xdist_group(file))
