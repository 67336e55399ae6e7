"""Mutations of the homogeneity analysis."""

from .mutation import Mutation

TESTS = ["tests/test_homogeneity.py", "tests/test_almost_homogeneous.py"]

_A = "tests/test_almost_homogeneous.py::"
_H = "tests/test_homogeneity.py::"
_TABLE = _A + "test_no_almost_homogeneous_net_is_called_homogeneous_beyond_its_deviation"
_CASES = _H + "test_analysis_is_right_and_agrees_with_the_judge"
_SEEN = _A + "test_what_was_seen_is_refused_with_the_operation_named"
_DEVIATION = _A + "test_the_deviation_is_what_the_net_does_on_the_samples_it_names"
_OBSERVED = _A + "test_an_operation_without_a_rule_is_observed_where_it_tells_something"
_ESCAPES = _A + "test_values_that_leave_the_graph_are_noticed"
_RANGE = _A + "test_where_an_answer_holds_is_found_on_request"
_BIASES = _A + "test_later_biases_follow_one_rule_in_one_sentence"
_CHECK = _A + "test_a_check_takes_data_in_every_form_and_only_that_net"
_GROUPS = _A + "test_every_group_is_judged_on_its_own"
_USUAL = _A + "test_usual_normalizations_stay_homogeneous_and_say_how_well"
_BATCH = _A + "test_exponents_made_of_a_batch_size_are_no_exponents"
_HALF = _A + "test_half_precision_is_named_and_measured"
_LITTLE = _A + "test_a_rule_that_is_wrong_by_little_is_contradicted"
_GUARD = _A + "test_a_cut_off_guard_is_read_like_an_added_one"

_FEW = _H + "test_a_large_net_is_followed_and_checked_in_few_passes"
_FOLLOW = _H + "test_stored_statistics_follow_as_if_they_were_estimated_again"

