"""Mutations of certificates: epsilon, its lower bound, delta, and the bound of Lemma C.8."""

from .mutation import Mutation

TESTS = ["tests/test_sound_certificates.py", "tests/test_certificates.py"]
MUTATIONS = [
    Mutation(
        file="kkt/constraint_search.py",
        old="worst**2 * square",
        new="worst * square",
        why="tau instead of tau squared in the length of the dual vector",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="slopes / (problem.order * gaps)",
        new="slopes / gaps",
        why="tau without the order",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[2-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="above = inner - worst * square",
        new="above = inner",
        why="the dual vector not made feasible in its value",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="below = length - 2 * worst * inner",
        new="below = length - worst * inner",
        why="half the cross term in the length of the dual vector",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="below = length - 2 * worst * inner",
        new="below = length + 2 * worst * inner",
        why="a sign in the length of the dual vector",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="above / math.sqrt(below) if",
        new="math.sqrt(below) if",
        why="the length of the dual vector for the bound",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="self._most), Reach.joined(reaches)",
        new="self._most), reaches[-1]",
        why="tau of the last batch only",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-70]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="worst = max(reach.ends().max().item(), 0.0)",
        new="worst = max(reach.ends().min().item(), 0.0)",
        why="the smallest ratio for the largest",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="self.lower, entering = self._bound(residual)",
        new="self.lower, entering = self._bound(residual, torch.float32)",
        why="a proof in float32",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/certification.py",
        old="epsilon_lower=min(search.lower, found.epsilon)",
        new="epsilon_lower=found.epsilon",
        why="no proof",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="if epsilon - self.lower <= self._tol * problem.norm:",
        new="if len(p):",
        why='"no other multipliers" though they are not best',
        killed_by="tests/test_sound_certificates.py::test_completeness_is_not_said_of_multipliers_that_are_not_best",
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="excess = torch.from_numpy(np.maximum(self.values - 1, 0.0))",
        new="excess = torch.from_numpy(np.maximum(self.values - 1.01, 0.0))",
        why="delta of constraints a bit beyond the margin",
        killed_by=(
            "tests/test_sound_certificates.py::test_no_multipliers_beat_the_lower_bound[4-binary]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="(p * excess).max().item(), p, completeness)",
        new="(p * excess).mean().item(), p)",
        why="the mean for the largest product",
        killed_by=(
            "tests/test_sound_certificates.py::test_no_multipliers_beat_the_lower_bound[4-binary]"
        ),
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="_EULER_TOLERANCE = 1e-6",
        new="_EULER_TOLERANCE = 1e6",
        why="Euler's theorem not checked",
        killed_by=(
            "tests/test_sound_certificates.py::test_gradients_that_are_not_those_of_the_outputs"
        ),
    ),
    Mutation(
        file="kkt/certification.py",
        old="math.sqrt(max(2 - 2 * by_loss.alignment, 0.0))",
        new="math.sqrt(max(1 - by_loss.alignment**2, 0.0))",
        why="epsilon of other multipliers than the lemma's",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="s = q_min * gaps",
        new="s = gaps",
        why="slopes of the loss at the wrong multiple of theta",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="weights = weights * torch.exp(q[:, None] - s)",
        new="weights = weights + 0 * s",
        why="multipliers without the softmax",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[3-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="(weights * (gaps - 1)).where",
        new="(weights * gaps).where",
        why="delta from s instead of s - 1",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="heaviest * problem.norm / length",
        new="heaviest / length",
        why="the lemma's multipliers not lengthened",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="heaviest = max(\n            heaviest,\n            (weights",
        new="heaviest = max(0.0, (weights",
        why="the delta of the last batch",
        killed_by="tests/test_sound_certificates.py::test_multipliers_of_the_loss[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="math.exp(min(math.exp(report.log_loss), 1.0)) if isinstance(loss, Logistic) else 1.0",
        new="1.0",
        why="no factor e^Loss of the logistic loss",
        killed_by=(
            "tests/test_sound_certificates.py::test_bound_of_the_lemma_at_large_losses[1-logistic]"
        ),
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="(problem.constraints.count - 1) * factor",
        new="(problem.constraints.count - 2) * factor",
        why="one constraint less in the lemma",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_is_nearly_attained",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="2 / problem.order * math.log(smoothed",
        new="1 / problem.order * math.log(smoothed",
        why="gamma to the power -1/L",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_at_large_losses[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="math.log(smoothed / report.q_min)",
        new="math.log(report.q_min / smoothed)",
        why="the inverse ratio of smoothed and normalized margin",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_at_large_losses[1-exponential]",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="squared = problem.norm**2 *",
        new="squared = problem.norm *",
        why="the norm instead of its square in the lemma",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_is_nearly_attained",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="/ (math.e * problem.order * smoothed)",
        new="/ (math.e * smoothed * smoothed)",
        why="the margin instead of the order in the lemma",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_is_nearly_attained",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="/ (math.e * problem.order * smoothed)",
        new="/ (math.e**2 * problem.order * smoothed)",
        why="e squared in the lemma",
        killed_by="tests/test_sound_certificates.py::test_bound_of_the_lemma_is_nearly_attained",
    ),
    Mutation(
        file="kkt/loss_multipliers.py",
        old="loss.power == 1",
        new="loss.power >= 1",
        why="the lemma for losses it is not about",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lemma_is_not_claimed_beyond_its_losses"
        ),
    ),
    Mutation(
        file="kkt/problem.py",
        old="math.sqrt(float(k)) / norm_of",
        new="1.0 / norm_of",
        why="layers balanced by 1 instead of sqrt(k)",
        killed_by="tests/test_sound_certificates.py::test_layers_are_balanced_by_their_exponents",
    ),
    Mutation(
        file="kkt/problem.py",
        old="log_q += float(k) * math.log(factor)",
        new="log_q += math.log(factor)",
        why="the margin after rescaling without the exponents",
        killed_by="tests/test_sound_certificates.py::test_layers_are_balanced_by_their_exponents",
    ),
    Mutation(
        file="kkt/problem.py",
        old="factor = math.exp(-log_q / order)",
        new="factor = math.exp(-log_q)",
        why="theta multiplied by 1 / q_min",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[2-0]"
        ),
    ),
    Mutation(
        file="kkt/problem.py",
        old='if k > 0 or norm == "global"))',
        new="if k > 0))",
        why="the order without negative exponents",
        killed_by=(
            "tests/test_sound_certificates.py::test_negative_exponents_count_in_the_global_norm"
        ),
    ),
    Mutation(
        file="kkt/problem.py",
        old="n: p if n in counted else torch.zeros_like(p)",
        new="n: p",
        why="a norm of parameters that do not count",
        killed_by="tests/test_certificates.py::test_partial_norm_counts_only_what_scales",
    ),
    Mutation(
        file="kkt/problem.py",
        old="if report.q_min <= 0:\n            raise",
        new="if report.q_min < 0:\n            raise",
        why="ties called separated",
        killed_by="tests/test_certificates.py::test_bad_input",
    ),
    Mutation(
        file="kkt/problem.py",
        old='if norm == "global" and not homogeneity.whole:',
        new='if norm == "global" and False:',
        why="nets that are not homogeneous",
        killed_by="tests/test_certificates.py::test_partial_norm_counts_only_what_scales",
    ),
    Mutation(
        file="homogeneity/answer.py",
        old="bool(parameters[name].detach().any())",
        new="bool((parameters[name].detach() > 0).any())",
        why="negative later biases called absent",
        killed_by="tests/test_sound_certificates.py::test_later_biases_of_either_sign_are_refused",
    ),
    Mutation(
        file="kkt/constraints.py",
        old="return len(self.scored) * max(self.outputs - 1, 1)",
        new="return len(self.scored)",
        why="the number of constraints without classes",
    ),
    Mutation(
        file="kkt/constraints.py",
        old="weights.scatter_(1, chosen.classes[:, None], -1.0)",
        new="weights.scatter_(1, chosen.classes[:, None], 0.0)",
        why="a score instead of a difference of scores",
        killed_by=(
            "tests/test_sound_certificates.py::test_no_multipliers_beat_the_lower_bound[1-classes]"
        ),
    ),
    Mutation(
        file="kkt/constraints.py",
        old="score_gaps(slope, y).nan_to_num(posinf=0.0)",
        new="score_gaps(slope, y).nan_to_num(posinf=0.0).clamp(max=0.0)",
        why="positive slopes forgotten",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/constraints.py",
        old="score_gaps(value, y),\n                score_gaps(slope",
        new="score_gaps(value, y).abs() + 1, score_gaps(slope",
        why="other values in the dual constraints",
        killed_by=(
            "tests/test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane[1-0]"
        ),
    ),
    Mutation(
        file="kkt/multipliers.py",
        old="np.where(p <= 0, slope, -slope)",
        new="np.where(p <= 0, slope, 0.0)",
        why="multipliers at their upper bound never released",
    ),
    Mutation(
        file="kkt/multipliers.py",
        old="return np.minimum(p, limit)",
        new="return p",
        why="multipliers beyond their bound by rounding",
        killed_by="tests/test_sound_certificates.py::test_bounds_of_multipliers_hold_exactly_and_are_left_again",
    ),
    Mutation(
        file="kkt/multipliers.py",
        old="c[used] / size, upper[used] * size",
        new="c[used] / size, upper[used] / size",
        why="upper bounds scaled the wrong way",
        killed_by="tests/test_sound_certificates.py::test_trade_off_equals_bounded_least_squares",
    ),
    Mutation(
        file="kkt/certificate.py",
        old="delta / np.maximum(excess, 1e-300)",
        new="2 * delta / np.maximum(excess, 1e-300)",
        why="doubled bounds of the multipliers in the trade-off",
        killed_by="tests/test_sound_certificates.py::test_trade_off_equals_bounded_least_squares",
    ),
    Mutation(
        file="kkt/certificate.py",
        old="np.where(excess > 1e-12,",
        new="np.where(excess > 1e-1,",
        why="constraints beyond the margin not bounded in the trade-off",
        killed_by="tests/test_sound_certificates.py::test_trade_off_equals_bounded_least_squares",
    ),
    Mutation(
        file="kkt/certificate.py",
        old="self.norm**2 - 2 * linear @ p",
        new="self.norm**2 - 2.1 * linear @ p",
        why="epsilon too small in the trade-off",
        killed_by="tests/test_sound_certificates.py::test_trade_off_equals_bounded_least_squares",
    ),
    Mutation(
        file="kkt/subgradients.py",
        old="_STEP_SHARES = (1.0, -1.0,",
        new="_STEP_SHARES = (2.0, -2.0,",
        why="gradients from beyond the radius",
        killed_by=(
            "tests/test_sound_certificates.py::test_gradients_come_from_within_the_radius[0.01]"
        ),
    ),
    Mutation(
        file="kkt/subgradients.py",
        old="step = radius * share * problem.norm / norm_of(direction)",
        new="step = radius * share * problem.norm",
        why="steps that are not of the length that is said",
        killed_by=(
            "tests/test_sound_certificates.py::test_gradients_come_from_within_the_radius[0.01]"
        ),
    ),
    Mutation(
        file="kkt/subgradients.py",
        old="z.square().mean().sqrt()",
        new="z.abs().max()",
        why="the largest for the root mean square pre-activation",
        killed_by="tests/test_sound_certificates.py::test_share_of_kinks[0.01]",
    ),
    Mutation(
        file="kkt/subgradients.py",
        old="    finally:\n        constraints.move_to(centre)",
        new="    finally:\n        pass",
        why="the net left at the last point that was tried",
        killed_by="tests/test_sound_certificates.py::test_share_of_kinks[0.01]",
    ),
    Mutation(
        file="kkt/svm.py",
        old="cosine = problem.order * float",
        new="cosine = float",
        why="the cosine without the order",
        killed_by="tests/test_sound_certificates.py::test_tangent_machine_of_a_kkt_point",
    ),
    Mutation(
        file="kkt/svm.py",
        old="TangentSVM(\n        cosine,\n        solution.margin,",
        new="TangentSVM(cosine, 2 * solution.margin,",
        why="twice the margin of the support vector machine",
        killed_by="tests/test_sound_certificates.py::test_tangent_machine_of_a_kkt_point",
    ),
    Mutation(
        file="kkt/rounding.py",
        old="_ALLOWANCE = 32",
        new="_ALLOWANCE = 0.01",
        why="rounding taken for a hundredth of what it changed",
        killed_by="tests/test_sound_certificates.py::test_rounding_is_allowed_for",
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="p * lengths > _NEGLIGIBLE_SHARE * problem.norm",
        new="p > _NEGLIGIBLE_SHARE * p.max()",
        why="multipliers without the lengths of their gradients",
        killed_by="tests/test_sound_certificates.py::test_small_multipliers_of_long_gradients_count",
    ),
    Mutation(
        file="kkt/problem.py",
        old="if error >= q_min:",
        new="if error >= 1e9 * q_min:",
        why="margins that are rounding",
        killed_by="tests/test_sound_certificates.py::test_a_margin_that_rounding_made_is_none",
    ),
    Mutation(
        file="kkt/constraint_search.py",
        old="ratio = torch.full_like(ratio, math.inf)",
        new="pass",
        why="gaps that overflow taken for none",
        killed_by="tests/test_sound_certificates.py::test_no_bound_where_gaps_overflow",
    ),
    Mutation(
        file="kkt/problem.py",
        old="largest_share(spread, term_sizes) * term_sizes",
        new="0 * term_sizes",
        why="a change that is small by chance taken for what rounding does",
        killed_by="tests/test_sound_certificates.py::test_a_change_that_is_small_by_chance",
    ),
    Mutation(
        file="kkt/problem.py",
        old="return error / q_min",
        new="return 0.0",
        why="smallest margins called exact",
        killed_by="tests/test_sound_certificates.py::test_rounding_is_allowed_for",
    ),
]
