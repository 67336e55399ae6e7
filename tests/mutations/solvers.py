"""Mutations of the solvers' provers: bounds that lost a term, a constant, a sign or a rounding
margin.

Drawn before `tests/test_sound_bounds.py` was written. Mutations of what only proposes (the linear
programs, the search, the cone program) are not in the table: a wrong proposal is judged, not
believed.
"""

from .mutation import Mutation

TESTS = ["tests/test_sound_bounds.py", "tests/test_targets.py"]
_HERE = "tests/test_sound_bounds.py::"
_PROVED = "tests/test_proved_inseparable.py::"
_ENGINE = "tests/test_pair_descent.py::"

_PROOF = "solvers/pricing/bounds.py"
_RAYS = "solvers/pricing/rays.py"
_ARRANGEMENT = "solvers/pricing/arrangement.py"
_FACES = "solvers/pricing/faces.py"
_TREE = "solvers/pricing/branch_and_bound.py"
_NODE = "solvers/pricing/node_bound.py"
_DESCENT = "solvers/pricing/node_descent.py"
_TARGETS = "solvers/pricing/target_tree.py"
_SQUARED_COLUMNS = "solvers/columns/squared_problem.py"
_RELAXATION = "solvers/pricing/relaxation.py"
_HARD_KERNEL = "solvers/hard_kernel.py"
_TWO_LAYER = "kernels/two_layer.py"
_KERNEL_MATRIX = "solvers/kernel_matrix.py"
_KERNEL_PROBLEM = "solvers/kernel_problem.py"
_SOFT_KERNEL = "solvers/soft_kernel.py"
_HINGE = "solvers/hinge_bracket.py"
_LINEAR = "solvers/linear_search.py"
_EXTENDED = "solvers/extended.py"
_HULL = "solvers/hull.py"
_CONTRADICTIONS = "solvers/contradictions.py"
_LOGISTIC = "solvers/logistic.py"
_LOGISTIC_COLUMNS = "solvers/columns/logistic_problem.py"
_F1 = "solvers/f1.py"
_RESTRICTED = "solvers/columns/restricted_problem.py"
_COLUMNS = "solvers/columns/margin_problem.py"
_DUALS = "solvers/columns/dual_search.py"
_JUDGE = "result.py"
_JUDGED = "tests/test_brackets.py::test_one_judge_decides_every_status"

