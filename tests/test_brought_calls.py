"""What people bring: the right number or one sentence, whatever the net and whatever the function."""

import random

import pytest

from tests.brought_calls import FOREIGN, FUNCTIONS, NETS, WRONG, fill_cell, read_table
from tests.conftest import SEED

CELLS = [(net, function) for net in NETS for function in FUNCTIONS]
SOME = random.Random(SEED).sample(CELLS, len(CELLS) // 20)


def test_no_letter_of_the_table_stands_for_a_fault():
    letters = read_table()
    assert list(letters) == list(NETS)
    assert not {WRONG, FOREIGN} & {letter for row in letters.values() for letter in row.values()}


@pytest.mark.slow_cases(
    "a dict of logits-robustness", "all frozen-robustness", "half precision-robustness"
)
@pytest.mark.parametrize(("net", "function"), SOME)
def test_some_cells(net, function):
    outcome, text = fill_cell(net, function)
    assert outcome == read_table()[net][function], text


@pytest.mark.nightly
@pytest.mark.parametrize("net", NETS)
def test_all_cells(net):
    for function, letter in read_table()[net].items():
        outcome, text = fill_cell(net, function)
        assert outcome == letter, f"{function}: {text}"