_ROWS = [
    # -- how well an answer holds
    ("homogeneity/scaling_check.py", "LARGEST_MISS = 0.01", "LARGEST_MISS = 0.1", _TABLE + "[layer norm]"),
    ("homogeneity/scaling_check.py", "self.exact <= TOLERANCE and self.deviation", "self.deviation", _CHECK),
    ("homogeneity/scaling_check.py", "self.exact <= TOLERANCE and self.deviation <= LARGEST_MISS", "self.exact <= TOLERANCE", _CHECK),
    ("homogeneity/scaling.py", "TOLERANCE = 1e-8", "TOLERANCE = 1e-3", _LITTLE),
    ("homogeneity/scaling.py", "FACTORS = (0.5, 2.0)", "FACTORS = (0.9, 1.1)", _DEVIATION),
    ("homogeneity/scaling.py", "WIDE = (1e-3, 0.5, 1e3)", "WIDE = (0.4, 0.5, 3.0)", _ESCAPES),
    ("homogeneity/scaling.py", "miss if math.isfinite(miss) else math.inf", "miss if math.isfinite(miss) else 0.0", _HALF),
    ("homogeneity/scaling.py", "self._parameters[name] = torch.zeros_like(self._parameters[name])", "pass", _H + "test_ignoring_biases_follows_the_paper"),
    ("homogeneity/scaling.py", "self._parameters[name].mul_(1 / factor)", "pass", _CASES),
    ("homogeneity/float64_mode.py", "result = result.to(asked)", "pass", _HALF),
    ("homogeneity/float64_mode.py", "number = self._precision", "pass", _DEVIATION),
    ("homogeneity/validation.py", "if exact > TOLERANCE:\n            return self._contradict(answer, exact)\n        if (\n            answer.quasi_exponents", "if (\n            answer.quasi_exponents", _LITTLE),
    ("homogeneity/validation.py", "return self._blame_epsilons(answer, derivation)", "pass", _SEEN),
    ("homogeneity/validation.py", "answer = self.settle(replace(derivation, narrow=True), exact)", "pass", _A + "test_what_epsilons_keep_from_being_scale_invariant_is_left_out"),
    ("homogeneity/normalization_rules.py", "if isinstance(added, Tensor) and added.is_floating_point():", "if False:", _CASES),
    ("homogeneity/derivation.py", "others = np.array([not grown.intersection(names) for names in tied])", "others = np.zeros(len(tied))", _CASES),
    ("homogeneity/measurements.py", 'kept = {"neglected": neglected,', 'kept = {"neglected": answer.epsilons,', _USUAL),
    ("homogeneity/measurements.py", "probe = self.probe(answer, x, as_it_is=True, **kept)", "probe = self.probe(answer, x, **kept)", _DEVIATION),
    ("homogeneity/validation.py", "if miss > LARGEST_MISS or last_hope:", "if True:", _A + "test_only_the_epsilon_that_counts_is_blamed"),
    ("homogeneity/validation.py", "[e for e in answer.epsilons if e not in half]", "half", _A + "test_only_the_epsilon_that_counts_is_blamed"),
    ("homogeneity/measurements.py", "self.more = repeat_first_sample(self.traced)", "pass", _BATCH),
    ("homogeneity/samples.py", "_AS_IT_IS_SAMPLES = (2, 32)", "_AS_IT_IS_SAMPLES = (2, 2)", _DEVIATION),
    ("homogeneity/measurements.py", "for self._blank in (False, True):", "for self._blank in (False,):", _CASES),
    ("homogeneity/group_scalings.py", 'exponents.tolist(), strict=True)\n        }', "[exponents[0].item()] * len(answer.groups), strict=True)}", _GROUPS),
    ("homogeneity/group_scalings.py", "(middle, outside) if holds(sign * middle) else (inside, middle)", "(inside, middle) if holds(sign * middle) else (middle, outside)", _RANGE),
    ("homogeneity/group_scalings.py", "_STEPS_PER_DECADE = 4", "_STEPS_PER_DECADE = 0.3", _RANGE),
    ("homogeneity/validation.py", "if kind is Kind.UNKNOWN or blind:", "if kind is Kind.UNKNOWN:", _OBSERVED),
    ("homogeneity/group_scalings.py", "{name: 2 ** draw() for name in answer.groups}", "dict.fromkeys(answer.groups, 2 ** draw())", _GROUPS),
    ("homogeneity/scaling.py", "for name, degree in self._statistics.items():", "for name, degree in ():", _CASES),
    ("homogeneity/derivation.py", "2.0 ** -float(c.difference.under(logs))", "2.0 ** float(c.difference.under(logs))", _FEW),
    # -- what is derived
    ("homogeneity/requirements.py", "(degree, degree * 2)", "(degree, degree)", _FOLLOW),
    ("homogeneity/quasi_exponents.py", "return found.x[:count] > 0.5", "return found.x[:count] > 2", _H + "test_quasi_exponents_leave_out_what_the_net_is_invariant_to"),
    ("homogeneity/quasi_exponents.py", "stuck = raised.x[:count] < _RISE / 2", "stuck = raised.x[:count] < 2 * _RISE", _H + "test_quasi_homogeneity_covers_biases_in_every_layer"),
    ("homogeneity/derivation.py", "return [c for c in self.constraints if c.epsilon is None]", "return []", _CASES),
    ("homogeneity/derivation.py", "c = replace(c, epsilon=None, reason=reason)", "pass", _SEEN),
    ("homogeneity/derivation.py", "if len(tied) > 1:", "if len(tied) > 9:", _CASES),
    ("homogeneity/derivation.py", "if not blockers and order > 0 else self._partial(conditions)", "if not blockers else self._partial(conditions)", _A + "test_outputs_that_do_not_grow_have_no_order"),
    ("homogeneity/derivation.py", "if c.bias not in biases)", "if c.bias is None)", ""),
    # -- what is followed
    ("homogeneity/requirements.py", "if a != b:\n            self.constraints", "if False:\n            self.constraints", _CASES),
    ("homogeneity/trace.py", "return self.escaped or self.degree(outputs)", "return self.degree(outputs)", _ESCAPES),
    ("homogeneity/trace.py", 'if root or (name in ("div", "true_divide") and position == 1):', "if True:", _TABLE + "[h + e]"),
    ("homogeneity/trace.py", "and exponent < 1", "", _SEEN),
    ("homogeneity/trace.py", "epsilon = self._pending_epsilon[storage]", "epsilon = self._pending_epsilon.pop(storage)", _TABLE + "[guard used twice]"),
    ("homogeneity/trace.py", "self._pending_epsilon.pop(self.storage(target), None)", "pass", _GUARD),
    ("homogeneity/trace.py", "if not whole and old != degree and target.is_floating_point():", "if False:", _TABLE + "[overwrites most of e]"),
    ("homogeneity/requirements.py", "if not (a and b):", "if False:", _OBSERVED),
    ("homogeneity/trace.py", "if not exponents:", "if False:", _OBSERVED),
    ("homogeneity/trace.py", "return all(d == scaled[0] for d in scaled)", "return True", _OBSERVED),
    ("homogeneity/modes.py", '"tolist", "numpy", "__array__", "__dlpack__"', '"numpy", "__array__", "__dlpack__"', _ESCAPES),
    ("homogeneity/modes.py", '"tolist", "numpy", "__array__", "__dlpack__"', '"tolist", "__dlpack__"', _ESCAPES),
    ("homogeneity/observation.py", "_DECADES = 6.0", "_DECADES = 0.3", _OBSERVED),
    ("homogeneity/observation.py", "_TOLERANCE = 1e-9", "_TOLERANCE = 1e-1", _OBSERVED),
    ("homogeneity/observation.py", "return None\n        exponents.append(Fraction(math", "exponents.append(Fraction(0))\n            continue\n        exponents.append(Fraction(math", _OBSERVED),
    # -- rules
    ("homogeneity/rules.py", 'trace.invariant(quotient, "rounds a quotient", "divide without rounding")', "quotient", _TABLE + "[rounding division]"),
    ("homogeneity/sum_rules.py", "return _cut_off(trace, value, level, replacement)", "return trace.degree(value)", _TABLE + "[threshold far off]"),
    ("homogeneity/sum_rules.py", "return _cut_off(trace, value, low, high)\n\n\n@rule(\"_local", "return trace.degree(value)\n\n\n@rule(\"_local", _TABLE + "[hardtanh]"),
    ("homogeneity/sum_rules.py", "return _cut_off(trace, value, high)", "return trace.degree(value)", _TABLE + "[clamp_max]"),
    ("homogeneity/sum_rules.py", 'trace.degree(value),\n        trace.degree(number),\n        "fills with', 'trace.degree(value), ZERO, "fills with', _TABLE + "[fills with e]"),
    ("homogeneity/rules.py", 'trace.degree(value), trace.degree(number), "pads with', 'trace.degree(value), ZERO, "pads with', _TABLE + "[pads with e]"),
    ("homogeneity/sum_rules.py", 'trace.invariant(\n        trace.degree(weight), "interpolates', '(trace.degree(weight), "interpolates', _TABLE + "[lerp by weights]"),
    ("homogeneity/sum_rules.py", 'trace.same(\n        trace.degree(a),\n        trace.degree(b),\n        "compares', '(trace.degree(a), trace.degree(b), "compares', _TABLE + "[comparison decides]"),
    ("homogeneity/sum_rules.py", "    return _elementwise(trace, a, b)\n\n\n@rule(\"cat\"", "    return trace.degree(a)\n\n\n@rule(\"cat\"", _TABLE + "[where fills with e]"),
    ("homogeneity/sum_rules.py", 'degree = trace.same(\n                degree,\n                trace.degree(value),\n                "writes', '(degree, trace.degree(value), "writes', _TABLE + "[scatters e]"),
    ("homogeneity/sum_rules.py", "isinstance(value, (int, float)) and value > 0 and trace.degree(other)", "isinstance(value, (int, float)) and trace.degree(other)", _TABLE + "[negative guard]"),
    ("homogeneity/sum_rules.py", "and low > 0 and high is None and trace", "and low > 0 and trace", _TABLE + "[root of a clamp between]"),
    ("homogeneity/rules.py", "if dtype in ROUGH:", "if False:", _TABLE + "[bfloat16]"),
    ("homogeneity/rules.py", 'trace.invariant(\n        degree, f"truncates', '(lambda *_: degree)(degree, f"truncates', _TABLE + "[integers]"),
    ("homogeneity/sum_rules.py", 'trace.escape(value, "item()")', "pass", _ESCAPES),
    ("homogeneity/normalization_rules.py", "trace.neglect(degree, epsilon)", "pass", _USUAL),
    # -- one rule for later biases
    ("homogeneity/answer.py", "if any(bool(parameters[name].detach().any()) for name in self.ignored):", "if False:", _BIASES),
    ("kkt/problem.py", "    if homogeneity.ignored:\n        homogeneity.require_order(twin)", "", _BIASES),
    ("ascent/maximize_margin.py", "    homogeneity.require_order(model)\n    separating", "    separating", _BIASES),
]  # fmt: skip
"""File, text, what replaces it, and the test that notices first, whose name says what is wrong
then.
"""

MUTATIONS = [
    Mutation(
        file,
        old,
        new,
        why=(
            "not " + killer.rpartition("::test_")[2].replace("_", " ")
            if killer
            else "constraints of biases that stay are dropped, too"
        ),
        killed_by=killer,
    )
    for file, old, new, killer in _ROWS
]
