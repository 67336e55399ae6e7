"""
A claim of your own, examined
=============================

``netmargin verify`` examines the claims of five papers on random instances. One of your own is a
function with a decorator: it says how far each instance is from satisfying the statement.
"""

# %%
# The Cauchy-Schwarz inequality, with equality in half of the instances, so that a wrong constant is
# seen.
from netmargin.papers.ledger.claim import claim
from netmargin.papers.ledger.trial import Finding, Trial


@claim(
    "mine/cauchy-schwarz",
    "|<a, b>| <= |a| |b|",
    source="A. Cauchy, 1821",
    hypotheses="random vectors; equal ones in the first half",
    tolerance=1e-12,
    because="rounding, relative",
    trials=(3, 100),
)
def cauchy_schwarz(trial: Trial, *, factor: float = 1.0) -> Finding:
    a, b = trial.random.normal(size=(2, 64, 1 + trial.number))
    b[:32] = a[:32]
    size = ((a**2).sum(1) * (b**2).sum(1)) ** 0.5
    return Finding.of(abs((a * b).sum(1)) / size - factor, f"vectors of length {1 + trial.number}")


# %%
# It holds, and with a constant that is off by 0.1% it does not:
print(cauchy_schwarz.examine(quick=True))
print(cauchy_schwarz.examine(quick=True, factor=0.999))

# %%
# The claims of the papers are examined in the same way, here that the smoothed margin lies between
# two others (Lyu and Li 2019):
import netmargin as nm

print(nm.theory.verify(["lyu-li/sandwich"], quick=True))
