"""Mutations of margins: distances to the boundary, norms, intervals of differences."""

from .mutation import Mutation

TESTS = ["tests/test_input_margins.py", "tests/test_margin_table.py", "tests/test_compare.py"]
_INPUT, _TABLE, _COMPARE = (f"{name}::test_" for name in TESTS)
MUTATIONS = [
    Mutation(
        file="margins/boundaries.py",
        old="_ratio(gaps[:, :seen], norms).min(1)",
        new="_ratio(gaps[:, :seen], norms).max(1)",
        why="the farthest rival in place of the nearest",
        killed_by=_INPUT + "linear_nets_are_exact",
    ),
    Mutation(
        file="margins/boundaries.py",
        old="next_gaps / (distances * largest)",
        new="next_gaps / distances",
        why="headroom not in units of the largest gradient seen",
        killed_by=_INPUT + "few_rivals_are_exact_up_to_the_headroom",
    ),
    Mutation(
        file="margins/boundaries.py",
        old="unknown = (next_gaps < 0) | (distances == math.inf)",
        new="unknown = next_gaps < 0",
        why="headroom where all gradients seen are zero",
        killed_by=_INPUT + "headroom_is_zero_where_nothing_is_known",
    ),
    Mutation(
        file="margins/quasi.py",
        old="if k and squares[name]]",
        new="if squares[name]]",
        why="parameters of exponent 0 count",
        killed_by=_TABLE + "quasi_margins_count_the_parameters_that_scale_and_no_others",
    ),
    Mutation(
        file="margins/quasi.py",
        old="_MOST_STEPS = 100",
        new="_MOST_STEPS = 2",
        why="Newton's method stops early",
        killed_by=_TABLE + "quasi_norm_is_the_way_to_the_unit_sphere",
    ),
    Mutation(
        file="margins/measurement.py",
        old="return analyse(model, x, statistics=statistics)",
        new="return normalizing_homogeneity(analyse(model, x, statistics=statistics))",
        why="quasi-homogeneous margins leave out the biases",
        killed_by=_TABLE + "quasi_margins_do_not_move_along_their_scaling",
    ),
    Mutation(
        file="margins/spectral.py",
        old="dim=1).sum()",
        new="dim=0).sum()",
        why="norms of columns in place of rows",
        killed_by=_TABLE + "spectrally_normalized_margins_by_the_formula",
    ),
    Mutation(
        file="margins/spectral.py",
        old="weight.detach().clone()",
        new="weight.detach()",
        why="a report changes when its net trains on",
        killed_by=_TABLE + "spectrally_normalized_margins_by_the_formula",
    ),
    Mutation(
        file="margins/heldout.py",
        old="sizes[q <= 0].sum()",
        new="sizes[q > 0].sum()",
        why="the share of the right margins",
        killed_by=_TABLE + "numbers_for_held_out_data",
    ),
    Mutation(
        file="margins/intervals.py",
        old="parts[0] - parts[1] if len(parts) == 2 else parts[0]",
        new="parts[0]",
        why="nets on different samples",
        killed_by=_COMPARE + "pairing_sees_what_single_intervals_do_not",
    ),
    Mutation(
        file="margins/intervals.py",
        old="tail = (1 - CONFIDENCE) / 2",
        new="tail = 4 * (1 - CONFIDENCE)",
        why="intervals of 60%",
        killed_by=_COMPARE + "intervals_cover_what_they_say",
    ),
    Mutation(
        file="margins/intervals.py",
        old="half = max(_quantile(drawn), _jackknife_width(name, terms[i], terms[j]))",
        new="half = _jackknife_width(name, terms[i], terms[j])",
        why="the jackknife alone, which heavy tails mislead",
        killed_by=_COMPARE + "of_20_pairs_of_equal_nets_one_at_most_looks_different",
    ),
    Mutation(
        file="margins/compare.py",
        old='return "" if error.real and says_the_same else _CALIBRATION',
        new='return ""',
        why="what a change of calibration makes is called real",
        killed_by=_COMPARE + "what_a_change_of_calibration_makes_is_not_called_real",
    ),
    Mutation(
        file="margins/compare.py",
        old="any(not torch.equal(other, labels[0])",
        new="any(len(other) != len(labels[0])",
        why="samples in another order are paired",
        killed_by=_COMPARE + "bad_input",
    ),
]
