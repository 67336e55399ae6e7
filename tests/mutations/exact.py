"""Mutations of allowances and thresholds, which the judge in exact arithmetic has to see."""

from .mutation import Mutation

TESTS = ["tests/test_exact.py"]


def _row(file: str, old: str, new: str, why: str, door: str) -> Mutation:
    """A mutation that false statements at this door tell of."""
    return Mutation(
        file, old, new, why, killed_by=f"tests/test_exact.py::test_no_statement_is_false[{door}]"
    )


MUTATIONS = [
    _row(
        "result.py",
        "if bracket.upper <= zero:",
        "if bracket.upper <= zero + 1e-9:",
        "a bound of 1e-9 counts as a proof that nothing separates the samples",
        "linear_l1",
    ),
    _row(
        "solvers/linear_search.py",
        "least = (outputs - errors).min() - len(weights) * 2.0**-1074",
        "least = self.signed.dot(weights).min()",
        "attained margins in float64, without the rounding of outputs that cancel",
        "linear_l2",
    ),
    _row(
        "solvers/linear_search.py",
        "sizes = np.abs(sums) + errors + 2.0**-1074",
        "sizes = np.abs(self.signed[used].T @ dual[used])",
        "bounds in float64, without the rounding of sums that cancel",
        "linear_l1",
    ),
    _row(
        "solvers/linear_search.py",
        'dual_norm = "l2" if self.norm == "l2" else "max"',
        'dual_norm = "max"',
        "the bound of the l1 norm for the l2 norm",
        "linear_l2",
    ),
    _row(
        "solvers/hard_kernel.py",
        "zero = float(np.sqrt(ENTRY_ROUNDING)) * float(dual @ matrix.lengths)",
        "zero = 0.1 * float(dual @ matrix.lengths)",
        "a tenth of the features counts as 0",
        "kernel",
    ),
    _row(
        "solvers/hinge_bracket.py",
        "lower = max(shrink * total - 0.5 * shrink**2 * square, 0.0)",
        "lower = max(shrink * total - 0.4999 * shrink**2 * square, 0.0)",
        "less than half the square in the bound of soft margins",
        "kernel_soft",
    ),
    _row(
        "solvers/columns/dual_search.py",
        "upper = max(value, self.restricted.slack_bound(dual)) / unit",
        "upper = value / unit",
        "weights beyond their caps count for nothing",
        "f1_soft",
    ),
    _row(
        "solvers/columns/attainability.py",
        "missed = Fraction(data.y[i]) - ratio * Fraction(data.y[longest])",
        "missed = data.y[i] - data.y[longest]",
        "samples on one ray are asked for equal values",
        "least_norm_l2",
    ),
    _row(
        "kkt/constraint_search.py",
        "above = inner - worst * square",
        "above = inner",
        "the dual vector of a certificate not made feasible",
        "certify",
    ),
    _row(
        "radii/certified.py",
        "within = _divide_gaps(gaps, steepness)",
        "within = 1.01 * _divide_gaps(gaps, steepness)",
        "radii within a linear region 1% too large",
        "radii",
    ),
    _row(
        "result.py",
        "elif bracket.gap <= tol:",
        "elif bracket.gap <= 0.9:",
        "brackets that are open by a factor of ten are certified",
        "linear_l1",
    ),
    _row(
        "result.py",
        "if bracket.lower == math.inf:",
        "if bracket.upper == math.inf:",
        "where no function was found, there is none",
        "least_norm_l1",
    ),
    _row(
        "solvers/interpolation.py",
        "upper = scale * best.bound_exactly(rows, values, _LEAST / scale)",
        "upper = norm",
        "values that are taken to a residual are called taken exactly",
        "least_norm_l1",
    ),
    _row(
        "solvers/hull.py",
        "found = _perturb(A, weights[used] / largest)",
        "found = weights[used] / largest",
        "weights whose sum is 0 to rounding count as a proof that 0 is in the hull",
        "linear_l1",
    ),
    _row(
        "solvers/attained.py",
        "return float(0.5 * mass + costs @ hinges) * (1 + (len(data) + 8) * _ROUNDED)",
        "return float(0.499 * mass + costs @ hinges)",
        "less than half the mass in the objective",
        "f1_soft",
    ),
    _row(
        "solvers/columns/logistic_problem.py",
        "bound = self._bound(p, largest * (1 + _RELATIVE_ROUNDING))",
        "bound = self._bound(p, largest * (1 - 1e-6))",
        "a logistic bound by weights whose responses are too large by a millionth",
        "f1_logistic",
    ),
    _row(
        "kkt/certification.py",
        "epsilon_lower=min(search.lower, found.epsilon)",
        "epsilon_lower=found.epsilon",
        "what is attained is called proved",
        "certify",
    ),
    _row(
        "radii/flips.py",
        "certain = wrong & (bound_margins(judge, x, y) <= 0)",
        "certain = wrong",
        "what is misclassified in float64 is called misclassified",
        "radii",
    ),
    _row(
        "radii/certified.py",
        "gaps = score_margins(net, x, y) - (own + errors)",
        "gaps = 1.01 * score_margins(net, x, y)",
        "gaps 1% too large",
        "radii",
    ),
    _row(
        "solvers/hard_kernel.py",
        "slack = rounding * total * total + _UNDERFLOW",
        "slack = 0.0",
        "squares of norms in a kernel space without their rounding",
        "f2",
    ),
    _row(
        "solvers/hard_kernel.py",
        "least = float((outputs - rounding * total * lengths).min()) - _UNDERFLOW",
        "least = float(outputs.min())",
        "margins in a kernel space without the rounding of outputs",
        "ntk",
    ),
    _row(
        "solvers/kernel_interpolation.py",
        "most = square + (n + 3 * D + 32) * eps * total**2 / D",
        "most = square",
        "norms in a kernel space without their rounding",
        "least_norm_l2",
    ),
]
