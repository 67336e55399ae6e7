"""The table of rules: what each operation does to degrees, by the operation's name."""

from collections.abc import Callable
from typing import TypeVar

from .degree import AnyDegree

Rule = TypeVar("Rule", bound=Callable[..., AnyDegree | tuple[AnyDegree, ...]])

RULES: dict[str, Callable[..., AnyDegree | tuple[AnyDegree, ...]]] = {}
"""Operation, without namespace `aten::` and overload -> its rule."""


def rule(*operations: str) -> Callable[[Rule], Rule]:
    """Register the degree rule of ATen (or custom) operations.

    A rule is called as `rule(trace, *args, **kwargs)` with the operation's own arguments. It
    returns the degree of the operation's only useful output, or a tuple with one degree per output;
    degrees of inputs come from `trace.degree(value)`. In-place variants (`relu_`) use the same
    rule. A rule replaces one that was registered before under the same name. Names are without
    overload: 'relu', 'add', 'mylib::op'. docs/extending.md shows a rule line by line.

    Examples
    --------
    >>> from netmargin.homogeneity import rule
    >>> @rule("mylib::double")
    ... def double(trace, value):
    ...     return trace.degree(value)

    Beyond the papers.
    """

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, function))
        return function

    return register
