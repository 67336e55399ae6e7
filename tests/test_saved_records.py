"""Records as files come back bit for bit; no file runs code or hides that it is damaged."""

import contextlib
import copy
import dataclasses
import json
import math
import pickle
import subprocess
import sys
import zipfile
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.core import saved_records
from netmargin.core.matrices import SolverData
from netmargin.losses import BY_NAME, Exponential, Loss
from tests.test_records import records

NOT_SAVED = (  # they hold functions, are settings, or never reach a user
    "netmargin.papers.",
    "netmargin.training.recipes.",
    "netmargin.nets.arrays.",
    "netmargin.nets.gradients.",
    "netmargin.homogeneity.derivation.",
    "netmargin.page.",
    "netmargin.training.stopping.",
)
DRAWN = np.random.default_rng(0)
TORCH = torch.Generator().manual_seed(0)  # ids of tests hold the values: they must not change
HARD = [  # values that a careless format loses
    0.1 + 0.2,
    -0.0,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    2**80,
    True,
    None,
    "naïve \U0001d703\n",
    Fraction(-7, 3),
    (1, (2.5, [])),
    {1.5: {"a": (None,)}, ("k", 2): 3},
    np.float32(0.1),
    np.int64(7),
    np.bool_(True),
    np.array(3.5),
    np.zeros((0, 3)),
    np.asfortranarray(DRAWN.random((3, 4))),
    DRAWN.random((2, 3)) + 1j,
    np.array(["ddn", "deepfool"]),
    np.array([True, False]),
    np.arange(4, dtype=">i2"),
    torch.tensor(math.nan, dtype=torch.float64),
    torch.randn(2, 0, 3, generator=TORCH),
    torch.randn(3, 4, generator=TORCH).bfloat16(),
    torch.randn(4, 3, generator=TORCH).half().T,
    torch.arange(3) > 1,
    torch.randn(3, generator=TORCH, requires_grad=True),
    Path("runs/mine"),
    nm.Kind.PARTIAL,
    next(iter(nm.Completeness)),
    nm.Bracket(0.5, math.inf),
    [nm.Bracket(0.5, 1.0)],
]


