"""What a watch costs in an own loop, in Lightning and in Hugging Face's Trainer: one look against
bare forward passes of the watched samples, and all looks against the run that they watch.
"""

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import netmargin as nm

SAMPLES, WATCHED, EPOCHS, BATCH = 2000, 200, 9, 50
"""A tenth of the training samples is watched after every epoch."""
TOKENS, WORDS = 64, 100


class Cost(NamedTuple):
    """CPU seconds of a look and of bare forward passes of its samples (medians), the number of
    looks, and the CPU seconds of all looks and of the whole run (without the bare passes).
    """

    look: float
    passes: float
    looks: int
    all_looks: float
    whole: float


def main() -> None:
    """Print both ratios for each loop; frameworks that are not installed are left out."""
    for name in LOOPS:
        try:
            cost = measure_loop(name)
        except ImportError as error:
            print(f"{name}: left out, {error}")
            continue
        print(
            f"{name}: a look takes {1e3 * cost.look:.0f} ms, bare passes of its {WATCHED} samples"
            f" {1e3 * cost.passes:.0f} ms: ratio {cost.look / cost.passes:.3f} (goal 1.2);"
            f" {cost.looks} looks are {100 * cost.all_looks / cost.whole:.1f}% of the run's"
            f" {cost.whole:.1f} s (goal 5%)",
            flush=True,
        )


def measure_loop(name: str) -> Cost:
    """Train once in one of LOOPS; raises ImportError where its framework is not installed."""
    run, make = LOOPS[name]
    torch.manual_seed(0)
    looks = _Timed()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        run(make(), looks, folder)
        whole = time.process_time() - start - sum(looks.passes)
    one, least = statistics.median(looks.looks), statistics.median(looks.passes)
    return Cost(one, least, len(looks.looks), sum(looks.looks), whole)


def draw_pictures() -> tuple[Tensor, Tensor]:
    """Random pictures of the size of MNIST's."""
    return torch.rand(SAMPLES, 1, 28, 28), torch.arange(SAMPLES) % 10


def draw_words() -> tuple[Tensor, Tensor]:
    """Random texts."""
    return torch.randint(WORDS, (SAMPLES, TOKENS)), torch.arange(SAMPLES) % 10


class _Timed:
    """The processor's seconds of all looks at a net, and of bare passes beside each of them."""

    def __init__(self) -> None:
        self.looks: list[float] = []
        self.passes: list[float] = []

    def wrap(self, look: Callable, net: nn.Module, watched: Tensor) -> Callable:
        """The same function, timed; each call in turns with bare passes of `watched`.

        In turns, as bare passes of one minute took half as long again as those of another.
        """

        def timed(*given: Any, **named: Any) -> Any:
            self.passes.append(_time_passes(net, watched))
            start = time.process_time()
            found = look(*given, **named)
            self.looks.append(time.process_time() - start)
            self.passes.append(_time_passes(net, watched))
            return found

        return timed


def _time_passes(net: nn.Module, watched: Tensor) -> float:
    """The processor's seconds of one bare forward pass in evaluation mode."""
    training = net.training
    net.eval()
    start = time.process_time()
    with torch.no_grad():
        net(watched)
    seconds = time.process_time() - start
    net.train(training)
    return seconds


def _run_own(data: tuple[Tensor, Tensor], looks: _Timed, folder: str) -> None:
    X, y = data
    net = nm.models.mnist_cnn()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    watch = nm.Watch(net, (X[:WATCHED], y[:WATCHED]), folder=folder)
    step = looks.wrap(watch.step, net, X[:WATCHED])
    for _ in range(EPOCHS):
        for rows in torch.randperm(SAMPLES).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimizer.step()
        step()


def _run_lightning(data: tuple[Tensor, Tensor], looks: _Timed, folder: str) -> None:
    import lightning.pytorch as pl

    class Classifier(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nm.models.mnist_cnn()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

        def training_step(self, batch: Any, index: int) -> Tensor:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    X, y = data
    module = Classifier()
    monitor = nm.callbacks.LightningMarginMonitor((X[:WATCHED], y[:WATCHED]))
    monitor._measure = looks.wrap(monitor._measure, module, X[:WATCHED])
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        callbacks=[monitor],
        default_root_dir=folder,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(TensorDataset(X, y), BATCH, shuffle=True))


def _run_trainer(data: tuple[Tensor, Tensor], looks: _Timed, folder: str) -> None:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    X, y = data
    sizes = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "num_labels": 10}
    net = BertForSequenceClassification(
        BertConfig(vocab_size=WORDS, intermediate_size=512, **sizes)
    )
    arguments = TrainingArguments(
        folder,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
    )
    samples = [{"input_ids": ids, "labels": label} for ids, label in zip(X, y, strict=True)]
    trainer = Trainer(net, arguments, train_dataset=samples)
    watched = {"input_ids": X[:WATCHED], "labels": y[:WATCHED]}
    callback = nm.callbacks.TransformersMarginCallback(trainer, watched)
    callback._measure = looks.wrap(callback._measure, net, X[:WATCHED])
    trainer.add_callback(callback)
    trainer.train()


LOOPS: dict[str, tuple[Callable, Callable[[], tuple[Tensor, Tensor]]]] = {
    "own loop, MNIST CNN": (_run_own, draw_pictures),
    "Lightning, MNIST CNN": (_run_lightning, draw_pictures),
    "Trainer, BERT of 4 layers, 128 wide": (_run_trainer, draw_words),
}
"""The loops, and the data of each."""
