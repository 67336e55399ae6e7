"""Answers that are nearly right: few classes away from the label, or in one group with it."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from ..core.arguments import check_count, check_instance, check_optional
from ..errors import ArgumentError
from ..nets.labels import ClassNames

Groups = Mapping[str, Collection[int | str]]


class NearAnswers:
    """What counts as nearly right: classes up to `within` apart, and those of one group."""

    def __init__(self, within: Any, groups: Any, names: ClassNames) -> None:
        self._within = check_optional(check_count, "within", within, at_least=0)
        what = "lists of classes by a name, {'low': [0, 1]}"
        check_optional(check_instance, "groups", groups, Mapping, what)
        numbers = {name: number for number, name in enumerate(names.names or ())}
        self._groups: dict[int, int] = {}
        for group, classes in enumerate((groups or {}).values()):
            check_instance("a group of classes", classes, Collection, "a list, such as [0, 1]")
            for given in classes:
                number = numbers.get(given, given)
                if isinstance(number, str) or number in self._groups or number < 0:
                    raise ArgumentError(
                        f"groups has the class {given!r}, which is unknown, or in two groups. Give"
                        " every class once, by its number or its name in class_names."
                    )
                self._groups[number] = group

    def __bool__(self) -> bool:
        return self._within is not None or bool(self._groups)

    def require_number(self, outputs: int) -> None:
        """Raise ArgumentError for groups of classes that a net has not."""
        classes = max(outputs, 2)  # a net with one output has two
        if beyond := [number for number in self._groups if number >= classes]:
            raise ArgumentError(
                f"groups has the class {beyond[0]}, and the net {classes} classes, from 0."
            )

    def share(self, classes: Tensor, answers: Tensor, right: Tensor) -> float:
        """The share of samples that are `right`, or whose answer is nearly so."""
        near = right | ((answers - classes).abs() <= (self._within or 0))
        largest = max(int(classes.max()), int(answers.max()), *self._groups)
        table = torch.arange(largest + 1, device="cpu")
        for number, group in self._groups.items():
            table[number] = -1 - group
        return int((near | (table[answers] == table[classes])).sum()) / len(right)