def same(one, other) -> bool:
    """Whether two values are equal in type and in every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        bits = [
            t.detach().contiguous().numpy().tobytes()
            if t.dtype != torch.bfloat16
            else t.contiguous().view(torch.int16).numpy().tobytes()
            for t in (one, other)
        ]
        return one.dtype == other.dtype and one.shape == other.shape and bits[0] == bits[1]
    if isinstance(one, (np.ndarray, np.generic)):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes()
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if dataclasses.is_dataclass(one):
        return all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)
        )
    if isinstance(one, Loss):
        return one.name == other.name
    return one == other


def filled(kind: type):
    """An instance whose fields hold one hard value after the other; its checks are passed over."""
    record = object.__new__(kind)
    for index, field in enumerate(dataclasses.fields(kind)):
        value = HARD[(index * 5 + len(kind.__name__)) % len(HARD)]
        # The weights of a report are never written.
        object.__setattr__(record, field.name, [] if field.name == "_chain" else value)
    return record


@pytest.mark.parametrize(
    "value", HARD, ids=lambda value: f"{type(value).__name__} {str(value)[:20]}"
)
def test_values_come_back_bit_for_bit(value, tmp_path):
    history = nm.History([{"value": value}], "done")
    loaded = nm.load(history.save(tmp_path / "deep" / "record.zip"))
    assert same(loaded, history)


@cache
def saved_kinds() -> list[type]:
    """Within tests alone: to list records while tests are collected imports Lightning each time."""
    return [kind for name, kind in records().items() if not name.startswith(NOT_SAVED)]


def test_every_record_comes_back_bit_for_bit(tmp_path):
    assert len(saved_kinds()) > 30
    for kind in saved_kinds():
        record = filled(kind)
        assert same(nm.load(record.save(tmp_path / "record.zip")), record), kind


def test_no_two_records_share_a_key():
    keys = [saved_records._key_of(kind) for kind in saved_kinds()]
    assert len(set(keys)) == len(keys)
    for kind in saved_kinds():
        assert saved_records._records[saved_records._key_of(kind)] is kind


@pytest.mark.slow
def test_real_answers_come_back_with_what_they_can_do(digits, separated, tmp_path):
    report = nm.measure(separated, digits, loss=Exponential(5))
    again = nm.load(report.save(tmp_path / "report"))
    assert same(again, report)
    assert again.summary() == report.summary()
    assert again.smoothed_margin == report.smoothed_margin
    certificate = nm.certify(separated, digits)
    assert same(nm.load(certificate.save(tmp_path / "certificate")), certificate)
    solution = nm.solvers.f1_max_margin(np.array([[1.0, 2.0], [2.0, -1.0]]), [1, -1])
    again = nm.load(solution.save(tmp_path / "solution"))
    X = np.array([[0.3, 0.4]])
    assert again.decision_function(X) == solution.decision_function(X)
    assert again.certified is True


def test_answers_about_a_net_with_batch_norm_come_back_without_its_weights(tmp_path, monkeypatch):
    net = torch.nn.Sequential(
        torch.nn.Linear(40, 200),
        torch.nn.BatchNorm1d(200),
        torch.nn.ReLU(),
        torch.nn.Linear(200, 2),
    )
    X = torch.randn(10, 40)
    data = (X, net.eval()(X).argmax(1))
    answer = nm.analyse(net, X)
    assert answer.statistics
    assert same(nm.load(answer.save(tmp_path / "answer")), answer)
    report = nm.measure(net, data)
    file = report.save(tmp_path / "report")
    assert file.stat().st_size < 20_000
    assert same(nm.load(file), report)
    taken = []
    monkeypatch.setattr("netmargin.margins.report.log_spectral_norm", lambda chain: taken.append(1))
    plain = torch.nn.Sequential(torch.nn.Linear(40, 200), torch.nn.ReLU(), torch.nn.Linear(200, 2))
    report = nm.measure(plain, data)
    assert copy.copy(report).q is report.q
    assert not taken
    assert report.save(tmp_path / "plain").stat().st_size < 20_000
    assert taken == [1]


@pytest.mark.slow
def test_a_fresh_process_reads_it(tmp_path):
    """No class must have been imported before."""
    names = []
    for kind in saved_kinds():
        path = filled(kind).save(tmp_path / f"{saved_records._key_of(kind)}.npz")
        names.append(str(path))
    script = "import sys, netmargin as nm\nfor p in sys.argv[1:]: print(type(nm.load(p)).__name__)"
    run = subprocess.run(
        [sys.executable, "-c", script, *names], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [kind.__name__ for kind in saved_kinds()]


def test_what_a_file_cannot_hold_is_named(tmp_path):
    own = Loss(lambda q: q, lambda q: q * 0 + 1, lambda x: x, name="logistic")
    for value, where in (
        (own, r"rows\[0\]\['value'\] is of type Loss"),
        (np.array([object()]), "type ndarray"),
        (len, "builtin_function"),
    ):
        with pytest.raises(nm.ArgumentError, match=where):
            nm.History([{"value": value}]).save(tmp_path / "record.zip")
    assert not list(tmp_path.iterdir())
    with pytest.raises(nm.ArgumentError, match="path must be"):
        nm.load(3)
    with pytest.raises(nm.CheckpointError, match="Cannot read .*absent"):
        nm.load(tmp_path / "absent")


class Evil:
    def __reduce__(self):
        return (print, ("the file ran code",))


def kind_of(kind, **rest):
    return {saved_records._KIND: kind, **rest}


def record_of(key, **fields):
    return {"format": 2, "record": kind_of("record", of=key, fields=fields)}


def history_of(value):
    return record_of("training.History", rows=[value], status="x")


def array_of(dtype, shape, bits):
    return history_of(kind_of("array", type=dtype, shape=shape, bits=torch.zeros(bits).byte()))


HOSTILE = {
    "no record": ({"format": 2, "record": 3}, "holds no record, but int"),
    "weights alone": (torch.nn.Linear(1, 1).state_dict(), "no record .* netmargin.load_weights"),
    "a later version": ({"format": 3, "record": 3}, "later version of netmargin .format 3"),
    "an unknown record": (record_of("margins.Nothing"), "not know"),
    "an unknown field": (record_of("training.History", rows=[], colour=1), "the field 'colour'"),
    "a missing field": (record_of("result.Bracket", lower=1.0), "field 'upper' of result.Bracket"),
    "another package": (record_of("os.system"), "not know"),
    "a command line": (record_of("__main__.X"), "no class of"),
    "a path for a package": (record_of("../os.X"), "no class of"),
    "a function as enumeration": (
        history_of(kind_of("enum", of="margins.measure", name="x")),
        "enumeration",
    ),
    "a kind of the future": (history_of(kind_of("pickle")), "unknown kind 'pickle'"),
    "a missing array": (history_of(kind_of("array", type="<f8", shape=[2])), "KeyError"),
    "an array of objects": (array_of("|O", [1], 8), "an array of type object"),
    "an array larger than it is": (array_of("<f8", [10**12], 8), "cannot reshape"),
    "a division by zero": (history_of(kind_of("fraction", terms=[1, 0])), "ZeroDivisionError"),
    "an unhashable key": (history_of(kind_of("dict", items=[([], 1)])), "TypeError"),
    "code": (history_of(Evil()), "UnpicklingError"),
    "code for a key": ({"format": 2, Evil(): 3}, "UnpicklingError"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, tmp_path, capsys):
    contents, message = HOSTILE[name]
    torch.save(contents, tmp_path / "record.pt")
    with pytest.raises(nm.CheckpointError, match=message):
        nm.load(tmp_path / "record.pt")
    assert "ran code" not in capsys.readouterr().out


def test_files_of_other_kinds_are_refused(tmp_path, capsys):
    path = tmp_path / "record.pt"
    torch.save(history_of(1), path)
    with zipfile.ZipFile(path) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("data.pkl"))
        parts = {n: archive.read(n) for n in archive.namelist()}
    deep = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    for content in (b"no zip", pickle.dumps(Evil()), b"", json.dumps({"format": 2}).encode()):
        path.write_bytes(content)
        with pytest.raises(nm.CheckpointError, match="damaged"):
            nm.load(path)
    for content, kind in (
        (deep, zipfile.ZIP_STORED),
        (pickle.dumps(Evil(), 2), zipfile.ZIP_STORED),
        (b"[" + b" " * 10**7, zipfile.ZIP_DEFLATED),  # takes a thousand times its size
    ):
        with zipfile.ZipFile(path, "w", kind) as archive:
            for n, part in (parts | {name: content}).items():
                archive.writestr(n, part)
        with pytest.raises(nm.CheckpointError, match="damaged"):
            nm.load(path)
    assert "ran code" not in capsys.readouterr().out


def test_files_that_others_read_are_not_called_damaged(tmp_path):
    net = torch.nn.Linear(2, 1)
    written = {
        "data.npz": (lambda path: np.savez(path, X=np.eye(2), y=[0, 1]), "numpy.load"),
        "X.npy": (lambda path: np.save(path, np.eye(2)), "numpy.load"),
        "data.csv": (lambda path: path.write_text("x,y\n1,0\n"), "pandas.read_csv"),
        "net.safetensors": (lambda path: nm.save_weights(net, path), "netmargin.load_weights"),
        "net.pt": (lambda path: torch.save(net.state_dict(), path), "netmargin.load_weights"),
        "history.jsonl": (lambda path: path.write_text("{}\n"), "netmargin.History.load"),
    }
    for name, (write, reader) in written.items():
        write(tmp_path / name)
        with pytest.raises(nm.CheckpointError, match=f"{name} is no record .*{reader}") as refused:
            nm.load(tmp_path / name)
        assert "damaged" not in str(refused.value)
    path = SolverData(np.arange(6.0).reshape(3, 2), np.ones(3)).save(tmp_path / "record.csv")
    assert len(nm.load(path).y) == 3
    with pytest.raises(nm.CheckpointError, match="not a history of JSON lines"):
        nm.History.load(tmp_path / "data.npz")


@pytest.mark.slow
def test_every_flipped_bit_is_noticed(tmp_path):
    path = SolverData(np.arange(6.0).reshape(3, 2), np.ones(3)).save(tmp_path / "record.zip")
    whole = path.read_bytes()
    expected, silent = nm.load(path), 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with contextlib.suppress(nm.CheckpointError):
            silent += not same(nm.load(path), expected)
    assert silent == 0
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(nm.CheckpointError):
            nm.load(path)


def test_a_file_of_an_older_version_gets_defaults(tmp_path):
    torch.save(record_of("training.History", rows=[]), tmp_path / "record.pt")
    assert nm.load(tmp_path / "record.pt") == nm.History([])


def test_every_enumeration_of_the_package_is_found():
    for kind in (nm.Status, nm.Kind, nm.Evidence, nm.Completeness):
        assert issubclass(kind, Enum)
        for member in kind:
            encoded = saved_records._encode(member, "here")
            assert saved_records._decode(encoded) is member
    for name, loss in BY_NAME.items():
        encoded = saved_records._encode(loss, "here")
        assert saved_records._decode(encoded).name == name
