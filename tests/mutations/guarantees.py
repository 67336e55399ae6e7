"""Mutations of what theorems promise: two-layer flows, generalization bounds, weak regularization.

Drawn before `tests/test_sound_guarantees.py` was written.
"""

from .mutation import Mutation

TESTS = ["tests/test_sound_guarantees.py"]

_FIXED = "twolayer/fixed_features.py"
_EARLY = "twolayer/early_margin.py"
_SCHEDULE = "twolayer/perturbation_schedule.py"
_FUNCTIONALS = "twolayer/functionals.py"
_FLOW = "twolayer/perturbed_flow.py"
_PROJECTED = "twolayer/projected_flow.py"
_MIRROR = "twolayer/normalized_nets.py"
_SLACKNESS = "twolayer/slackness.py"
_LAZY = "twolayer/lazy.py"
_SMOOTH = "twolayer/smooth_margin.py"
_BOUND = "bounds/bound.py"
_NETWORKS = "bounds/networks.py"
_RADEMACHER = "bounds/rademacher.py"
_INTERCLASS = "bounds/interclass.py"
_WEAK = "training/weak_regularization.py"

MUTATIONS = [
    # Propositions 6 and 7 of Chizat and Bach: rates with fixed features.
    Mutation(
        _FIXED,
        "(8 * math.log(m) + np.log(t) + 1)",
        "(4 * math.log(m) + np.log(t) + 1)",
        "Prop. 6: 4 log m for 8 log m",
    ),
    Mutation(
        _FIXED,
        "(8 * math.log(m) + np.log(t) + 1)",
        "(8 * math.log(m) + np.log(t))",
        "Prop. 6: the 1 is dropped",
    ),
    Mutation(
        _FIXED,
        "(8 * math.log(m) + np.log(t) + 1)",
        "(8 * math.log(m) + 1)",
        "Prop. 6: log t is dropped",
    ),
    Mutation(
        _FIXED,
        " + 4 * math.log(n) / np.sqrt(t) * sums",
        "",
        "Prop. 6: the term of the smoothing is dropped",
    ),
    Mutation(
        _FIXED,
        "4 * math.log(n) / np.sqrt(t) * sums",
        "math.log(n) / np.sqrt(t) * sums",
        "Prop. 6: log n for 4 log n",
    ),
    Mutation(
        _FIXED,
        "np.cumsum(np.exp(-log_sizes[:-1]) / np.sqrt(t))",
        "np.cumsum(np.exp(-log_sizes[1:]) / np.sqrt(t))",
        "Prop. 6: sizes one step too late",
    ),
    Mutation(
        _FIXED,
        "1 / (16 * largest * np.sqrt(t + 1))",
        "1 / (8 * largest * np.sqrt(t + 1))",
        "Prop. 6: twice the step size",
    ),
    Mutation(
        _FIXED,
        "(2 * math.sqrt(2) + math.sqrt(3)",
        "(math.sqrt(2) + math.sqrt(3)",
        "Prop. 7: sqrt 2 for 2 sqrt 2",
    ),
    Mutation(
        _FIXED,
        " + math.sqrt(3) * math.log(n) / optimum)",
        ")",
        "Prop. 7: the term of the smoothing is dropped",
    ),
    Mutation(
        _FIXED,
        "math.sqrt(3) * math.log(n) / optimum",
        "math.sqrt(3) * math.log(n) * optimum",
        "Prop. 7: times gamma, not over it",
    ),
    Mutation(
        _FIXED,
        "math.sqrt(2) / (largest * np.sqrt(t + 1))",
        "2 / (largest * np.sqrt(t + 1))",
        "Prop. 7: step size 2 for sqrt 2",
    ),
    Mutation(
        _FIXED,
        "np.maximum.accumulate(self.margins[:-1])",
        "np.maximum.accumulate(self.margins[1:])",
        "the best margin one step late",
    ),
    Mutation(
        _FIXED,
        "(dual / dual.sum() @ z).max())",
        "(dual / dual.sum() @ z).min())",
        "the game's upper bound is a lower one",
    ),
    Mutation(
        _FIXED,
        "solution.margin / math.sqrt(m), solution.upper_bound / math.sqrt(m)",
        "solution.margin / math.sqrt(m), solution.margin / math.sqrt(m)",
        "gamma_2 is its own upper bound",
    ),
    # The early margin: Theorem 3.1 of "The ubiquity of 2-homogeneity", corrected.
    Mutation(
        _EARLY,
        "(8 * divergence + 2) * size",
        "(4 * divergence + 2) * size",
        "4 R for 8 R in the bound of u",
    ),
    Mutation(
        _EARLY,
        "(8 * divergence + 2) * size",
        "(8 * divergence) * size",
        "the 2 beside 8 R is dropped",
    ),
    Mutation(_EARLY, "* size + 16 / n", "* size + 16 / n**2", "16 / n^2 for 16 / n"),
    Mutation(
        _EARLY,
        "(n * divergence * size / 2 + 1) / time",
        "(divergence * size / 2 + 1) / time",
        "the n that the printed proof loses",
    ),
    Mutation(
        _EARLY,
        "(n * divergence * size / 2 + 1) / time",
        "(n * divergence * size / 2) / time",
        "the 1 of the mean loss is dropped",
    ),
    Mutation(
        _EARLY,
        "margin / bound_of_u / 2",
        "margin / bound_of_u",
        "over sum(u), not over |a|^2 + |b|^2 = 2 sum(u)",
    ),
    Mutation(
        _EARLY,
        "-math.log(math.expm1(losses))",
        "-math.log(losses)",
        "the inverse of the exponential loss for the logistic one",
    ),
    Mutation(
        _EARLY,
        "size = math.log(time * n) / (gamma / 2)",
        "size = math.log(time * n) / gamma",
        "features that keep all of their margin",
    ),
    Mutation(
        _EARLY,
        "float(u.sum()) / size - 1",
        "float(u.sum()) / size - 2",
        "R: the masses of the divergence are wrong",
    ),
    Mutation(
        _EARLY,
        "(C_1 * float(p.max()) + C_2)",
        "(C_1 * float(p.max()))",
        "the drift by shared parameters is dropped",
    ),
    Mutation(
        _EARLY,
        "(divergence * size + 2 / n) / 2",
        "(divergence * size + 2 / n) / 4",
        "half of the drift",
    ),
    Mutation(
        _EARLY,
        "self.drift <= self.gamma / 2",
        "self.drift <= self.gamma",
        "features may lose all of their margin",
    ),
    Mutation(
        _EARLY,
        "own = max(own, (products * same).max().item())",
        "own = max(own, products.mean().item())",
        "C_1: a mean",
    ),
    Mutation(
        _EARLY,
        "other = max(other, (products * ~same).max().item())",
        "other = max(other, 0.0)",
        "C_2 is 0",
    ),
    # The schedule of perturbed flow: Theorem E.4 of Wei et al. 2018 with explicit constants.
    Mutation(
        _SCHEDULE,
        "slope = math.hypot(bounds.M_Phi, 2 * bounds.B_Phi)",
        "slope = bounds.M_Phi",
        "E.11 without the radial part of the gradient",
    ),
    Mutation(
        _SCHEDULE,
        "c_1 = max(bounds.k * bounds.C_R * bounds.B_Phi**2, ",
        "c_1 = max(",
        "c_1 without its first member",
        equivalent="slope >= 2 B_Phi: the first member never is the largest",
    ),
    Mutation(_SCHEDULE, "bounds.B_Phi * slope, largest)", "bounds.B_Phi * slope)", "c_1 without B_L"),
    Mutation(
        _SCHEDULE,
        "math.sqrt(bounds.k) * bounds.M_R * bounds.M_Phi + bounds.M_V",
        "math.sqrt(bounds.k) * bounds.M_R * bounds.M_Phi",
        "c_2 without the penalty",
    ),
    Mutation(
        _SCHEDULE,
        "moment = 4 * start / bounds.b_V",
        "moment = start / bounds.b_V",
        "a quarter of the second moment",
    ),
    Mutation(_SCHEDULE, "tau = epsilon / (2 * moment)", "tau = epsilon / moment", "twice the level"),
    Mutation(
        _SCHEDULE,
        "d * math.log(max(4 * c_2 / tau, 1.0)) + math.log(2)",
        "d * math.log(max(4 * c_2 / tau, 1.0))",
        "the cap of Lemma E.14 without its half",
    ),
    Mutation(_SCHEDULE, "4 * c_2 / tau", "2 * c_2 / tau", "twice the cap of Lemma E.14"),
    Mutation(
        _SCHEDULE,
        "/ (tau - sigma) + 1",
        "/ (tau - sigma)",
        "a window without its first unit of time",
    ),
    Mutation(
        _SCHEDULE,
        "noise = sigma * window * (moment + 1)",
        "noise = sigma * window * moment",
        "noise of new mass is dropped",
    ),
    Mutation(_SCHEDULE, "- 3 * c_1 * noise,", "- c_1 * noise,", "E.15: one noise term for three"),
    Mutation(
        _SCHEDULE,
        "epsilon**2 / (4 * moment) - 2 * largest * noise",
        "epsilon**2 / (4 * moment)",
        "E.15: second fall without noise",
    ),
    Mutation(
        _SCHEDULE,
        "time = 2 * window *",
        "time = window *",
        "half the time: each fall takes two windows",
    ),
    Mutation(_SCHEDULE, "min(start, bounds.b_V / 2)", "start", "the second moment is not kept"),
    Mutation(
        _SCHEDULE,
        "d = bounds.dimension - 1",
        "d = bounds.dimension - 2",
        "a sphere of one dimension less",
    ),
    # The constants of the regularized logistic problem.
    Mutation(
        _FUNCTIONALS,
        "M_R=n**-0.5",
        "M_R=1 / n",
        "the gradient of the mean loss n^-1/2 times smaller",
    ),
    Mutation(_FUNCTIONALS, "C_R=0.25 / n", "C_R=0.125 / n", "half of the Hessian of the mean loss"),
    Mutation(
        _FUNCTIONALS,
        "np.linalg.norm(lengths / 2)",
        "np.linalg.norm(lengths / 4)",
        "half of the largest feature",
    ),
    Mutation(
        _FUNCTIONALS,
        "M_Phi=float(lengths.max())",
        "M_Phi=float(lengths.max()) / 2",
        "half of the Lipschitz constant of the features",
    ),
    # Flows, and how fast mass grows.
    Mutation(
        _FLOW,
        "1 - (1 - renewal.sigma * step) ** chunk",
        "renewal.sigma * step",
        "mass is renewed once instead of chunk times",
    ),
    Mutation(_PROJECTED, "ravel(), 4 * J])", "ravel(), 2 * J])", "mass grows at half its rate"),
    Mutation(
        _PROJECTED,
        "gradient - 2 * J[:, None] * theta",
        "gradient - J[:, None] * theta",
        "half of the radial part is taken off",
    ),
    Mutation(
        _MIRROR,
        "2 * torch.exp(-mirror.log_u(",
        "torch.exp(-mirror.log_u(",
        "Lemma 3.2 without its factor 2",
    ),
    Mutation(
        _SMOOTH,
        "torch.logsumexp(log_losses, 1, keepdim=True)",
        "torch.logsumexp(minus_q, 1, keepdim=True)",
        "the logistic factor: weights over the sum of exponentials",
    ),
    Mutation(
        _SLACKNESS,
        "unit = 0.5 * data.longest if power == 1",
        "unit = 0.25 * data.longest if power == 1",
        "half of the best neuron",
    ),
    Mutation(
        _SLACKNESS,
        "largest = max(largest, found.upper_bound)",
        "largest = float(np.abs(values).max(initial=0.0))",
        "what search found taken for what is proved",
    ),
    Mutation(
        _SLACKNESS,
        "        except TimeoutError:\n            proved = False",
        "        except TimeoutError:\n            proved = True",
        "proved, although there was no time",
    ),
    Mutation(
        _SLACKNESS,
        "float(p @ q - q.min())",
        "float(p @ q - q.mean())",
        "slackness against the mean margin",
    ),
    Mutation(
        _LAZY,
        "sum(g @ g.T for g in gradients) / len(w)",
        "sum(g @ g.T for g in gradients)",
        "the tangent kernel as a sum",
    ),
    Mutation(
        _LAZY,
        "float(size))",
        "float(size) ** 2)",
        "the tangent margin over the square of the movement",
    ),
    # Generalization bounds.
    Mutation(
        _BOUND,
        '"complexity, 4 Rad / gamma": 4 * rademacher / gamma',
        '"complexity, 4 Rad / gamma": 2 * rademacher / gamma',
        "half of the complexity",
    ),
    Mutation(
        _BOUND,
        "math.log2(4 * largest / gamma)",
        "math.log2(2 * largest / gamma)",
        "one margin scale less in the union",
    ),
    Mutation(
        _BOUND,
        "math.sqrt(math.log(math.log2(4 * largest / gamma)) / n)",
        "math.sqrt(math.log(math.log2(4 * largest / gamma))) / n",
        "the union over margins falls like 1 / n",
    ),
    Mutation(
        _BOUND,
        "math.sqrt(math.log(1 / delta) / (2 * n))",
        "math.sqrt(math.log(1 / delta) / (4 * n))",
        "a quarter of Hoeffding",
    ),
    Mutation(
        _BOUND,
        "np.clip(1 - q / gamma, 0.0, 1.0).mean()",
        "(q <= 0).mean()",
        "training errors for the ramp loss",
    ),
    Mutation(
        _BOUND,
        "gamma = float(q.min()) if margin",
        "gamma = float(q.mean()) if margin",
        "the mean margin for the least",
    ),
    Mutation(
        _NETWORKS,
        "rademacher = 3 * math.sqrt(",
        "rademacher = math.sqrt(",
        "Corollary C.5 without its factor 3",
    ),
    Mutation(
        _NETWORKS,
        "rademacher=rademacher, largest=radius, margin=gamma",
        "rademacher=rademacher, largest=radius / 2, margin=gamma",
        "half of the largest output",
    ),
    Mutation(
        _NETWORKS,
        "rademacher=math.sqrt(float(np.trace(K))) / len(q)",
        "rademacher=math.sqrt(float(np.trace(K)) / 2) / len(q)",
        "half of the trace",
    ),
    Mutation(_NETWORKS, "depth ** (-depth / 2)", "depth ** (-depth)", "layers shrink twice as fast"),
    Mutation(
        _NETWORKS,
        "math.sqrt(2 * math.log(2) * depth) + 1",
        "math.sqrt(2 * math.log(2) * depth)",
        "Golowich et al. without the 1",
    ),
    Mutation(
        _NETWORKS,
        "(radius / gamma) ** 2 / n",
        "(radius / gamma) / n",
        "fast rate without the square",
    ),
    Mutation(
        _NETWORKS,
        "math.log(math.log(4 * radius / gamma) / delta)",
        "math.log(math.log(4 * radius / gamma))",
        "fast rate without delta",
    ),
    Mutation(
        _NETWORKS,
        "4 / math.sqrt(2 * X.shape[1]) if kernel else 12.0",
        "4 / math.sqrt(2 * X.shape[1]) if kernel else 6.0",
        "half of the regression bound's complexity",
    ),
    Mutation(
        _NETWORKS,
        "math.log(max(2.0, 4 * size))",
        "math.log(max(1.0, 2 * size))",
        "the printed union over norms",
    ),
    Mutation(
        _NETWORKS,
        "* largest_loss\n",
        "* largest_loss / 2\n",
        "c for 2 c: losses in [-c, c] vary by 2 c",
    ),
    Mutation(
        _NETWORKS,
        "lipschitz * max(1.0, size) / n",
        "lipschitz * size / n",
        "no least norm in the union",
    ),
    Mutation(
        _RADEMACHER,
        "3 * float(np.linalg.norm(Z)) / len(Z)",
        "float(np.linalg.norm(Z)) / len(Z) / 2",
        "a sixth of Corollary C.5",
    ),
    Mutation(
        _RADEMACHER,
        "math.sqrt(float(np.trace(K))) / len(Z), True",
        "0.5 * math.sqrt(float(np.trace(K))) / len(Z), True",
        "half of Lemma C.3",
    ),
    Mutation(
        _RADEMACHER,
        "np.linalg.matrix_rank(Z) <= 3",
        "np.linalg.matrix_rank(Z) <= 30",
        "suprema of a search are called exact",
        equivalent="the prover's own `exact` is asked too; rank 4 is only too slow here, and exact as well",
    ),
    Mutation(_INTERCLASS, "((r + 3) / (2 - epsilon)),", "((r + 3) / 2),", "Theorem 8 without epsilon"),
    Mutation(
        _INTERCLASS,
        "(r + 2) * math.log2(radius / distance)",
        "r * math.log2(radius / distance)",
        "r for r + 2 in B",
    ),
    Mutation(
        _INTERCLASS,
        "upper = min(upper, float(found[-r:].sum()))",
        "upper = min(upper, float(found[-r + 1 :].sum()))",
        "the relaxation with one eigenvalue less",
    ),
    Mutation(_INTERCLASS, ".T @ z)[-r:].sum()))", ".T @ z)[-1:].sum()))", "one eigenvalue for r"),
    Mutation(
        _INTERCLASS,
        "best, value = Q, float(here.min())",
        "best, value = Q, float(here.mean())",
        "the mean distance of pairs is called attained",
    ),
    Mutation(
        _INTERCLASS,
        "if here.min() > value:",
        "if here.mean() > value:",
        "a basis by the mean distance",
    ),
    # Weak regularization: Theorem 2.2 of Wei et al. 2018.
    Mutation(_WEAK, "- math.log(8 * n) -", "- math.log(2 * n) -", "log 2n for log 8n"),
    Mutation(_WEAK, "- depth(c) / 2", "- depth(c) / 8", "an eighth of D for half of it"),
    Mutation(_WEAK, "- share * math.log(depth(c))", "", "the polynomial factor of the loss is dropped"),
    Mutation(
        _WEAK,
        "math.log(2) - math.log(4) / share",
        "math.log(2) - math.log(2) / share",
        "gamma / (2 2^{a/r}) is promised",
    ),
    Mutation(
        _WEAK,
        "math.log(margin) - math.log(2) - math.log(4)",
        "math.log(margin) - math.log(4)",
        "twice the margin is promised",
    ),
    Mutation(
        _WEAK,
        "log_lambda = share * math.log(margin) - exponent * count",
        "log_lambda = math.log(margin) - exponent * count",
        "gamma for gamma^{r/a}",
    ),
    Mutation(
        _WEAK,
        "return math.log(classes - 1) + c * count",
        "return c * count",
        "D without the number of classes",
    ),
]
