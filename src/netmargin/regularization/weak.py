"""The lambda below which any approximate minimizer has a good margin."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR

from scipy.optimize import brentq

from ..core.arguments import check_count, check_number
from ..core.logspace import scaled_ratio
from ..core.records import Certainty, Row, Table, number
from ..core.saved_records import Record
from ..errors import ArgumentError


@dataclass(frozen=True)
class WeakRegularization(Record):
    """A strength of regularization that is weak enough, and the margin that it guarantees."""

    regularization: float  #: lambda = gamma^{r/a} / (n (l - 1))^c, 0 or infinite beyond float64
    log_regularization: float  #: Its natural log
    exponent: float  #: The exponent c, the smallest that the proof allows
    #: The normalized margin gamma / (2 (2 alpha)^{a/r}) that every alpha-approximate minimizer has
    guarantee: float

    def _table(self) -> Table:
        """The penalty to add to the mean loss, and the margin that it guarantees."""
        guarantee = (number(self.guarantee, ROUND_FLOOR), Certainty.PROVED)
        rows: list[Row] = [
            ("lambda", number(self.regularization, ROUND_FLOOR)),
            ("its natural log", number(self.log_regularization, ROUND_FLOOR)),
            ("normalized margin, at least", guarantee),
            "Of every net whose loss with the penalty is at most alpha times the least.",
            ("exponent c", number(self.exponent, ROUND_CEILING)),
        ]
        return Table("A good margin by the penalty lambda ||theta||^r", rows)


def weak_regularization(
    margin: float,
    *,
    n: int,
    classes: int = 2,
    order: float = 2.0,
    r: float = 2.0,
    approximation: float = 2.0,
) -> WeakRegularization:
    """Compute a lambda with which every approximate minimizer has a good margin.

    Twice it is the `weight_decay` of torch.optim.SGD (r = 2), whose penalty is half as large: any
    training that ends within a factor 2 of the least regularized loss then has at least an eighth
    (r = a) of the best margin.

    L_lambda(Theta) = mean_n (logistic or cross-entropy loss) + lambda ||Theta||^r, for a net of
    homogeneity order a. Every Theta with L_lambda(Theta) <= alpha min L_lambda has a normalized
    margin of at least gamma / (2 (2 alpha)^{a/r}), so lambda need not tend to 0, nor the loss be
    minimized exactly. The proof asks for -log(4 alpha n D^{r/a}) + c log(n (l - 1)) >= D / 2 and D
    = log((l - 1) (n (l - 1))^c) >= 1; c is the smallest from which on both hold.

    Parameters
    ----------
    margin : float
        The largest normalized margin gamma = q_min / ||Theta||^a, > 0.
    n, classes : int, the latter by default 2
        Numbers of samples and of classes l; a net with one output has 2.
    order, r : float, default 2.0
        Order of homogeneity a of the net, and power of the norm in the penalty, > 0.
    approximation : float, default 2.0
        The factor alpha >= 1 up to which the loss is minimized.

    Returns
    -------
    WeakRegularization
        lambda, its exponent c, and the margin that it guarantees.

    Raises
    ------
    ArgumentError
        n (l - 1) < 2, for which the theorem is false with every c, or a number is out of range.

    Examples
    --------
    >>> import netmargin as nm
    >>> weak = nm.weak_regularization(0.1, n=100)
    >>> 4 < weak.exponent < 4.25, round(weak.guarantee, 9)
    (True, 0.0125)

    Source: Wei et al. 2018, Theorem 2.2 and Appendix A.3; 2019, Theorem C.2.
    """
    n, classes = check_count("n", n), check_count("classes", classes, at_least=2)
    margin = check_number("margin", margin, above=0)
    order, r = check_number("order", order, above=0), check_number("r", r, above=0)
    approximation = check_number("approximation", approximation, at_least=1)
    count, share = math.log(n * (classes - 1)), r / order
    if count < math.log(2):
        raise ArgumentError(
            "Theorem 2.2 needs n (classes - 1) >= 2: for one sample of two classes no lambda has"
            " this guarantee."
        )

    def depth(c: float) -> float:
        return math.log(classes - 1) + c * count

    def slack(c: float) -> float:
        return (
            c * count - math.log(4 * approximation * n) - share * math.log(depth(c)) - depth(c) / 2
        )

    # The slack is convex in c and rises in the end: the last root is where the proof begins to
    # hold.
    least = max(0.0, (1 - math.log(classes - 1)) / count)
    # Its minimum is where its slope, count / 2 - share count / depth, is 0.
    lowest = max(least, (2 * share - math.log(classes - 1)) / count)
    exponent, highest = least, max(lowest, 1.0)
    if slack(lowest) < 0:
        while slack(highest) < 0:
            highest *= 2
        exponent = brentq(slack, lowest, highest)
    # By logarithms, which stay finite for every margin, order and r.
    log_lambda = share * math.log(margin) - exponent * count
    log_guarantee = math.log(margin) - math.log(2) - math.log(2 * approximation) / share
    return WeakRegularization(
        scaled_ratio(1.0, -log_lambda), log_lambda, exponent, scaled_ratio(1.0, -log_guarantee)
    )