MUTATIONS = [
    # Which bound is asked for.
    Mutation(
        _PROOF,
        "lost = self._rays.neglected(c) + bound_rounding(c, self._Z)",
        "lost = bound_rounding(c, self._Z)",
        "branch and bound without what nearly parallel points differ by",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _PROOF,
        "bound + self._rays.neglected(c) + bound_rounding(c, self._Z, self._power))",
        "bound + bound_rounding(c, self._Z, self._power))",
        "the relaxation without what nearly parallel points differ by",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _PROOF,
        'self._pricing == "local" or self._power == 2 or hopeless',
        'self._pricing == "local" or hopeless',
        "branch and bound, which bounds ReLU sums, for sums of squared ReLU",
        _HERE + "test_branch_and_bound_does_not_bound_sums_of_squares",
    ),
    Mutation(
        _PROOF,
        "floor=floor,",
        "floor=4 * floor,",
        "branch and bound ends far above the floor: nothing is proved to be optimal",
        _HERE + "test_margins_of_orthogonal_points",
    ),
    Mutation(
        _PROOF,
        "self._arrangement.price_neurons(c, count=count)",
        "self._arrangement.price_neurons(np.abs(c), count=count)",
        "the arrangement is asked for other coefficients",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    # Nearly parallel points.
    Mutation(
        _RAYS,
        "return float(np.abs(c) @ moved)",
        "return float(c @ moved)",
        "neglected parts that cancel",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _RAYS,
        "self._neglected * (2 * self._lengths + self._neglected)",
        "self._neglected * self._lengths",
        "squares of neglected parts with half of the cross term",
        equivalent=(
            "points are moved at equal length, by which zz' changes by |z|^2 sin(angle) <= |z|"
            " moved: the factor 2 is room"
        ),
    ),
    Mutation(
        _RAYS,
        "self._neglected * (2 * self._lengths + self._neglected)",
        "self._neglected * self._neglected",
        "squares of neglected parts without the cross term",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _RAYS,
        "c * self._lengths**self._power",
        "c * self._lengths",
        "squared ReLU scaled by the length",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RAYS,
        "np.sign(cosines[k]), distance * norms[i]",
        "np.sign(cosines[k]), distance",
        "moved by an angle",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _RAYS,
        "np.where(line >= 0, 2 * line + (side < 0), -1)",
        "np.where(line >= 0, 2 * line, -1)",
        "x and -x are one ray",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RAYS,
        "normals[k // 2] * (1 - 2 * (k % 2))",
        "normals[k // 2]",
        "the opposite ray points forward",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RAYS,
        "distance = np.linalg.norm(direction - np.sign(cosines[k]) * normals[k])",
        "distance = 1 - abs(cosines[k])",
        "parallel up to the square of an angle: 1e-6 counts as nothing",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    # The tree at a target.
    Mutation(
        _NODE,
        "constant = torch.where(undecided, 0.25 * self.cP / tau, 0.0).sum(1)",
        "constant = torch.where(undecided, 0.125 * self.cP / tau, 0.0).sum(1)",
        "half of the constant of undecided samples",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "curvature = torch.where(undecided, 0.25 * self.cP * tau, 0.0)",
        "curvature = torch.where(undecided, 0.125 * self.cP * tau, 0.0)",
        "half of the curvature of undecided samples",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "            0.5 * self.cP,\n",
        "            0.25 * self.cP,\n",
        "half of the slope of undecided samples",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "self.cP * (nodes.side > 0) + self.mean",
        "self.cP * (nodes.side < 0) + self.mean",
        "decided samples count on the wrong side",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "+ self.mean * nodes.scale * nodes.side",
        "- self.mean * nodes.scale * nodes.side",
        "the multiplier of a side with the wrong sign",
        "tests/test_targets.py::test_a_bound_counts_every_rounding",
    ),
    Mutation(
        _NODE,
        "-0.5 * self.dN * (1 + nodes.a)",
        "-0.5 * self.dN * (2 + nodes.a)",
        "negative terms without the half",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "self.half_dX = -0.5 * self.dN[:, None] * self.XN",
        "self.half_dX = -1.0 * self.dN[:, None] * self.XN",
        "the vector multipliers without the half",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "0.5 * (matrix + matrix.transpose(1, 2))",
        "matrix",
        "a matrix that is not symmetric: Cholesky reads one triangle",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "+ residual.square().sum(1) / (2 * room)",
        "",
        "a guess w that is not the solution proves too much",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _NODE,
        "            above.constant\n            + (mu + room)\n",
        "            above.constant\n            + 0.5 * (mu + room)\n",
        "half of the multiplier of the ball",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _DESCENT,
        "nodes.scale = torch.where(undecided, moved, moved.clamp_min(0.0))",
        "nodes.scale = moved",
        "multipliers of sides below 0",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _DESCENT,
        "new_b = torch.minimum((size_b - excess).clamp_min_(0.0), 1 - new_a)",
        "new_b = size_b",
        "the projection is left out",
        "tests/test_targets.py::test_node_bounds_are_above_what_an_ascent_in_the_node_reaches",
    ),
    Mutation(
        _DESCENT,
        "keep = nodes.bound > self._target",
        "keep = nodes.bound > 1.5 * self._target",
        "nodes above the target are closed",
        "tests/test_targets.py::test_trees_agree_with_the_whole_arrangement",
    ),
    Mutation(
        _TARGETS,
        "torch.cat([torch.ones(count), -torch.ones(count)])",
        "torch.cat([torch.ones(count), torch.ones(count)])",
        "a branch is forgotten",
        "tests/test_targets.py::test_trees_agree_with_the_whole_arrangement",
    ),
    Mutation(
        _TARGETS,
        "for sign in (1.0, -1.0) if (sign * c > 0).any()]",
        "for sign in (1.0,) if (sign * c > 0).any()]",
        "one sign of the sum only",
        "tests/test_targets.py::test_trees_agree_with_the_whole_arrangement",
    ),
    Mutation(
        _TARGETS,
        "self.upper_bound = max(self.upper_bound, self._unit * stuck + self._left_out)",
        "pass",
        "leaves above the target are forgotten",
        "tests/test_targets.py::test_leaves_that_stay_above_the_target_are_the_bound",
    ),
    Mutation(
        _TARGETS,
        "nodes = _split(inner)",
        "nodes = _split(inner).select(slice(0, len(inner)))",
        "of two children one is visited",
        "tests/test_targets.py::test_trees_agree_with_the_whole_arrangement",
    ),
    Mutation(
        _TARGETS,
        "            if len(visit.children):",
        "            if len(visit.children) and parents is groups[0]:",
        "of the groups of a round the children of one are kept",
        "tests/test_targets.py::test_threads_do_not_change_what_is_proved",
    ),
    Mutation(
        _TARGETS,
        "self.stuck = max(self.stuck, visit.stuck)",
        "pass",
        "leaves of a round above the target are forgotten",
        "tests/test_targets.py::test_leaves_that_stay_above_the_target_are_the_bound",
    ),
    # The arrangement.
    Mutation(
        _ARRANGEMENT,
        "allowance = rounding + float(np.abs(c) @ neglected)",
        "allowance = rounding",
        "the arrangement without what was neglected",
        _HERE + "test_points_that_differ_below_the_rank_are_not_one",
    ),
    Mutation(
        _ARRANGEMENT,
        "allowance = rounding + float(np.abs(c) @ neglected)",
        "allowance = float(np.abs(c) @ neglected)",
        "the arrangement without its rounding margin",
        _HERE + "test_nearly_parallel_points_are_not_one",
    ),
    Mutation(
        _ARRANGEMENT,
        "self._neglected + moved",
        "self._neglected",
        "points moved onto shared lines for nothing",
    ),
    Mutation(
        _ARRANGEMENT,
        "self._neglected = split_lengths(Z - self._Z @ self._rows)[0]",
        "self._neglected = np.zeros(len(Z))",
        "a rank that was cut off counts for nothing",
        _HERE + "test_points_that_differ_below_the_rank_are_not_one",
    ),
    Mutation(
        _ARRANGEMENT,
        "self._neglected * (2 * np.linalg.norm(self._Z, axis=1) + self._neglected)",
        "self._neglected * self._neglected",
        "squared ReLU: the cross term of the neglected part is missing",
        _HERE + "test_points_that_differ_below_the_rank_are_not_one",
    ),
    Mutation(
        _ARRANGEMENT,
        "[[1.0], [-1.0]]",
        "[[1.0]]",
        "on a line only one direction is tried",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _ARRANGEMENT,
        "for k in (0, -1)]",
        "for k in (-1,)]",
        "squared ReLU: the bottom eigenvectors are left out",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _FACES,
        "(-1 if i <= k else 1) for i in range(members)), None",
        "(-1 if i < k else 1) for i in range(members)), None",
        "off by one among the open cells around a plane",
        equivalent=(
            "over both halves k = 0 .. M - 1 give the same 2 M patterns: all positive takes the"
            " place of all negative"
        ),
    ),
    Mutation(
        _FACES,
        "        yield (1,), None\n        yield (-1,), None\n",
        "        yield (1,), None\n",
        "one of the two sides of a line is not visited",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _FACES,
        "for half in (1, -1):",
        "for half in (1,):",
        "half of the cells around a plane are not visited",
        _HERE + "test_every_cell_of_four_hyperplanes_is_visited",
    ),
    Mutation(
        _ARRANGEMENT,
        "(events[:, n:] < events[:, :n]) & ~on_plane",
        "(events[:, n:] < events[:, :n])",
        "samples on the plane count as active at its start",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _ARRANGEMENT,
        "onto = onto - normal[:, :, None] * normal[:, None, :]",
        "onto = onto + normal[:, :, None] * normal[:, None, :]",
        "reflected instead of projected onto the span of a face",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _ARRANGEMENT,
        "            found.offer(rays.reshape(-1, self._rank), sums.ravel())",
        "            pass",
        "the vertices of the arrangement, where concave kinks meet, are not evaluated",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _ARRANGEMENT,
        "self._evaluate_sums(v[:, 1:], rays)",
        "self._evaluate_sums(v[:, :-1], rays)",
        "values at vertices by the arc before",
        equivalent=(
            "the sum is continuous: both arcs give the same value at the vertex between them"
        ),
    ),
    Mutation(
        _FACES,
        "flip = (angle < 0) | (angle >= np.pi)",
        "flip = angle < 0",
        "a normal at the angle pi is not turned round",
        equivalent=(
            "then lines are sorted over (0, pi] instead of [0, pi): no two lines share both ends,"
            " so the faces are the same"
        ),
    ),
    # Branch and bound.
    Mutation(
        _TREE,
        "bound = np.sqrt(squares + self._ulps * hidden) + self._ulps * terms",
        "bound = np.sqrt(squares)",
        "branch and bound without its rounding margins",
        _HERE + "test_bounds_are_above_the_exact_value_where_terms_cancel",
    ),
    Mutation(
        _TREE,
        "np.maximum(\n                np.linalg.eigvalsh((inverse @ self.squares).reshape(-1, D, D))[:, -1:], 0.0\n            )",
        "0.5 * np.maximum(np.linalg.eigvalsh((inverse @ self.squares).reshape(-1, D, D))[:, -1:],"
        " 0.0)",
        "half the diagonal: the relaxation is not concave",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "low = np.where(c < 0, c, ",
        "low = np.where(c < 0, 2 * c, ",
        "negative coefficients may move twice as far as duality allows",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "np.where(fixed > 0, np.inf, np.where(undecided, c, 0.0))",
        "np.where(fixed > 0, np.inf, np.where(undecided, c, np.inf))",
        "samples outside S may have positive weight",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "np.maximum(gradient * (c - x), -gradient * x), 0.0)",
        "np.minimum(gradient * (c - x), -gradient * x), 0.0)",
        "the linearization at the wrong end of the box",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "np.maximum(gradient * (c - x), -gradient * x), 0.0)",
        "np.maximum(gradient * (c - x), 0.0), 0.0)",
        "the linearization forgets one end of the box",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "squares = (v**2).sum(1) + relaxation.sum(1) + linearized.sum(1)",
        "squares = (v**2).sum(1) + linearized.sum(1)",
        "the bound without its concave term",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "gradient = 2 * (v @ self.Z.T) + E * (c - 2 * x)",
        "gradient = (v @ self.Z.T) + E * (c - 2 * x)",
        "half the gradient of the quadratic form",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "self.stuck = max(self.stuck, float(nodes[0][stuck].max(initial=0.0)))",
        "self.stuck = max(self.stuck, 0.0)",
        "leaves that are given up are forgotten",
        _HERE + "test_bounds_are_above_the_exact_value_where_terms_cancel",
    ),
    Mutation(
        _TREE,
        "closed = self.best * (1 + self.tol)",
        "closed = self.best",
        "nodes closed within the tolerance are forgotten",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "possible = self.open[0] > self.best * (1 + self.tol)",
        "possible = self.open[0] > self.best * (1 + 2 * self.tol)",
        "nodes beyond the tolerance are closed",
        _HERE + "test_what_branch_and_bound_closes_or_gives_up_still_counts",
    ),
    Mutation(
        _TREE,
        "for side_of_hyperplane in (1, -1):",
        "for side_of_hyperplane in (1,):",
        "half of each branching is left out",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "self.signed = np.stack([c, -c])",
        "self.signed = np.stack([c, c])",
        "only one sign of the sum is bounded",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _TREE,
        "return (\n        sums\n        * max(float(np.linalg.eigvalsh(G / root[:, None] / root)[-1]), 0.0)\n        * (1 + _EIGENVALUE_ROUNDING)\n    )",
        "return sums * 0.5",
        "a diagonal that is not above the matrix",
        equivalent=(
            "`_bound_nodes` scales every diagonal anew, by the largest eigenvalue on the undecided"
            " samples: only its shape counts"
        ),
    ),
    Mutation(
        _TREE,
        "branch = np.where(slack.max(1) > 0, slack.argmax(1), -1)",
        "branch = np.where(slack.max(1) > 0, slack.argmin(1), -1)",
        "branching on samples that are decided",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    # The relaxation.
    Mutation(
        _RELAXATION,
        "0.25 * total / tau",
        "0.125 * total / tau",
        "half of the constant of Cauchy-Schwarz",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "0.25 * tau * plus - 0.5 * minus",
        "0.25 * tau * plus - minus",
        "twice the negative part is subtracted",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "0.25 * tau * plus - 0.5 * minus",
        "0.125 * tau * plus - 0.5 * minus",
        "half of the positive part",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "np.divide(negative, norms, out=np.zeros_like(norms), where=norms > 0)",
        "negative * norms",
        "|t| >= t^2 / |z| with |z| on the wrong side",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "0.5 * (c @ Z)",
        "0.25 * (c @ Z)",
        "half of the linear part",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "weights = 0.25 * (vectors.T @ h) ** 2",
        "weights = 0.125 * (vectors.T @ h) ** 2",
        "half of the linear term of the dual",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "[:, -1].max()) * (1 + _RELATIVE_ROUNDING)",
        "[:, -1].max())",
        "eigenvalues without their rounding margin",
        _HERE + "test_relaxed_forms_are_above_their_exact_eigenvalue",
    ),
    Mutation(
        _RELAXATION,
        "for sign in (1, -1)])",
        "for sign in (1,)])",
        "squared ReLU: one sign only",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    Mutation(
        _RELAXATION,
        "max(_bound_one_side(Z, c), _bound_one_side(Z, -c), 0.0)",
        "max(_bound_one_side(Z, c), 0.0)",
        "one sign only",
        _HERE + "test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it",
    ),
    # Kernels.
    Mutation(
        _HARD_KERNEL,
        "rounding = bound_sums(len(dual), entry_error)",
        "rounding = 0.0",
        "kernel margins without rounding",
        _HERE + "test_kernel_brackets_hold_the_exact_margin_of_two_nearly_parallel_samples",
    ),
    Mutation(
        _TWO_LAYER,
        "_NEARLY_PARALLEL = 0.99",
        "_NEARLY_PARALLEL = 1 - 1e-6",
        "angles of 1e-3 from cosines alone",
        "tests/test_kernel_rounding.py::test_entries_are_as_exact_as_they_say",
    ),
    Mutation(
        _HARD_KERNEL,
        "margin, upper = round_down(margin * unit), round_up(upper * unit)",
        "margin, upper = float(margin * unit), float(upper * unit)",
        "margins near the least float rounded to the nearest",
        "tests/test_kernel_rounding.py::"
        "test_brackets_hold_the_margin_of_a_sample_near_the_least_float",
    ),
    Mutation(
        _HARD_KERNEL,
        "float(np.sqrt(max(square, 0.0) + slack))",
        "float(np.sqrt(max(square, 0.0)))",
        "the kernel's upper bound without its rounding margin",
        _HERE + "test_kernel_brackets_hold_the_exact_margin_of_two_nearly_parallel_samples",
    ),
    Mutation(
        _HARD_KERNEL,
        "float((outputs - rounding * total * lengths).min())",
        "float((outputs - rounding * total * lengths).mean())",
        "the mean margin instead of the least",
        _HERE + "test_kernel_margins_are_attained",
    ),
    Mutation(
        _HINGE,
        "lower = max(shrink * total - 0.5 * shrink**2 * square, 0.0)",
        "lower = max(shrink * total - 0.25 * shrink**2 * square, 0.0)",
        "the soft margin's dual with a quarter of the square",
        _HERE + "test_soft_kernel_margins_of_one_sample",
    ),
    Mutation(
        _HINGE,
        "shrink = min(1.0, total / square)",
        "shrink = max(1.0, total / square)",
        "dual weights scaled beyond the cap C",
        _HERE + "test_soft_kernel_margins_of_one_sample",
    ),
    Mutation(
        _SOFT_KERNEL,
        "caps = caps * matrix.scale",
        "caps = 1.5 * caps * matrix.scale",
        "the cap in other units than the kernel",
        _HERE + "test_soft_kernel_margins_of_one_sample",
    ),
    Mutation(
        _KERNEL_MATRIX,
        "return bound_sums(len(V), self.entry_error) * sizes",
        "return 0.0 * sizes",
        "soft margins without the rounding of the outputs",
        _ENGINE + "test_a_huge_cost_does_not_hide_rounding",
    ),
    Mutation(
        _EXTENDED,
        "((a * c - product) + a * d + b * c) + b * d",
        "((product - a * c) + a * d + b * c) + b * d",
        "the roundings of products with the wrong sign",
        _ENGINE + "test_products_in_longer_floats_are_as_exact_as_they_say",
    ),
    Mutation(
        _EXTENDED,
        "errors + 2 * float(np.finfo(np.longdouble).eps) * np.abs(total).astype(float)",
        "1e-3 * errors",
        "longer floats that claim to round nothing",
        _ENGINE + "test_products_in_longer_floats_are_as_exact_as_they_say",
    ),
    Mutation(
        _EXTENDED,
        "errors = 2 * (depth * _EPS) ** 2",
        "errors = 2 * (depth * _EPS) ** 4",
        "longer floats that bound the result's rounding only",
        _ENGINE + "test_where_a_product_cancels_longer_floats_err_by_what_they_say",
    ),
    Mutation(
        _HARD_KERNEL,
        "norm / total",
        "norm / total * (1 - 1e-7)",
        "the bound in longer floats a little below what it proves",
        _ENGINE + "test_a_margin_of_the_size_of_rounding_is_judged_in_longer_floats",
    ),
    Mutation(
        _HARD_KERNEL,
        "float((outputs - errors).min()) / norm",
        "float((outputs + errors).max()) / norm",
        "the largest margin in longer floats instead of the least",
        _ENGINE + "test_a_margin_of_the_size_of_rounding_is_judged_in_longer_floats",
    ),
    Mutation(
        _SOFT_KERNEL,
        "hinges = np.maximum(1 - (y * outputs - errors), 0.0)",
        "hinges = np.maximum(0.999 - (y * outputs - errors), 0.0)",
        "hinge losses in longer floats that begin too late",
        _ENGINE + "test_a_huge_cost_does_not_hide_rounding",
    ),
    Mutation(
        _HINGE,
        "caps @ hinges * sums",
        "caps.mean() * hinges.sum() * sums",
        "hinge losses at the mean cost of the samples",
        _ENGINE + "test_brackets_count_each_sample_at_its_own_cost",
    ),
    Mutation(
        _KERNEL_PROBLEM,
        "_NEGATIVE_EIGENVALUE = 1e-9",
        "_NEGATIVE_EIGENVALUE = 1e-4",
        "kernels that are not positive semidefinite pass",
        _HERE + "test_kernels_with_a_small_negative_eigenvalue_are_refused",
    ),
    Mutation(
        _CONTRADICTIONS,
        "ENTRY_ROUNDING = 2.0**-52",
        "ENTRY_ROUNDING = 1e-10",
        "a kernel whose bound is 1e-5 of its samples is called not separable",
        _PROVED + "test_a_kernel_matrix_is_judged_by_the_samples_with_weight",
    ),
    Mutation(
        _CONTRADICTIONS,
        "return pairs[np.logical_and.reduce(equal).all(1)]",
        "return pairs",
        "directions that are equal in 16 digits are one",
        _PROVED + "test_nearly_equal_directions_are_no_contradiction",
    ),
    Mutation(
        _CONTRADICTIONS,
        "used = opposites[y[opposites[:, 0]] != y[opposites[:, 1]]]",
        "used = opposites",
        "samples x and -x of one label count as one sample of a linear function",
        _PROVED + "test_nets_without_a_bias_fail_on_lines_of_opposite_labels_only",
    ),
    Mutation(
        _HULL,
        "return p if size < 0.5 and moved < (1 - size) * p.min() else None",
        "return p",
        "weights whose sum is not 0 prove that nothing separates the samples",
        _PROVED + "test_hulls_that_miss_0_by_a_rounding_are_not_proved_to_hold_it",
    ),
    Mutation(
        _HULL,
        "if table[-1, -1] == 0:",
        "if True:",
        "weights of any sum prove that nothing separates the samples",
        _PROVED + "test_hulls_that_miss_0_by_a_rounding_are_not_proved_to_hold_it",
    ),
    # Linear and logistic.
    Mutation(
        _LINEAR,
        'dual_norm = "l2" if self.norm == "l2" else "max"',
        'dual_norm = "max"',
        "the l2 margin bounded in the norm of l1",
        _HERE + "test_linear_margins_in_closed_form",
    ),
    Mutation(
        _LINEAR,
        "least = (outputs - errors).min()",
        "least = (outputs + errors).mean()",
        "the mean linear margin instead of the least",
        _HERE + "test_linear_margins_in_closed_form",
    ),
    Mutation(
        _LOGISTIC_COLUMNS,
        "p = p * min(1.0, self._cost / largest) if largest > 0 else p\n        # Where p",
        "# Where p",
        "the dual objective at weights that are not feasible",
        _HERE + "test_search_alone_proves_nothing",
    ),
    Mutation(
        _LOGISTIC,
        "(data.longest**2, regularization / data.longest**2)",
        "(data.longest**2, regularization / data.longest)",
        "squared ReLU: the cost of a neuron in the wrong unit",
        _HERE + "test_logistic_optima_are_proved_by_their_dual",
    ),
    Mutation(
        _LOGISTIC_COLUMNS,
        "self._offer(p, found.upper_bound, found.proof)",
        "self._offer(p, self._searched, found.proof)",
        "the best value of the search taken for a proved one",
        _HERE + "test_search_alone_proves_nothing",
    ),
    Mutation(
        _LOGISTIC_COLUMNS,
        "bound = self._bound(p, largest * (1 + _RELATIVE_ROUNDING))",
        "bound = self._bound(p, 0.999 * largest)",
        "weights scaled a thousandth beyond what is feasible",
        _HERE + "test_logistic_optima_are_proved_by_their_dual",
    ),
    Mutation(
        _SQUARED_COLUMNS,
        "largest = largest * (1 + _RELATIVE_ROUNDING)",
        "largest = 0.999 * largest",
        "residuals scaled a thousandth beyond what is feasible",
        "tests/test_regressor.py::test_the_bracket_is_attained_and_proved",
    ),
    Mutation(
        _SQUARED_COLUMNS,
        "return float((p * self._target - p**2 / 2).mean() - hidden)",
        "return float((p * self._target - p**2 / 4).mean())",
        "the dual objective with half of its square",
        "tests/test_regressor.py::test_the_bracket_is_attained_and_proved",
    ),
    Mutation(
        _SQUARED_COLUMNS,
        "return self._slopes() / len(self._target)",
        "return 0.9 * self._slopes() / len(self._target)",
        "neurons priced at smaller residuals than the bound is of",
        "tests/test_targets.py::test_targets_bracket_the_optimum_of_every_problem",
    ),
    # Margins of the variation norm.
    Mutation(
        _F1,
        "lower = min(1 / (problem.upper * scale), objective)",
        "lower = objective",
        "the soft margin's objective is its own lower bound",
        _HERE + "test_search_alone_proves_nothing",
    ),
    Mutation(
        _RESTRICTED,
        "return float(np.abs(dual).max()) / self.rows.slack_cost",
        "return 0.0",
        "what slacks promise is missing in the soft margin's bound",
        _HERE + "test_soft_margins_are_proved_by_their_dual",
    ),
    Mutation(
        _RESTRICTED,
        "np.abs(self.values(U, dual)) > self.t * (1 + _IMPROVES) + _IMPROVES_AT_LEAST",
        "np.abs(self.values(U, dual)) > self.t * (1 + 1e-2) + _IMPROVES_AT_LEAST",
        "neurons that help a little are not added",
        _HERE + "test_margins_of_orthogonal_points",
    ),
    Mutation(
        _COLUMNS,
        "return Bracket(self.t, self.upper)",
        "return Bracket(self.t, self.local_upper)",
        "what search found taken for what is proved",
        _HERE + "test_search_alone_proves_nothing",
    ),
    Mutation(
        _DUALS,
        "total = float(self.dual.sum()) + _ABSOLUTE_ROUNDING",
        "total = 0.1 * float(self.dual.sum())",
        "a first bound that was never proved",
        _HERE + "test_margins_of_orthogonal_points",
    ),
    # The judge of all brackets.
    Mutation(
        _JUDGE,
        "elif bracket.gap <= tol:",
        "elif bracket.gap <= 10 * tol:",
        "brackets ten times as wide as the tolerance are certified",
        _JUDGED,
    ),
    Mutation(
        _JUDGE,
        "if bracket.upper <= zero:",
        "if True:",
        "data are called not separable where no margin was found",
        _JUDGED,
    ),
    Mutation(
        _JUDGE,
        "if ended is Status.INTERRUPTED:",
        "if ended is Status.INTERRUPTED and bracket.gap > tol:",
        "Ctrl-C is swallowed where the bracket is closed",
        _JUDGED,
    ),
    Mutation(
        _JUDGE,
        "if ended is Status.TIME_LIMIT:",
        "if False:",
        "a search that was out of time is called stalled",
        _JUDGED,
    ),
    Mutation(
        _JUDGE,
        "(ended if ended is Status.LOCALLY_OPTIMAL else Status.STALLED)",
        "ended",
        "what a search believes is its status without a proof",
        _JUDGED,
    ),
]
