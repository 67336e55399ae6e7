"""A run of a Trainer with a callback: `python -m tests.integrations.trainer_run FOLDER`."""

import os
import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments

import netmargin as nm
from tests.integrations.nets import Samples, token_net, tokens
from tests.process_end import end_process

BATCH = 20


class InOrder(Trainer):
    """A trainer whose batches come in the order of the samples, so that processes share them."""

    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def make_trainer(folder, net, *, epochs, n=60, kind=Trainer, **options):
    """A trainer with a checkpoint after every epoch."""
    processes = int(os.environ.get("WORLD_SIZE", 1))
    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=BATCH // processes,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        report_to=[],
        save_strategy="epoch",
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
        **options,
    )
    return kind(net, arguments, train_dataset=Samples(tokens(n)))


def make_net(seed: int = 0, **options):
    """A transformer with fresh weights."""
    torch.manual_seed(seed)
    return token_net(**options)


def run(folder: Path) -> None:
    """Train, and look after every epoch."""
    net = make_net(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    # Otherwise the Trainer multiplies the loss by the number of processes.
    sharing = {"average_tokens_across_devices": False}
    trainer = make_trainer(folder, net, epochs=3, kind=InOrder, **sharing)
    trainer.add_callback(nm.callbacks.TransformersMarginCallback(trainer, tokens(40)))
    trainer.train()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
    end_process()
