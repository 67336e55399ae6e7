"""One net of the zoo, analysed and measured in this process: python -m benchmarks.zoo_net NAME."""

import ctypes
import gc
import json
import re
import statistics
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn

import netmargin as nm

from .zoo_nets import CLASSES, ZOO, Entry

_LONG_PASS = 0.5
"""Seconds of a forward pass of 4 samples from which the batch stays at 4 instead of 16."""
_NORMS = (nn.modules.batchnorm._BatchNorm,)


def measure_net(entry: Entry) -> dict:
    """What `analyse` and `measure` say of a net, with time and memory, ready for JSON."""
    found: dict = {"name": entry.name, "library": entry.library, "family": entry.family}
    try:
        model = entry.build()
    except Exception as error:  # of the library, not of ours
        return found | {"error": f"not built: {type(error).__name__}: {error}"}
    found |= {
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch_norm": any(isinstance(module, _NORMS) for module in model.modules()),
    }
    nm.analyse(nn.Linear(2, 2), torch.ones(1, 2))  # what is imported at its first call
    found["batch"] = 4 if _time_forward(model, entry.inputs(4)) > _LONG_PASS else 16
    x = entry.inputs(found["batch"])
    found["forward_seconds"] = _time_forward(model, x)
    before = _reset_peak()
    started = time.process_time()
    try:
        answer = nm.analyse(model, x)
    except Exception as error:
        traceback.print_exc()
        return found | {"error": f"{type(error).__name__}: {error}"}
    found |= {
        "analyse_seconds": time.process_time() - started,
        "memory": None if before is None else max(_peak() - before, 0),
    }
    y = torch.arange(len(x)) % CLASSES
    report = nm.measure(model, (x, y), homogeneity=answer)
    used = answer if report.normalized_margin is None else report.homogeneity
    found |= _describe(answer) | _reach(used, model) | {"margin": _which_margin(report)}
    return found


def _describe(answer: nm.Homogeneity) -> dict:
    """Kind, order and reach of an answer, and its blockers in groups."""
    blockers = Counter(_without_names(str(b.reason)) for b in answer.blockers)
    return {
        "kind": answer.kind.name.lower().replace("_", "-"),
        "order": None if answer.order is None else str(answer.order),
        "quasi": answer.quasi_exponents is not None,
        "deviation": answer.deviation,
        "evidence": answer.evidence.name.lower(),
        "blockers": dict(blockers.most_common()),
        "notes": list(answer.notes),
    }


def _reach(answer: nm.Homogeneity, model: nn.Module) -> dict:
    """How much of a net the scaling of its margin covers."""
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    covered = {name for members in answer.members.values() for name in members}
    return {
        "scaled": sum(exponent != 0 for exponent in answer.groups.values()),
        "invariant": sum(exponent == 0 for exponent in answer.groups.values()),
        "covered": sum(sizes.get(name, 0) for name in covered) / sum(sizes.values()),
    }


def _which_margin(report: nm.MarginReport) -> str:
    """The name of the first margin that applies to a net, and its order."""
    if report.normalized_margin is not None:
        ignored = ", later biases ignored" if report.homogeneity.ignored else ""
        return f"normalized (order {report.order}{ignored})"
    if report.margins["quasi"].value is not None:
        return "quasi-normalized"
    if report.margins["partial"].value is not None:
        return f"partial (order {report.homogeneity.order})"
    return "none"


def _without_names(reason: str) -> str:
    """A blocker's reason without the name of the parameter, so that equal ones can be counted."""
    return re.sub(r" '[^']*'", "", reason)


def _time_forward(model: nn.Module, x: Tensor) -> float:
    """The median of three forward passes in seconds of this process, after one to warm up."""

    def seconds() -> float:
        started = time.process_time()
        with torch.no_grad():
            model(x)
        return time.process_time() - started

    seconds()
    return statistics.median(seconds() for _ in range(3))


def _reset_peak() -> int | None:
    """The memory of this process in bytes, with its peak set back to it; None but on Linux."""
    try:
        gc.collect()
        # What earlier passes freed is given back first, or their peak would hide the one measured.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        return _peak()
    except (OSError, AttributeError):
        return None


def _peak() -> int:
    """The largest memory of this process in bytes since it was set back."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


if __name__ == "__main__":
    print(json.dumps(measure_net(ZOO[sys.argv[1]])))
