"""The types that a user's checker sees in the installed package."""

import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.docs_blocks import ROOT

PROGRAM = """
from pathlib import Path

import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=100)
model = nm.models.mlp([64, 32, 10])
reveal_type(nm.analyse(model, X).order)
history = nm.train(model, (X, y), until=nm.LogLossBelow(log10=-1), checkpoint_dir=Path("runs"))
report = nm.measure(model, (X, y))
reveal_type(report.normalized_margin)
reveal_type(nm.certify(model, (X, y)).support)
reveal_type(nm.robustness(model, (X, y)).lower)
watch = nm.Watch(model, (X, y), folder="runs/mine")
reveal_type(watch.step())
reveal_type(nm.RelativeLoss()(model(X), y))
reveal_type(nm.save_weights(model, "net.safetensors"))
nm.callbacks.LightningMarginMonitor((X, y), every=2)
reveal_type(nm.solvers.f1_max_margin(X, y).margin)
nm.measure(model, (X, y), batch_sise=3)
nm.no_such_name
"""
REVEALED = [
    "int | fractions.Fraction | None",
    "float | None",
    "torch._tensor.Tensor",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]",
    "dict[str, Any] | None",
    "Any",
    "pathlib.Path",
    "float",
]
"""What the program reveals, in its order; a module that is called is Any to torch's own types."""
WRONG = ['Unexpected keyword argument "batch_sise"', 'Module has no attribute "no_such_name"']


@pytest.mark.nightly
def test_a_users_strict_checker_reads_the_types_of_the_wheel(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    source = tmp_path / "source"  # a build leaves files behind
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([*build, "-w", str(tmp_path), str(source)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("netmargin-*.whl")
    # An environment of its own, in which the package is installed and no part of the program.
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True
    )
    (site,) = (tmp_path / "env" / "lib").glob("python3.*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    assert (site / "netmargin" / "py.typed").exists()
    others = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "others.pth").write_text(others)
    (tmp_path / "program.py").write_text(PROGRAM)
    python = str(tmp_path / "env" / "bin" / "python")
    check = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
    done = subprocess.run(
        [*check, "--python-executable", python, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    lines = done.stdout.splitlines()
    revealed = [
        line.split("Revealed type is ")[1].strip('"') for line in lines if "Revealed" in line
    ]
    print(done.stdout, done.stderr)
    assert revealed == REVEALED
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == len(WRONG)
    for line, wanted in zip(errors, WRONG, strict=True):
        assert wanted in line
