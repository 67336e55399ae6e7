"""Odd values for every argument of every public function: an answer, or an error that names the
argument.
"""

import pytest

from tests.fuzz import ODD, ROOMS, foreign


@pytest.mark.parametrize("room", ROOMS)
def test_odd_arguments_are_answered_or_named(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for door in ROOMS[room]():
        for argument in door.arguments:
            for odd in ODD:
                if odd not in door.left_out.get(argument, ()) and (
                    why := foreign(door, {argument: odd})
                ):
                    wrong.append(f"{door.name}({argument}={odd}): {why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS)
def test_good_calls_are_good(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for door in ROOMS[room]():
        if door.name != "load_weights":
            door.call()
