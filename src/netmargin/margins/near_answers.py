"""Answers that are nearly right: few classes away from the label, or in one group with it."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from ..core.arguments import check_count, check_instance
from ..errors import ArgumentError
from ..nets.labels import ClassNames

Groups = Mapping[str, Collection[int | str]]


class NearAnswers:
    """What counts as nearly right: classes up to `within` apart, and those of one group.

    groups : lists of classes, by their numbers or `names`. Raises ArgumentError.
    """

    def __init__(self, within: Any, groups: Any, names: ClassNames):
        self._within = check_count("within", within, at_least=0, optional=True)
        check_instance(
            "groups", groups, Mapping, "lists of classes by a name, {'low': [0, 1]}", optional=True
        )
        numbers = {name: number for number, name in enumerate(names.names or ())}
        self._groups: dict[int, int] = {}
        for group, classes in enumerate((groups or {}).values()):
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

    def count(self, outputs: Tensor, classes: Tensor, right: Tensor) -> int:
        """How many samples of these classes have a right answer, or one that is nearly so."""
        scores = torch.cat([-outputs, outputs], 1) if outputs.shape[1] == 1 else outputs
        if beyond := [number for number in self._groups if number >= scores.shape[1]]:
            raise ArgumentError(
                f"groups has the class {beyond[0]}, and the net {scores.shape[1]} classes, from 0."
            )
        own = classes.to(scores.device)
        answers = scores.scatter(1, own[:, None], -torch.inf).argmax(1).cpu()
        near = right | ((answers - classes).abs() <= (self._within or 0))
        table = torch.arange(scores.shape[1], device="cpu")
        for number, group in self._groups.items():
            table[number] = -1 - group
        return int((near | (table[answers] == table[classes])).sum())
