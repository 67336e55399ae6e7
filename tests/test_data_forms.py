"""Every form of one data set gives the same numbers, or is refused by name; nothing of the caller's
is changed.
"""

import pytest

from tests.data_forms import FORMS, NUMBERS, compute, describe_difference, draw_samples

SLOW = ("robustness", "regularization_path")
"""Functions that take a second of a core for each form."""


def marks_of(function: str, overwriting: bool) -> list:
    """In the quick run each function is asked with the harder net, which overwrites its input."""
    if function in SLOW and not overwriting:
        return [pytest.mark.nightly]
    return [pytest.mark.slow] * (function in SLOW or not overwriting)


@pytest.mark.parametrize(
    ("function", "overwriting"),
    [
        pytest.param(
            name, overwriting, id=f"{name}-{overwriting}", marks=marks_of(name, overwriting)
        )
        for name in NUMBERS
        for overwriting in (True, False)
    ],
)
def test_every_form_of_the_data_gives_the_same_numbers(function, overwriting):
    samples = draw_samples(0, overwriting=overwriting)
    expected = compute(function, samples, None)
    assert not isinstance(expected, Exception), expected
    wrong = [describe_difference(function, samples, form) for form in FORMS]
    assert not any(wrong), "\n".join(filter(None, wrong))
