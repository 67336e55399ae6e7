"""Losses with an exponential tail, l(q) = e^{-f(q)}, kept in log domain.

A loss acts on margins: q_n = y_n Phi(x_n) for a net with one output, and the soft margin q~_n =
-log sum_{j != y_n} e^{-(Phi_{y_n} - Phi_j)} for a net with several (Lyu and Li 2019, Appendix F),
so that `Logistic` on soft margins *is* the cross-entropy. Sums, not means, over samples; natural
logarithms; float64 whatever is given.
"""

from .accepted_losses import as_loss
from .families import BY_NAME, CrossEntropy, Exponential, Logistic
from .loss import Loss

__all__ = ["BY_NAME", "CrossEntropy", "Exponential", "Logistic", "Loss", "as_loss"]
