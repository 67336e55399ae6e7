"""The tables of mutations fit the present source; one mutation of each package, killed."""

import ast
import functools
import multiprocessing
import os

import pytest

from tests.mutations import running
from tests.mutations.__main__ import main
from tests.mutations.mutation import TABLES as FILES, read_table
from tests.mutations.running import REPOSITORY

TABLES = {package: read_table(path) for package, path in FILES.items()}


@functools.cache
def read_tests(path):
    """The names of the tests of a file."""
    tree = ast.parse((REPOSITORY / path).read_text())
    return {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}


@pytest.mark.parametrize("package", TABLES)
def test_every_mutation_applies(package):
    """Each changes one place, compiles, is listed once, and names a test that exists."""
    seen = set()
    for mutation in TABLES[package][1]:
        mutated = mutation.applied((REPOSITORY / "src/netmargin" / mutation.file).read_text())
        compile(mutated, mutation.file, "exec")
        assert mutation.why
        assert (mutation.file, mutation.old, mutation.new) not in seen
        seen.add((mutation.file, mutation.old, mutation.new))
        if mutation.killed_by:
            path, _, name = mutation.killed_by.partition("::")
            assert name.partition("[")[0] in read_tests(path), (
                f"{mutation.killed_by} does not exist"
            )
    assert all((REPOSITORY / target).exists() for target in TABLES[package][0])


def test_a_process_that_dies_before_its_tests_is_no_kill(monkeypatch, capfd):
    """As it does where `main` is called by a file that cannot be imported once more."""
    monkeypatch.setattr(running, "_processes", multiprocessing.get_context("fork"))
    monkeypatch.setattr(running, "_test", lambda *_: os._exit(1))
    assert main(["margins", "--match", TABLES["margins"][1][0].why]) == 1
    assert "__name__ == '__main__'" in capfd.readouterr().out


@pytest.mark.slow  # a copy of the repository, and pytest on it
def test_a_run_without_tests_is_no_kill(tmp_path):
    """As of a slow test, where slow ones are left out: five mutations once counted as killed."""
    with pytest.raises(ValueError, match="no test ran: .*NO_TESTS_COLLECTED"):
        running.Workplace(tmp_path / "copy").baseline(["tests/test_losses.py", "-k", "none"], [])


@pytest.mark.nightly
@pytest.mark.parametrize("package", TABLES)
def test_the_command_kills_one_of_each_package(package, capfd):
    """By the test that notices; `python -m tests.mutations` runs them all, with all tests."""
    first = TABLES[package][1][0]
    assert main([package, "--match", first.why, "--tests", first.killed_by.partition("[")[0]]) == 0
    assert "1 of 1 killed (100.0%)" in capfd.readouterr().out
