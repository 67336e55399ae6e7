"""Odd values for every argument of every public function: an answer, or an error that names the
argument.
"""

import pytest
import torch

import netmargin as nm
from tests.fuzz import DATA, NET, ODD_NAMES, ROOMS, foreign


@pytest.mark.slow_cases("drawing")
@pytest.mark.parametrize("room", ROOMS)
def test_odd_arguments_are_answered_or_named(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for door in ROOMS[room]():
        for argument in door.arguments:
            for odd in ODD_NAMES:
                if odd not in door.left_out.get(argument, ()) and (
                    why := foreign(door, {argument: odd})
                ):
                    wrong.append(f"{door.name}({argument}={odd}): {why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow_cases("drawing")
@pytest.mark.parametrize("room", ROOMS)
def test_good_calls_are_answered_under_no_grad_as_well(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for door in ROOMS[room]():
        if door.name == "load_weights":  # there is no file of weights
            continue
        answer = door.call()
        assert answer is not None, door.name
        assert "nan" not in repr(answer), door.name
        with torch.no_grad():
            assert type(door.call()) is type(answer), door.name


def test_a_certificate_under_inference_mode_is_the_same():
    expected = nm.certify(NET, DATA).epsilon
    with torch.inference_mode():
        assert nm.certify(NET, DATA).epsilon == expected
