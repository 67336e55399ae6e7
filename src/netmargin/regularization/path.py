"""Minimizers of loss + lambda ||theta||^r for falling lambda, which find the max margin."""

from collections.abc import Callable, Sequence

from torch import nn

from ..core.arguments import check_choice, check_number
from ..losses import Loss, as_loss
from ..nets.data import Choice, Data, as_arrays, takes_data
from ..nets.model import with_gradients
from .following import RegularizationPath, follow_path
from .objective import MarginObjective


@takes_data
@with_gradients
def regularization_path(
    make_model: Callable[[], nn.Module],
    data: Data,
    *,
    lambdas: Sequence[float],
    r: float = 2.0,
    norm: str = "global",
    loss: Loss | str | nn.Module | None = None,
    starts: int = 5,
    iterations: int = 100,
    seed: int = 0,
    progress: bool = True,
    scores: Choice | None = None,
) -> RegularizationPath:
    """Minimize L_lambda = mean_n l(q_n) + lambda ||theta||^r along falling lambda.

    Takes several starts, in float64, with all samples at once. The minimization is of log L_lambda,
    in the log domain, so that neither term can underflow: lambda = 1e-300 is as good as 1e-3. Each
    lambda begins with the best multiple of the minimizer for the last one, and goes on by L-BFGS,
    through nets with less and less smoothed ReLUs: minima lie on kinks. They are local, as nets are
    not convex; the best start is kept. For two-layer nets `solvers.f1_logistic` has the global
    minimum (r = 2). Ctrl-C returns the rows so far, with `Status.INTERRUPTED`.

    Parameters
    ----------
    make_model : callable
        Makes a net with fresh random weights; called once per start, without arguments, under
        `torch.manual_seed(seed + start)`.
    data : pair or iterable
        Inputs and labels as for `measure`, also by name (docs/inputs.md); read into memory once.
    lambdas : sequence of float
        Strengths lambda > 0 of the penalty, in any order; taken from the largest down.
    r : float, default 2.0
        Power of the norm in the penalty, > 0.
    norm : {"global", "layers", "l1", "linf"}, default "global"
        Norm in the penalty, over all parameters that require gradients: the Euclidean one, which
        rows report and divide margins by whatever the penalty, the sum of absolute values, or the
        largest of them. "layers" is lambda sum_i ||W_i||^r over these parameters one by one.
    loss : Loss, str or torch.nn.Module, optional
        Loss of the margins; cross-entropy by default, for one output the logistic loss.
    starts, iterations : int, default 5 and 100
        Number of starts, and iterations of L-BFGS for each lambda, start and smoothing.
    seed : int, default 0
        Seed of the first start; the next ones have the next numbers.
    progress : bool, default True
        Whether to show lambda, the objective and the best start as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    RegularizationPath
        One row per lambda, from the largest down; margins are those of the best start.

    Raises
    ------
    ArgumentError, DataError, ModelError
        An argument cannot be used, as for `measure`; a net has nothing to train, or is none.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> path = nm.regularization_path(make, data, lambdas=[1e-3, 1e-12], starts=1, progress=False)
    >>> abs(path.rows[-1]["normalized_margin"] - 3 / 2**0.5) < 1e-3  # the max margin
    True

    Source: Wei et al. 2018, (2.1) with the mean loss, as its proofs have it, and Theorem 2.1.
    """
    norm = check_choice("norm", norm, ("global", "layers", "l1", "linf"))
    r = check_number("r", r, above=0)
    samples, chosen = as_arrays(data), as_loss(loss)
    return follow_path(
        make_model,
        lambda model: MarginObjective(model, samples, chosen, r, norm),
        lambdas=lambdas,
        starts=starts,
        iterations=iterations,
        seed=seed,
        progress=progress,
    )
