"""The paper's name, as its claims cite it."""

PAPER = "Chizat and Bach 2020"
