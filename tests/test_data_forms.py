"""Every form of one data set gives the same numbers, or is refused by name, and stays as it is."""

import pytest

from tests.data_forms import FORMS, NUMBERS, compute, describe_difference, draw_samples

SHARE = 5
"""One in so many forms is tried in the quick run, other ones with each function."""
MARKS = dict.fromkeys(("regularization_path", "robustness"), pytest.mark.nightly)
"""Of functions that take a second of a core for each form."""


def cases():
    """Function, net and share of the forms. The harder net, which overwrites its input, comes first."""
    for name in NUMBERS:
        yield pytest.param(name, True, SHARE, marks=MARKS.get(name, ()))
        for overwriting in (True, False):
            yield pytest.param(name, overwriting, 1, marks=pytest.mark.nightly)


@pytest.mark.parametrize(("function", "overwriting", "share"), list(cases()))
def test_every_form_of_the_data_gives_the_same_numbers(function, overwriting, share):
    samples = draw_samples(0, overwriting=overwriting)
    expected = compute(function, samples, None)
    assert not isinstance(expected, Exception), expected
    forms = list(FORMS)[list(NUMBERS).index(function) % share :: share]
    wrong = [describe_difference(function, samples, form, expected) for form in forms]
    assert not any(wrong), "\n".join(filter(None, wrong))
