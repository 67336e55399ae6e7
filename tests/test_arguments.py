"""Odd values for every argument of every function: answered, or an error that names it."""

import pytest
import torch

import netmargin as nm
from tests.fuzz import DATA, NET, ODD_NAMES, PACKAGES, foreign

SHARE = 45
"""One in so many odd values is tried in the quick run, other ones with each argument."""


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.slow_cases("drawing")
@pytest.mark.parametrize("package", PACKAGES)
def test_odd_arguments_are_answered_or_named(package, share, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ((entry, name) for entry in PACKAGES[package]() for name in entry.arguments)
    wrong = []
    for number, (entry, argument) in enumerate(arguments):
        for odd in ODD_NAMES[number % share :: share]:
            if odd not in entry.left_out.get(argument, ()) and (
                why := foreign(entry, {argument: odd})
            ):
                wrong.append(f"{entry.name}({argument}={odd}): {why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.nightly_cases("drawing")  # the examples of `figures` draw all pictures
@pytest.mark.parametrize("package", PACKAGES)
def test_good_calls_are_answered_under_no_grad_as_well(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for entry in PACKAGES[package]():
        if entry.name == "load_weights":  # there is no file of weights
            continue
        answer = entry.call()
        assert answer is not None, entry.name
        assert "nan" not in repr(answer), entry.name
        with torch.no_grad():
            assert type(entry.call()) is type(answer), entry.name


def test_a_certificate_under_inference_mode_is_the_same():
    expected = nm.certify(NET, DATA).epsilon
    with torch.inference_mode():
        assert nm.certify(NET, DATA).epsilon == expected
