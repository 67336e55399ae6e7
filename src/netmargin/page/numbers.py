"""Numbers as a page writes them: a true minus sign, thousands with commas, powers of ten."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from ..core.records import plural as plural

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FEW_DECIMALS = 0.095
"""Distances below it have three decimals: with two, one a tenth larger would look the same."""
_LEAST = 0.0005
"""Distances below it would be shown as 0.000."""
_LARGEST = 1e6
"""Distances from it on are powers of ten: nobody counts their digits."""


def round_down(value: float, digits: int = 4) -> float:
    """The largest number of so many digits not above a positive one, for what is proved."""
    if not (value > 0 and math.isfinite(value)):
        return value
    exact = Decimal(value)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), ROUND_FLOOR))


def distance(value: float, *, down: bool = False) -> str:
    """A distance of two decimals, small ones three, large ones fewer; `down` never rounds up."""
    size = abs(value)
    if math.isinf(value):
        return sign(value, "∞")
    if size >= _LARGEST:
        return significant(round_down(value, 2) if down else value)
    if 0 < size < _LEAST and not down:
        return "<0.001" if value > 0 else ">−0.001"
    decimals = 2 if size == 0 else 3 if size < _FEW_DECIMALS else 2
    if size >= 100:
        decimals = 1 if size < 1000 else 0
    if down:
        size = float(Decimal(size).quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR))
    return sign(value, f"{size:,.{decimals}f}")


def percent(share: float, decimals: int = 0) -> str:
    """A share as percent, never 0% or 100% for what is only near to it."""
    return percent_number(share, decimals) + "%"


def percent_number(share: float, decimals: int = 0) -> str:
    """The same without its sign, for tiles."""
    step = 10.0**-decimals
    value = 100 * share
    if 0 < value <= step / 2:
        return f"<{step:.{decimals}f}"
    if 100 - step / 2 <= value < 100:
        return f">{100 - step:.{decimals}f}"
    return sign(value, f"{abs(value):.{decimals}f}")


def power_of_ten(log10: float) -> str:
    """A number given by its logarithm: as it is where that is short, else a power of ten."""
    if log10 == -math.inf:
        return "0"
    if -2 < log10 < 3:
        return significant(10**log10, 2)
    return "10" + str(round(log10)).translate(_SUPERSCRIPTS)


def significant(value: float, digits: int = 2) -> str:
    """A number with so many significant digits; very large and small ones as powers of ten."""
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else sign(value, "∞")
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    if not -5 < int(exponent) < 6:
        return sign(value, f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}")
    return sign(value, f"{abs(value):,.{max(digits - 1 - int(exponent), 0)}f}")


def plain(value: float) -> str:
    """A number as short as it can be written, for limits that somebody chose."""
    return f"{value:.4g}".replace("-", "−")


def ends_of_range(low: float, high: float) -> tuple[str, str]:
    """Both ends of a range in thousandths of its width, never inside of it."""
    if not high > low:
        return f"{low:g}", f"{high:g}"
    step = Decimal(1).scaleb(Decimal(high - low).adjusted() - 3)
    ends = ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    rounded = [Decimal(value).quantize(step, rounding) for value, rounding in ends]
    return f"{rounded[0].normalize() + 0:f}", f"{rounded[1].normalize() + 0:f}"


def one_digit(value: float) -> float:
    """A positive number rounded to one significant digit."""
    if not (value > 0 and math.isfinite(value)):
        return value
    return float(f"{value:.0e}")


def sign(value: float, text: str) -> str:
    """The text of a size with the minus sign of its number, which 0.00 has not."""
    return f"−{text}" if value < 0 and text.strip("0.,") else text


def quoted(name: str) -> str:
    """The name of a class, which may be a digit."""
    return f"“{name}”"
