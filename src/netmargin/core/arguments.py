"""Checks of arguments, for all public functions: one sentence says what was given, what to give."""

import difflib
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ArgumentError

Kind = TypeVar("Kind")
_LIKENESS = 0.5
"""Similarity, by difflib, from which a word is suggested; at difflib's own 0.6 a word of four
letters with two wrong ones would find no other.
"""
_LONGEST_SHOWN = 100
"""Characters of a value that a message shows: a tensor or a model would fill the screen."""


def check_number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    optional: bool = False,
    infinite: bool = False,
) -> float:
    """Return a real number within its limits, of which NaN is none, as a float."""
    number = _unwrap(value)
    # Booleans are numbers to Python, and a flag in the place of a number is a slip.
    real = isinstance(number, numbers.Real) and not isinstance(number, bool)
    if real and (infinite or math.isfinite(number)):
        number = float(number)
        if above < number < below and at_least <= number <= at_most:
            return number
    limits = _describe_limits(above, at_least, below, at_most)
    raise _make_error(name, value, f"a number{limits}", optional)


def check_count(
    name: str, value: Any, *, at_least: int = 1, at_most: float = math.inf, optional: bool = False
) -> int:
    """Return a whole number within its limits, as an int; 2.0 is none."""
    try:
        number = None if isinstance(_unwrap(value), bool) else operator.index(value)
    # A tensor of several elements raises one of the latter two.
    except (TypeError, RuntimeError, ValueError):
        number = None
    if number is not None and at_least <= number <= at_most:
        return number
    limits = _describe_limits(-math.inf, at_least, math.inf, at_most)
    raise _make_error(name, value, f"a whole number{limits}", optional)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return the value if it is one of the given words, of which the nearest is suggested."""
    choices = list(choices)
    if isinstance(word := _unwrap(value), str) and word in choices:
        return word
    quoted = [f'"{choice}"' for choice in choices]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    raise _make_error(name, value, listed, hint=suggest_word(value, choices))


def check_flag(name: str, value: Any, hint: str = "") -> bool:
    """Return True or False; raise ArgumentError for others that Python would take for one."""
    if isinstance(flag := _unwrap(value), bool):
        return flag
    raise _make_error(name, value, "True or False", hint=hint)


def check_instance(
    name: str,
    value: Any,
    kinds: type[Kind] | tuple[type[Kind], ...],
    what: str,
    *,
    optional: bool = False,
) -> Kind:
    """Return the value if it is of one of the given classes, which `what` describes."""
    if isinstance(value, kinds):
        return value
    hint = ""
    if isinstance(value, type) and issubclass(value, kinds):
        hint = f"That is the class itself: write {value.__name__}(...), with its arguments."
    raise _make_error(name, value, what, optional, hint)


def check_numbers(
    name: str, values: Any, check: Callable[..., Any] = check_number, **limits: Any
) -> list[Any]:
    """Return a sequence of at least one number as a list, each within the limits of `check`."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not listed:
        raise _make_error(name, values, "a list of at least one number")
    return [check(f"{name}[{index}]", value, **limits) for index, value in enumerate(listed)]


def check_path(name: str, value: Any, *, optional: bool = False) -> Path:
    """Return the name of a file or folder as a Path; nothing is looked up on the disk."""
    if isinstance(value, (str, os.PathLike)) and str(value).strip() and "\0" not in str(value):
        return Path(value)
    raise _make_error(name, value, 'a path such as "runs/mine"', optional)


def check_optional(
    check: Callable[..., Kind], name: str, value: Any, *what: Any, **limits: Any
) -> Kind | None:
    """Return None, or what a check of these returns; its error says that None would do."""
    return None if value is None else check(name, value, *what, optional=True, **limits)


def check_seed(seed: Any) -> int:
    """Return a whole number that every random generator in use accepts."""
    return check_count("seed", seed, at_least=0, at_most=2**63 - 1)


def suggest_word(value: Any, choices: Iterable[str]) -> str:
    """Return 'Did you mean "x"?' for the choice most like `value`, or '' where none is like it."""
    near = difflib.get_close_matches(str(value), list(choices), n=1, cutoff=_LIKENESS)
    return f'Did you mean "{near[0]}"?' if near else ""


def _unwrap(value: Any) -> Any:
    """The Python object in a scalar, an array or a tensor of one element; others as they are."""
    try:
        return value.item()
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return value


def _describe_limits(above: float, at_least: float, below: float, at_most: float) -> str:
    """The finite limits in words, such as ' above 0 and below 1'."""
    limits = {"above": above, "of at least": at_least, "below": below, "of at most": at_most}
    return " and".join(
        f" {word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit)
    )


def _make_error(
    name: str, value: Any, wanted: str, optional: bool = False, hint: str = ""
) -> ArgumentError:
    """The error for a value that is not what was wanted."""
    shown = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{type(value).__name__} {shown[:80]} ..."
    or_none, advice = " or None" * optional, f". {hint}" if hint else ""
    return ArgumentError(f"{name} must be {wanted}{or_none}; got {shown}{advice}")


def require_numbers(array: Any, name: str) -> Any:
    """The array, of numbers. Raises TypeError for text, and for a sparse matrix in an array."""
    text = array.dtype.kind in "US"
    if array.dtype == object and any(isinstance(value, str) for value in array.flat):
        try:
            array = array.astype(float)
        except ValueError:
            text = True
    if text:
        raise TypeError(f"it holds text. {how_to_number(name)}")
    if array.dtype == object and array.size == 1 and hasattr(array.item(), "toarray"):
        raise TypeError(f"it is a sparse matrix. Pass {name}.toarray()")
    return array


def how_to_number(name: str) -> str:
    """What makes numbers of text: of labels, y, or of inputs."""
    if name == "y":
        return "np.unique(y, return_inverse=True)[1] numbers it"
    return (
        "Tokenize sentences first and pass the token numbers, padded to one length; of categories"
        " make columns, pandas.get_dummies(frame); leave out what only names rows"
    )
