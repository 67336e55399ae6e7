"""Training past underflow: SGD on the loss relative to itself, epoch by epoch, with undo."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

from torch import nn

from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_optional,
    check_path,
    check_seed,
)
from ..core.generators import own_randomness
from ..core.interrupts import Termination
from ..core.progress import Progress
from ..errors import ArgumentError, DataError, Interrupted, OutOfMemoryError
from ..losses import Loss, as_loss
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, open_model_and_data, takes_data
from ..nets.model import with_gradients
from ..nets.shared import processes_sharing
from ..nets.threads import fitting_threads, work_of
from ..result import Status
from .history import History, describe_row, show_row
from .learning_rate import LearningRate, as_learning_rate
from .run import Run
from .run_files import RunFiles, describe_loss, describe_settings
from .stopping import Epochs, StoppingRule, as_stopping_rules, fewest, first_reason

_COVERED = (
    "A killed run goes on bit for bit as far as the data draw from the global generators, or from"
    " generators and objects with state_dict() that are attributes of the loader, the sampler, the"
    " data set or the collate function; state that lies deeper starts anew."
)


@takes_data
@with_gradients
def train(
    model: nn.Module,
    data: Data,
    *,
    until: StoppingRule | Sequence[StoppingRule] = Epochs(100),
    lr: LearningRate | float | None = None,
    batch_size: int | None = 100,
    shuffle: bool = True,
    seed: int = 0,
    checkpoint_dir: str | Path | None = None,
    checkpoint_seconds: float = 5.0,
    resume: str = "auto",
    progress: bool = True,
    loss: Loss | str | nn.Module | None = None,
    scores: Choice | None = None,
) -> History:
    """Train a net in place and get its margins after every epoch, also at losses of 1e-800.

    Each epoch of SGD takes one step per batch on exp(log L_B - F), where F is the log of the last
    mean training loss, so that nothing underflows; then the loss of the whole training set and all
    margins are measured. The loss falls; normalized margins rise on the whole and go up and down,
    as the theorems on them are about gradient flow (`gradient_flow`).

    Same seed, same machine: same result bit for bit, interrupted or not, as far as
    docs/interrupting.md says. Ctrl-C puts the model back to its last accepted epoch. With
    `checkpoint_dir` it is saved there and `Interrupted` is raised, also at SIGTERM; without, the
    history so far is returned.

    Parameters
    ----------
    model : torch.nn.Module
        The net, changed in place; it keeps its device, dtype and mode. In training mode each part
        is trained in its own, else all in training mode. Frozen parameters count in the norms.
    data : pair or iterable
        As for `measure`: a pair (X, y), shuffled anew each epoch, or a DataLoader.
    until : StoppingRule or sequence of StoppingRule, default Epochs(100)
        When to stop; of several rules, the first one reached ends the run.
    lr : LearningRate or float, optional
        `LossBasedLR()` by default; a number is a constant rate.
    batch_size : int or None, default 100
        Samples per step where `data` is a pair; None for full batch.
    shuffle : bool, default True
        False takes the samples of a pair in their order. In full batch the pass that measures is
        then the next step's, too, and a refused step costs one such pass.
    seed : int, default 0
        Seed of the global generators, and so of shuffling and dropout.
    checkpoint_dir : str or path, optional
        Folder for history.jsonl and checkpoint.pt, made where it is not there; the same call goes
        on from it. Without one nothing is kept on disk.
    checkpoint_seconds : float, default 5.0
        Least time between two checkpoints, in seconds; a killed run repeats at most that.
    resume : {"auto", "never"}, default "auto"
        Whether to go on with the run that the folder holds, or to refuse to touch it.
    progress : bool, default True
        Whether to show loss, margin and time left as they come.
    loss, scores : optional
        As for `measure`.

    Returns
    -------
    History
        One row per accepted epoch, the first before training, and how it ended.

    Raises
    ------
    DataError, ModelError
        The data or the model cannot be used, as for `measure`; the labels hold one class only.
    ArgumentError
        Any other argument cannot be used.
    DivergenceError
        The loss or parameters are not finite, with a rule that cannot undo; the model is put back.
    OutOfMemoryError
        The memory does not suffice for so many samples at once; the model is put back.
    CheckpointError
        Files cannot be read or written, or belong to another run or model.
    Interrupted
        Ctrl-C or SIGTERM where there is a `checkpoint_dir`, after the last accepted epoch was saved
        in it; a KeyboardInterrupt that carries the `history` so far.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> data = (torch.tensor([[2.0, 1.0], [-1.0, -2.0]]), torch.tensor([1, -1]))
    >>> history = nm.train(net, data, until=nm.LogLossBelow(log10=-1000), progress=False)
    >>> history.message
    'log10-loss fell below -1000'
    >>> round(history.rows[-1]["normalized_margin"], 2)  # on its way to 3 / sqrt(2) = 2.12
    2.11

    Source: Lyu and Li 2019, Appendix K.
    """
    if processes_sharing() > 1:
        raise ArgumentError(
            "train does not split samples: all processes would repeat the same run. Call it outside"
            " of split_samples; or train with RelativeLoss in DistributedDataParallel, and Watch."
        )
    rules = as_stopping_rules(until)
    # A copy of the rule, which adapts: the caller's serves the next run, too.
    rate, chosen = copy.deepcopy(as_learning_rate(lr)), as_loss(loss)
    batch_size, seed = check_optional(check_count, "batch_size", batch_size), check_seed(seed)
    folder = check_optional(check_path, "checkpoint_dir", checkpoint_dir)
    checkpoint_seconds = check_number(
        "checkpoint_seconds", checkpoint_seconds, at_least=0, infinite=True
    )
    check_choice("resume", resume, ("auto", "never"))
    progress, shuffle = check_flag("progress", progress), check_flag("shuffle", shuffle)
    model, data = open_model_and_data(model, data, shuffled=True)
    if isinstance(data, Iterator):
        raise DataError(
            "Training reads the data once per epoch, and a generator can be read only once. Pass"
            " (X, y) or a DataLoader."
        )
    files = None
    if folder:
        settings = describe_settings(
            model,
            data,
            loss=describe_loss(chosen),
            lr=repr(rate),
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
        )
        files = RunFiles(folder, settings, checkpoint_seconds)
    lock = files.locked() if files else nullcontext()
    # The lock comes first, so that a second process changes nothing before it is refused.
    with (
        lock,
        Termination(files is not None) as termination,
        ExitStack() as threads,
        own_randomness(seed),
        Progress(progress, type(model).__name__) as display,
    ):
        run = Run(model, data, rate, chosen, batch_size, files, shuffle)
        first = run.first_inputs()
        threads.enter_context(fitting_threads(work_of(model, first)))
        run.begin(first, files.read(resume) if files else None)
        if files and not isinstance(data, Arrays):
            display.say(_COVERED)
        try:
            with termination.interrupting():
                _train_until(run, rules, display)
        except (KeyboardInterrupt, OutOfMemoryError) as error:
            # It may have come anywhere in an epoch.
            run.rewind()
            if isinstance(error, OutOfMemoryError):
                if files is None:
                    raise
                raise OutOfMemoryError(
                    f"{error} The last accepted epoch is saved in {files.folder}; another batch"
                    " size is another run, which needs another folder."
                ) from error
            history = run.history
            how = "ended by SIGTERM" if termination.received else "interrupted"
            history.status = Status.INTERRUPTED
            history.message = f"{how} after epoch {len(history) - 1}"
            if files:
                history.message += f"; saved in {files.folder}; the same call goes on from there"
            display.say(history.message)
            if files:
                raise Interrupted(history.message, history) from None
            return history
        run.save(now=True)
        display.say(f"{describe_row(run.history.rows[-1])}: {run.history.message}")
    return run.history


def _train_until(run: Run, rules: list[StoppingRule], display: Progress) -> None:
    """Train epoch by epoch until a rule or a stall ends the run; the reason becomes its message."""
    while True:
        rows = run.history.rows
        # Rules come first: a run that is resumed may be over already.
        if (reason := first_reason(rules, rows)) or run.stalled:
            run.history.status = Status.FINISHED if reason else Status.STALLED
            run.history.message = reason or run.stalled
            return
        left = fewest(*(rule.epochs_left(rows) for rule in rules))
        run.epoch(partial(show_row, display, rows[-1], left))
