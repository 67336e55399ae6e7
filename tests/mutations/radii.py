"""Mutations of certified radii: Lipschitz constants, radii, what is certified at all, and
attacks.
"""

from .mutation import Mutation

TESTS = [
    "tests/test_radii_rounding.py",
    "tests/test_sound_radii.py",
    "tests/test_robustness.py",
    "tests/test_attacks.py",
    "tests/test_exact_radii_inequalities.py",
    "tests/test_exact_radii_proof.py",
    "tests/test_exact_radii_patterns.py",
    "tests/test_exact_radii_search.py",
    "tests/test_exact_radii_rounds.py",
]
MUTATIONS = [
    Mutation(
        file="radii/lipschitz.py",
        old="k if d > 1 else math.ceil(k / s)",
        new="k if d > 1 else k // s",
        why="windows of a max-pool that an input lies in, rounded down",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " strides that do not divide]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="k if d > 1 else math.ceil(k / s)",
        new="math.ceil(k / s)",
        why="dilated max-pools counted as undilated",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " dilated]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="math.sqrt(math.prod(windows))",
        new="math.sqrt(max(windows))",
        why="windows of a max-pool along one dimension only",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " both dimensions]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="math.sqrt(math.prod(windows))",
        new="1.0",
        why="overlapping max-pools called contractions",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " strides that do not divide]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="max(1.0, abs(layer.negative_slope))",
        new="1.0",
        why="steep LeakyReLUs called contractions",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="max(1.0, abs(layer.negative_slope))",
        new="max(1.0, layer.negative_slope)",
        why="steep negative slopes of LeakyReLUs forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep and falling]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="2**0.5 if outputs > 1 else 1.0",
        new="1",
        why="no sqrt(2) for a difference of two scores behind a nonlinear layer",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[two"
            " scores that end nonlinearly]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="s >= k for k, s",
        new="s > 0 for k, s",
        why="overlapping average pools called contractions",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[averages"
            " that overlap]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="all(\n            s >= k for k, s",
        new="any(\n            s >= k for k, s",
        why="average pools that overlap along one dimension called contractions",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[averages"
            " that overlap along one dimension]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="layer.divisor_override is None\n        and ",
        new="",
        why="sums called means",
        killed_by="tests/test_robustness.py::test_large_layers_without_a_bound",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old='layer.padding_mode == "zeros"',
        new='layer.padding_mode != "reflect"',
        why="circular padding bounded as if it left inputs out",
        killed_by="tests/test_robustness.py::test_large_layers_without_a_bound",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="norm(row - rows) for row in rows",
        new="norm(rows) for row in rows",
        why="a score instead of a difference of scores",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[two"
            " scores that move apart]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="norms.append(\n                operator_norm(part, h)\n                if linear",
        new="norms.append(1.0 if linear",
        why="the last layer alone",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " strides that do not divide]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="math.prod(kink_constant(layer) for layer in part)",
        new="max(kink_constant(layer) for layer in part)",
        why="consecutive nonlinear layers counted once",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU"
            " twice]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old=" * growth * _ROUNDING",
        new="",
        why="no growth of the symbol between grid frequencies",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[convolution,"
            " large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="(k - 1) / 2 / size",
        new="(k - 1) / 4 / size",
        why="half the degree in the growth between grid frequencies",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[convolution,"
            " large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="growth = math.prod(1 / math.cos",
        new="growth = max(1 / math.cos",
        why="growth between grid frequencies along one dimension only",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[convolution,"
            " large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="size = max(_LEAST_FREQUENCIES, 8 * max(layer.kernel_size))",
        new="size = _LEAST_FREQUENCIES",
        why="kernels larger than the frequency grid cut off",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[convolution"
            " with a large kernel]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="return max(norms)",
        new="return min(norms)",
        why="the frequency or group of smallest norm",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[convolution,"
            " large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="size = layer.weight.abs()",
        new="size = layer.weight.clamp(min=0)",
        why="negative weights of a batch norm forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[batch"
            " norm and convolution, large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="_scales_of_batch_norm(layer).max()",
        new="_scales_of_batch_norm(layer).mean()",
        why="the mean weight of a batch norm",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[batch"
            " norm and convolution, large]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="return largest * math.sqrt",
        new="return math.sqrt",
        why="norm of the rescaled matrix",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="factors.append(operator_norm([layer], x))",
        new="factors = [operator_norm([layer], x)]",
        why="only the last of large linear layers",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[batch"
            " norm and convolution, large]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="lipschitz = multiply_norms(norms,",
        new="lipschitz = multiply_norms(norms[-1:],",
        why="only the last linear stretch",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="return _matrix_norm(layer.weight if outputs <= inputs else layer.weight.T)",
        new="return layer.weight.abs().sum(1).max().item()",
        why="another norm of large linear layers",
        killed_by="tests/test_sound_radii.py::test_products_of_large_linear_layers",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="net._forward_hooks or net._forward_pre_hooks or",
        new="net._forward_hooks or",
        why="hooks that change the input",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[hook"
            " before a ReLU]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old=' or "forward" in vars(net)',
        new="",
        why="layers whose forward was replaced",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[a"
            " layer with a forward of its own]"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="type(net) in (*_LINEAR, *_NONLINEAR)",
        new="isinstance(net, (*_LINEAR, *_NONLINEAR))",
        why="subclasses taken for the layer",
        killed_by="tests/test_robustness.py::test_nothing_is_certified_that_is_not_a_chain",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="_ROUNDING = 1 + 1e-9",
        new="_ROUNDING = 1.0",
        why="no margin for the rounding of norms",
        killed_by="tests/test_sound_radii.py::test_lipschitz_constants_in_exact_arithmetic[linear]",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="layer.running_var is None",
        new="layer.affine is None",
        why="batch norms that normalize by the batch",
        killed_by="tests/test_robustness.py::test_nothing_is_certified_that_is_not_a_chain",
    ),
    Mutation(
        file="radii/certified.py",
        old="y) - (own + errors)",
        new="y) + (own + errors)",
        why="rounding added to a gap",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-0.0]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="y) - (own + errors)",
        new="y)",
        why="rounding of a gap forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-17]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="torch.where(gaps.amin(1) > 0, radii.amin(1), 0.0)",
        new="radii.amin(1)",
        why="radii of misclassified samples",
        killed_by="tests/test_sound_radii.py::test_ties_are_misclassified",
    ),
    Mutation(
        file="radii/certified.py",
        old="lipschitz[y] if",
        new="lipschitz[0 * y] if",
        why="the constants of class 0 for all",
        killed_by="tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point",
    ),
    Mutation(
        file="radii/certified.py",
        old="(nn.MaxPool1d, nn.MaxPool2d, nn.Tanh,",
        new="(nn.Tanh,",
        why="MaxPool called piecewise linear with known kinks",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[max-pool,"
            " next piece]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="nn.MaxPool2d, nn.Tanh, nn.ReLU6",
        new="nn.MaxPool2d, nn.ReLU6",
        why="Tanh called piecewise linear",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[two"
            " steep layers]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="nn.Tanh, nn.ReLU6, nn.Hardtanh",
        new="nn.Tanh, nn.Hardtanh",
        why="the upper kink of ReLU6 forgotten",
        equivalent="torch's ReLU6 is a Hardtanh, which is excluded as well",
    ),
    Mutation(
        file="radii/certified.py",
        old="nn.ReLU6, nn.Hardtanh)",
        new="nn.ReLU6)",
        why="the kinks of Hardtanh forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[Hardtanh,"
            " flat here]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="isinstance(layer, (nn.ReLU, nn.LeakyReLU))",
        new="isinstance(layer, nn.ReLU)",
        why="the kinks of LeakyReLU forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="1).amin(1, keepdim=True)",
        new="1).nanquantile(0.25, 1, keepdim=True)",
        why="a region that some units leave",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="(gaps - region * steepness).clamp(min=0), constants",
        new="gaps, constants",
        why="the way to the end of the region counted for nothing",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="torch.where(within <= region, within, after)",
        new="within",
        why="the slope of the region beyond it",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="torch.where(within <= region, within, after)",
        new="torch.maximum(within, after)",
        why="the larger of both estimates",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="= own - score_slopes, norm",
        new="= own, norm",
        why="the slope of a score for that of a difference",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[two"
            " scores that move apart]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old=" + _ROUNDING * (sizes + constants)",
        new="",
        why="no margin for the rounding of slopes",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling slopes-0.0]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="at / torch.where(steep > 0, steep, 1.0), torch.inf",
        new="at, torch.inf",
        why="pre-activations taken for distances",
        killed_by=(
            "tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point[LeakyReLU,"
            " steep]"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="own = errors.gather(1, y[:, None])",
        new="own = 0 * errors.gather(1, y[:, None])",
        why="rounding of the own score forgotten",
        killed_by="tests/test_sound_radii.py::test_radii_in_exact_arithmetic",
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="_ROUNDING * differences + (errors[:, None] + errors)",
        new="_ROUNDING * differences",
        why="no margin for the rounding of a difference of rows",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling slopes-0.0]"
        ),
    ),
    Mutation(
        file="radii/products.py",
        old="UNIT_ROUNDOFF = 2.0**-52",
        new="UNIT_ROUNDOFF = 2.0**-62",
        why="a unit roundoff that is not that of float64",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-15]"
        ),
    ),
    Mutation(
        file="radii/rounding.py",
        old="(errors / share + x.abs())",
        new="(errors / share)",
        why="no rounding within a layer",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-17]"
        ),
    ),
    Mutation(
        file="radii/rounding.py",
        old="(errors / share + x.abs())",
        new="(x.abs())",
        why="no error of what enters a layer",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-17]"
        ),
    ),
    Mutation(
        file="radii/products.py",
        old="                values.abs_()\n",
        new="                pass\n",
        why="errors that cancel",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-15]"
        ),
    ),
    Mutation(
        file="radii/products.py",
        old='if name in ("weight", "bias"):',
        new='if name == "bias":\n                values.zero_()\n            elif name == "weight":',
        why="rounding of biases forgotten",
        equivalent=(
            "what a bias is added to, or the sum, is half as large or larger, and 16 roundings of"
            " each are counted"
        ),
    ),
    Mutation(
        file="radii/products.py",
        old="values.abs_().neg_()",
        new="values.zero_()",
        why="rounding of means forgotten",
        equivalent=(
            "what a mean is subtracted from, or the difference, is half as large or larger, and 16"
            " roundings of each are counted"
        ),
    ),
    Mutation(
        file="radii/lipschitz.py",
        old="(0.0 if exact else multiply_absolute(layers, x).error)",
        new="0.0",
        why="the rounding of layers that are multiplied out",
        killed_by="tests/test_radii_rounding.py::test_products_of_layers_that_cancel[relu-None]",
    ),
    Mutation(
        file="radii/certified.py",
        old="norm(slopes.flatten(2)) + unit_errors",
        new="norm(slopes.flatten(2))",
        why="the rounding of the slopes of units",
        equivalent=(
            "times the layers after it, the error of a unit's slope is also in that of the score's"
        ),
    ),
    Mutation(
        file="radii/certified.py",
        old="(sizes + constants) + rounded",
        new="(sizes + constants)",
        why="the rounding of slopes through layers that are multiplied out",
        killed_by="tests/test_radii_rounding.py::test_products_of_layers_that_cancel[linear-None]",
    ),
    Mutation(
        file="radii/rounding.py",
        old="kink_constant(layer) * errors",
        new="errors",
        why="errors behind steep LeakyReLUs",
        killed_by="tests/test_sound_radii.py::test_radii_in_exact_arithmetic",
    ),
    Mutation(
        file="radii/rounding.py",
        old="norms[index] * before + ",
        new="",
        why="errors from before a stretch forgotten",
        killed_by=(
            "tests/test_sound_radii.py::test_radii_in_exact_arithmetic[cancelling inputs-1e-17]"
        ),
    ),
    Mutation(
        file="radii/boundary.py",
        old="points = points.clamp(*box) if box else points",
        new="points = points",
        why="points not clipped to the box",
        killed_by="tests/test_sound_radii.py::test_attacks_are_judged[outside the box]",
    ),
    Mutation(
        file="radii/attacks.py",
        old="points = points.clamp(*box) if box else points",
        new="points = points",
        why="random points not clipped to the box",
        equivalent=(
            "a hit is clipped and judged again: at worst fewer points are found, and no radius is"
            " wrong"
        ),
    ),
    Mutation(
        file="radii/boundary.py",
        old=".clamp(*box).reshape_as(x)",
        new=".reshape_as(x)",
        why="steps along the tangent that leave the box",
        killed_by="tests/test_attacks.py::test_points_lie_in_the_box",
    ),
    Mutation(
        file="radii/boundary.py",
        old="behind = lacking <= 0",
        new="behind = lacking <= torch.inf",
        why="points that are misclassified by rounding alone",
        killed_by="tests/test_radii_rounding.py::test_a_flip_of_rounding_alone_is_none",
    ),
    Mutation(
        file="radii/boundary.py",
        old="found = x + one_each(high, x)",
        new="found = x + one_each(low, x)",
        why="the end of a bracket that is classified correctly",
        equivalent="after 48 bisections both ends are the same to 4e-15",
    ),
    Mutation(
        file="radii/boundary.py",
        old="one_each(wrong, x), aim,",
        new="one_each(wrong | True, x), aim,",
        why="aims that are not misclassified",
    ),
    Mutation(
        file="radii/boundary.py",
        old="return norm((points - x).flatten(1)) * (1 + share)",
        new="return (points - x).flatten(1).abs().amax(1)",
        why="largest difference of an entry for the distance",
        killed_by="tests/test_sound_radii.py::test_attacks_are_judged",
    ),
    Mutation(
        file="radii/boundary.py",
        old=".masked_fill(~wrong, torch.inf), points",
        new=".masked_fill(wrong, torch.inf), points",
        why="the points that are classified correctly",
        killed_by="tests/test_attacks.py::test_linear_nets_to_the_last_digits",
    ),
    Mutation(
        file="radii/boundary.py",
        old="slope.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)",
        new="slope",
        why="gradients that are no numbers",
        killed_by="tests/test_attacks.py::test_gradients_that_are_no_numbers",
    ),
    Mutation(
        file="radii/walks.py",
        old="points[lost] = self._scale_outwards(x[lost], y[lost], walked.last[lost])",
        new="pass",
        why="walks that end short of the boundary are lost",
        killed_by="tests/test_attacks.py::test_boundaries_beyond_the_first_order",
    ),
    Mutation(
        file="radii/walks.py",
        old="min(_CANDIDATES, others.shape[1] - 1)",
        new="1",
        why="only the class of second largest score",
        killed_by="tests/test_attacks.py::test_no_weaker_than_the_attacks_of_foolbox",
    ),
    Mutation(
        file="radii/walks.py",
        old="z = x + _rescale(z - x, reach)",
        new="pass",
        why="walks that are not brought back to the sphere",
        killed_by="tests/test_attacks.py::test_no_weaker_than_the_attacks_of_foolbox",
    ),
    Mutation(
        file="radii/walks.py",
        old="self.nearest = torch.where(one_each(distance < self.best, x), points, self.nearest)",
        new="self.nearest = points",
        why="the last points for the nearest",
        killed_by="tests/test_attacks.py::test_no_weaker_than_the_attacks_of_foolbox",
    ),
    Mutation(
        file="radii/walks.py",
        old="chain if box is None and chain and has",
        new="chain if chain and has",
        why="regions, which know no box, within a box",
        killed_by="tests/test_attacks.py::test_points_lie_in_the_box",
    ),
    Mutation(
        file="radii/region_search.py",
        old="signs[layer][unit] ^= True",
        new="pass",
        why="neighbours beyond kinks not looked at",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/region_search.py",
        old="1.0 if region.signs[layer][unit] else -1.0",
        new="1.0",
        why="the sides of units that are off",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/region_search.py",
        old="np.where(signs, 1.0, self.chain.slopes[layer])",
        new="np.where(signs, 1.0, 0.0)",
        why="slopes of LeakyReLU forgotten",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/region_search.py",
        old="+ _BEHIND * (kink == _GAP)",
        new="- 1e6 * _BEHIND * (kink == _GAP)",
        why="points just before the boundary",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/region_search.py",
        old="np.where(y > 0, -1.0, 1.0)",
        new="np.where(y > 0, 1.0, -1.0)",
        why="the sign of a net with one output",
        killed_by="tests/test_attacks.py::test_small_nets_against_all_linear_regions",
    ),
    Mutation(
        file="radii/region_search.py",
        old="return bool(added)",
        new="return False",
        why="violated sides added and not looked at",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/region_search.py",
        old="ordered[owners] = rows",
        new="ordered[:] = rows",
        why="rows of one side handed to another",
        killed_by="tests/test_attacks.py::test_descents_end_where_no_neighbour_is_nearer",
    ),
    Mutation(
        file="radii/evaluation.py",
        old="rtol=1e-9, atol=0)",
        new="rtol=1e9, atol=0)",
        why="a net that is not the chain of its layers",
        killed_by="tests/test_sound_radii.py::test_a_net_that_is_not_its_chain",
    ),
    Mutation(
        file="radii/flips.py",
        old="wrong = margins <= 0",
        new="wrong = margins < 0",
        why="ties called correct",
        killed_by="tests/test_sound_radii.py::test_ties_are_misclassified",
    ),
    Mutation(
        file="radii/evaluation.py",
        old='setattr(module, "inplace", False)',
        new='setattr(module, "inplace", True)',
        why="inputs overwritten by activations",
        killed_by="tests/test_sound_radii.py::test_no_radius_exceeds_the_distance_of_a_misclassified_point",
    ),
    Mutation(
        file="radii/report.py",
        old="(radii[None] > epsilons[:, None])",
        new="(radii[None] >= epsilons[:, None])",
        why="misclassified samples called robust at epsilon 0",
        killed_by="tests/test_sound_radii.py::test_ties_are_misclassified",
    ),
    Mutation(
        file="radii/exact/units.py",
        old="curvature = -(al + 2 * be * s + de * s * s)",
        new="curvature = -(al + be * s + de * s * s)",
        why="half of a mixed term in a unit's minimum",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/units.py",
        old="gradient = -(g + e * s + be * o + de * s * o)",
        new="gradient = -(g + e * s + be * o - de * s * o)",
        why="a sign in a unit's minimum",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/units.py",
        old="np.where(anchor >= 0, (slope - 1) * anchor, 0.0)",
        new="np.where(anchor >= 0, slope * anchor, 0.0)",
        why="the graph behind the kink moved",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/units.py",
        old="least = np.minimum(np.minimum(evaluate(low), evaluate(high)), evaluate(vertex.clip(low, high)))",
        new="least = evaluate(vertex.clip(low, high))",
        why="an end of a concave unit's interval forgotten",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="self._add_products(de, t.linear, t.linear)",
        new="pass",
        why="the squares of outputs dropped",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="(g + al * y.constant + be * t.constant) @ y.linear",
        new="(g + be * t.constant) @ y.linear",
        why="a linear term behind fixed units dropped",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="high=np.where(signs == -sign, -np.inf, branch.high)",
        new="high=branch.high",
        why="intervals of fixed units not clipped at the kink",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="np.where(positive, branches[0].offset, branches[1].offset)",
        new="branches[0].offset",
        why="the offset of units fixed behind the kink",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="self.constant = -self.mu * ball.radius**2 / 2",
        new="self.constant = -self.mu * ball.radius**2 / 4",
        why="half of the ball's term",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="lost += float(np.abs(functional) @ ball.output_errors)",
        new="pass",
        why="rounding of the scores forgotten",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_gap_that_may_be_rounding_is_not_proved"
        ),
    ),
    Mutation(
        file="radii/exact/quadratics.py",
        old="if shift > 2 * lost:",
        new="if shift > 0:",
        why="positive definite by a factor that rounding made",
        killed_by=("tests/test_exact_radii_proof.py::test_factors_and_solutions_are_not_trusted"),
    ),
    Mutation(
        file="radii/exact/quadratics.py",
        old=" + bound_length(rest) ** 2 / (2 * least)",
        new="",
        why="a minimum where the gradient is not 0",
        killed_by="tests/test_exact_radii_proof.py::test_factors_and_solutions_are_not_trusted",
    ),
    Mutation(
        file="radii/exact/chain.py",
        old="errors @ size.T + (a + errors) @ self.weight_errors[k].T",
        new="errors @ size.T",
        why="errors of folded weights at the anchor forgotten",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_scores_of_all_nets_within_the_errors_of_a_chain_are_within_its_output_errors"
        ),
    ),
    Mutation(
        file="radii/exact/ball.py",
        old="changes.append(chain.weight_errors[k + 1] @ reach)",
        new="changes.append(np.zeros(len(chain.weights[k + 1])))",
        why="errors of folded weights forgotten away from the anchor",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_scores_of_all_nets_within_the_errors_of_a_chain_are_within_its_output_errors"
        ),
    ),
    Mutation(
        file="radii/exact/boxes.py",
        old="spread = np.abs(other - own) * crossed / 2 + rounding",
        new="spread = np.abs(other - own) * crossed / 3 + rounding",
        why="sectors, and so boxes, too small",
        killed_by=("tests/test_exact_radii_proof.py::test_secants_lie_in_their_sector"),
    ),
    Mutation(
        file="radii/exact/boxes.py",
        old="straight = bound_lengths(self.direct) * self.radius",
        new="straight = 0.99 * bound_lengths(self.direct) * self.radius",
        why="boxes a hundredth too small",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_intervals_are_attained_where_nothing_bends"
        ),
    ),
    Mutation(
        file="radii/exact/first_layer_quadratic.py",
        old="fractions / 2",
        new="fractions / 4",
        why="boxes of the second layer too small",
        killed_by=("tests/test_exact_radii_proof.py::test_intervals_hold_at_sampled_points"),
    ),
    Mutation(
        file="radii/exact/first_layer_quadratic.py",
        old="mu[:, 0] * grown**2 / 2",
        new="mu[:, 0] * grown**2 / 3",
        why="a third of the ball's term in boxes of the second layer",
        killed_by=(
            "tests/test_exact_radii_inequalities.py::test_functionals_of_the_first_layer_are_above_their_bound"
        ),
    ),
    Mutation(
        file="radii/exact/boxes.py",
        old="by_norms += bound_norm(root[:, None] * part * np.sqrt(behind.spread)) * size",
        new="pass",
        why="what the kinks of earlier layers add to a weighted norm",
        killed_by=(
            "tests/test_exact_radii_inequalities.py::test_weighted_norms_of_a_layer_hold_at_sampled_points"
        ),
    ),
    Mutation(
        file="radii/exact/proof.py",
        old="if rival != label",
        new="if rival not in (label, 0)",
        why="a rival left out",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_the_radius_of_a_linear_net_is_proved_up_to_its_distance_and_not_beyond"
        ),
    ),
    Mutation(
        file="radii/exact/proof.py",
        old="        if not _covers(half, signs):\n            return False\n",
        new="",
        why="half of the ball left out",
        killed_by=("tests/test_exact_radii_proof.py::test_regions_must_cover_the_ball"),
    ),
    Mutation(
        file="radii/exact/proof.py",
        old="signs = signs[~((signs * fixed < 0).any(1))]",
        new="pass",
        why="regions of the other half counted",
        killed_by=("tests/test_exact_radii_proof.py::test_regions_must_cover_the_ball"),
    ),
    Mutation(
        file="radii/exact/node_bound.py",
        old="self.linear += last @ t.linear",
        new="self.linear -= last @ t.linear",
        why="the sign of what fixed units of the last layer do",
        killed_by=(
            "tests/test_exact_radii_proof.py::test_a_plain_second_version_agrees_with_the_bound"
        ),
    ),
    Mutation(
        file="radii/exact/leaf.py",
        old="values[LINEAR] = -own",
        new="values[LINEAR] = 0 * own",
        why="the half-spaces of a leaf lost",
        killed_by=(
            "tests/test_exact_radii_patterns.py::test_a_region_without_free_units_is_proved_or_holds_a_misclassified_point"
        ),
    ),
    Mutation(
        file="radii/exact/radius.py",
        old="return min(radii)",
        new="return max(radii)",
        why="the radius of one rival for that of all",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_a_radius_is_that_of_the_rival_with_the_smallest_proof"
        ),
    ),
    Mutation(
        file="radii/exact/node_search.py",
        old="if not begins:",
        new="if True:",
        why="regions without room branched without a search",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_multipliers_without_room_begin_farther_out"
        ),
    ),
    Mutation(
        file="radii/exact/interior_point.py",
        old="return step / 2**halvings",
        new="return step",
        why="steps that leave what is positive definite",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_steps_beyond_the_boundary_are_shortened"
        ),
    ),
    Mutation(
        file="radii/exact/radius.py",
        old="larger = root if known > radius else None",
        new="larger = root",
        why="multipliers of a smaller ball for a larger one",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_balls_begin_with_no_multipliers_of_smaller_ones"
        ),
    ),
    Mutation(
        file="radii/exact/radius.py",
        old="share * 2 ** max(nearer - 1, 0)",
        new="share",
        why="descents from a poor attack by the tolerance at most",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_a_descent_from_a_poor_attack_takes_few_rounds"
        ),
    ),
    Mutation(
        file="radii/exact/radius.py",
        old="        for j in waiting:\n            self._shrink(j, radius, is_over)\n",
        new="",
        why="no smaller ball for rivals that wait for their trees",
        killed_by=(
            "tests/test_exact_radii_rounds.py::test_whole_balls_of_all_rivals_come_before_any_tree"
        ),
    ),
]
