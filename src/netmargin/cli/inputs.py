"""Arguments that several verbs share, and what they name: a model, data, and where to write."""

import argparse
import importlib
import os
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from torch import nn

from .. import datasets, losses
from ..core.arguments import suggest_word
from ..core.progress import say
from ..core.records import plural
from ..errors import ArgumentError, DataError, ModelError
from ..models import BIASES
from ..nets.accepted_models import check_model
from ..nets.named_inputs import LABELS, find_label
from ..nets.named_scores import name_scores
from ..training.recipes import RECIPES

RECIPE_LIST = "recipes:\n" + "\n".join(
    f"  {name:20} {recipe.title}" for name, recipe in RECIPES.items()
)


FILES = "an .npz file of arrays X and y, or a .csv table with a column label or y"
"""Files of samples, as help and messages name them."""
STRAY = ". --heldout takes no file: --data names it, and --heldout says what it is"
"""What is said of a word too many after a verb that asks whether samples are held out."""


def add_options(parser: Any, *rows: tuple[Any, ...]) -> None:
    """Add options. A row: the name and the words that follow it, "..." where it may be repeated;
    the type of these, their choices, or bool for a flag; the help; the default, if there is one.
    """
    for usage, kind, said, *default in rows:
        name, *words = usage.split()
        about: dict[str, Any] = {"action": "store_true"} if kind is bool else {}
        if kind is not bool:
            about["type" if callable(kind) else "choices"] = kind
        if words[-1:] == ["..."]:
            words.pop()
            about |= {"action": "append", "default": []}
            said += "; may be repeated"
        if words:
            about["metavar"] = words[0] if len(words) == 1 else tuple(words)
        if len(words) > 1:
            about["nargs"] = len(words)
        if default:
            about["default"] = default[0]
            said += f" (default: {default[0]})"
        parser.add_argument(name, help=said, **about)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which net."""
    about_scores = "key or index of the output that holds your model's scores, of several"
    add_options(
        parser,
        ("--factory", str, "your model as package.module:function, or the name of a recipe"),
        ("--bias", BIASES, "which layers of a recipe's net have a bias", "first"),
        ("--scores", lambda w: int(w) if w.lstrip("-").isdigit() else w, about_scores),
    )


def add_saved_net(parser: argparse.ArgumentParser, **weights: Any) -> None:
    """Add the file of a net's weights, which net it is, and samples; weights may be more files."""
    about = {"help": "file with a state dict, or a checkpoint of a run"} | weights
    parser.add_argument("weights", **about)
    add_model(parser)
    add_data(parser)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which samples, and which loss of them."""
    add_samples(parser)
    add_options(parser, ("--loss", losses.BY_NAME, "the loss of a margin", "cross-entropy"))


def add_samples(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which samples."""
    add_options(
        parser,
        ("--data", str, f"{', '.join(datasets.BY_NAME)}, or {FILES}"),
        ("--split", ("train", "test"), "part of a named data set", "train"),
        ("--limit", positive(int), "class-balanced subset of this size"),
    )


def add_class_names(parser: argparse.ArgumentParser) -> None:
    """Add --class-names, which labels that are text need where the net has an order of its own."""
    about = "names of the classes in the order of their numbers or the outputs, as cat,dog,ship"
    add_options(parser, ("--class-names NAMES", lambda words: words.split(","), about))


def add_json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add --json, which every verb has."""
    add_options(parser, ("--json", bool, f"print {what} as JSON"))


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add --jobs and --cluster: who computes what can be computed side by side."""
    dask = "the workers of a Dask scheduler instead, such as tcp://localhost:8786"
    add_options(
        parser.add_mutually_exclusive_group(),
        ("--jobs N", positive(int), "processes (default: one for each core)"),
        ("--cluster ADDRESS", str, dask),
    )


def positive(number: type, *, or_zero: bool = False) -> Callable[[str], Any]:
    """Make a parser of positive numbers, or of 0 as well, for argparse."""

    def parse(text: str) -> Any:
        value = number(text)
        if not (value > 0 or (or_zero and value == 0)):
            raise ValueError(text)
        return value

    # argparse says "invalid NAME value"
    parse.__name__ = "whole number from 0 on" if or_zero else f"positive {number.__name__}"
    return parse


natural = positive(int, or_zero=True)
"""A parser of whole numbers from 0 on, for argparse."""


def folder(text: str) -> Path:
    """Parse the name of a folder for results, for argparse: any but the current one."""
    path = Path(text)
    if path.resolve() == Path.cwd():
        raise argparse.ArgumentTypeError(
            f"{text!r} is the current folder: results would lie among your own files. Name another"
            " one, such as runs/mine"
        )
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a file. Name a folder, such as runs/mine")
    return path


def model(options: argparse.Namespace) -> nn.Module:
    """Make the net of a recipe, or call the user's factory. Raises ModelError, ArgumentError."""
    name = getattr(options, "recipe", None) or options.factory
    if name is None:
        raise ArgumentError(
            "Say which model: the name of a recipe, or --factory package.module:function."
        )
    # A recipe's name has no colon, so that it cannot be taken for a factory.
    if name in RECIPES:
        return RECIPES[name].make_model(bias=options.bias)
    module_name, colon, function = name.partition(":")
    if not (colon and module_name and function):
        guess = f"{suggest_word(name, RECIPES)} ".lstrip()
        raise ArgumentError(
            f"{name!r} is no recipe. {guess}The recipes are {', '.join(RECIPES)}. Your own model is"
            " given as --factory package.module:function."
        )
    make_model = _load_factory(name, module_name, function)
    try:
        made = check_model(make_model if isinstance(make_model, nn.Module) else make_model())
        return made if options.scores is None else name_scores(made, choice=options.scores)
    except ModelError as error:
        raise ModelError(f"{name} returned no model: {error}") from error
    except Exception as error:  # a factory is the caller's code, and may raise anything
        # A TypeError about arguments nearly always is our own call of a function that wants some.
        hint = "A factory takes no arguments and returns a torch.nn.Module."
        if not (isinstance(error, TypeError) and "argument" in str(error)):
            hint = "Call it in Python to find out more."
        raise ModelError(
            f"The model factory {name!r} failed: {_describe_error(error)}. {hint}"
        ) from error


def saved_model(options: argparse.Namespace, weights: str | Path) -> nn.Module:
    """Make the net that the options name, with the weights of a file."""
    from ..training import load_weights

    net = model(options)
    load_weights(net, weights)
    return net


def data_name(options: argparse.Namespace) -> str:
    """The data set or file that the options name, or that of the recipe. Raises ArgumentError."""
    recipe = RECIPES.get(getattr(options, "recipe", None) or options.factory)
    name = options.data or (recipe.data if recipe else None)
    if name is None:
        raise ArgumentError(
            f"Say which data: --data with {', '.join(datasets.BY_NAME)}, or {FILES}."
        )
    return name


def arrays(path: str, groups: str | None = None) -> Any:
    """Read X and y of a file, .npz or .csv. Raises DataError, or ArgumentError for no file."""
    import numpy as np

    if not Path(path).is_file():
        guess = suggest_word(path, datasets.BY_NAME)
        raise ArgumentError(
            f"--data: {path!r} is no file. {guess + ' ' if guess else ''}The data sets are"
            f" {', '.join(datasets.BY_NAME)}; your own samples come in {FILES}."
        )
    held: list[str] = []
    try:
        if path.lower().endswith(".csv"):
            return _read_table(path, groups)
        # Pickles could run code: a file of samples need not hold any.
        with np.load(path, allow_pickle=False) as arrays:
            held = list(arrays)
            return arrays["X"], arrays["y"]
    except Exception as error:  # numpy, pandas and zipfile raise nearly anything for other bytes
        why = " ".join(str(error).split())
        if isinstance(error, KeyError):
            why = f"it holds {', '.join(held)}"
        elif "Object arrays" in why:
            why = "one holds Python objects, as columns with text do: numpy.asarray(y, str) is text"
        elif not (zipfile.is_zipfile(path) or path.lower().endswith(".csv")):
            why = "only .npz and .csv files are read"
        raise DataError(
            f"Cannot read arrays X and y from {path!r}: {why}. numpy.savez(file, X=X, y=y) writes"
            " them, and frame.to_csv(file) a table, where y is one of its columns."
        ) from error


def _read_table(path: str, groups: str | None) -> Any:
    """The inputs and the labels of a table with names of columns, as frames of pandas."""
    import pandas

    table = pandas.read_csv(path)
    if table.columns[0] == "Unnamed: 0":  # the index, as to_csv writes it
        table = table.set_index(table.columns[0])
    if (label := find_label(table.columns)) is None:
        if len(table.columns) == 1:
            raise DataError("it has one column: those of a table are separated by commas")
        shown = ", ".join(map(str, table.columns[-6:]))
        raise DataError(f"no column is called {' or '.join(LABELS)}; the last ones are {shown}")
    for name in {label, groups} & set(table.columns):
        known = table[name].dropna()
        if known.empty or any(isinstance(cell, str) for cell in known):
            # A class may be called None or NA: of text only an empty cell is missing.
            only: Any = {"usecols": [name], "keep_default_na": False, "na_values": ""}
            table[name] = pandas.read_csv(path, dtype=str, **only).iloc[:, 0].to_numpy()
    X = table.drop(columns=label)
    inputs = [str(column) for column in X.columns if column != groups]
    few = ", ".join([*inputs[:3], "..."][: len(inputs)])
    say(f"{path}: labels in {label!r}, {plural(len(inputs), 'other column')}: {few}")
    return X, table[label]


def data(options: argparse.Namespace, *, limit: int | None) -> Any:
    """Load the samples that the options name. Raises DataError, ArgumentError."""
    groups = getattr(options, "groups", None)
    return load_data(data_name(options), getattr(options, "split", "train"), limit, groups)


def load_data(
    name: str, split: Literal["train", "test"], limit: int | None = None, groups: str | None = None
) -> Any:
    """Load a part of a named data set, or what `arrays` reads. Raises what `data` raises."""
    if name in datasets.BY_NAME:
        return datasets.BY_NAME[name](split, limit=limit)
    X, y = arrays(name, groups)
    kinds = {kind.kind for kind in (X.dtypes if hasattr(X, "iloc") else [X.dtype])}
    # Floats as torch's default, the nets' own type; integers may be tokens, and stay.
    X = X.astype("float32") if "f" in kinds and kinds <= set("fiub") else X
    if limit is None:
        return X, y
    import pandas  # late: it takes half a second to load

    rows = datasets.selection.choose_balanced(y, limit)
    if rows[-1] >= limit:
        say(f"{name}: answers number the {limit} samples taken of {len(y)}, from 0")
    if hasattr(X, "iloc"):
        return X.iloc[rows], y.iloc[rows]
    return X[rows], pandas.Series(y[rows], rows)  # which names the rows of the file


def _load_factory(name: str, module_name: str, function: str) -> Any:
    """Import what the user calls the factory. Raises ModelError, whatever goes wrong there."""
    # As for `python -m`: the caller's own package lies where the command is given.
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module_name), function)
    except (Exception, SystemExit) as error:  # the caller's code, which may raise anything
        advice = " Check the name of the function." if isinstance(error, AttributeError) else ""
        if isinstance(error, ModuleNotFoundError):  # of the package, or of what it imports
            own = not error.name or module_name.startswith(error.name)
            advice = " Run from the folder that holds its package."
            advice = advice if own else " Install what it imports."
        if module_name.endswith(".py") or "/" in module_name:
            advice = " Give the module by its name, package.module, and no path of a file."
        raise ModelError(
            f"Cannot load the model factory {name!r}: {_describe_error(error)}.{advice}"
        ) from error


def _describe_error(error: BaseException) -> str:
    """Describe an error of the caller's code, with its place there."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if frame.filename.startswith(os.getcwd()) and Path(frame.filename) != Path(__file__)
    ]
    place = f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""
    return f"{place}{type(error).__name__}: {error}"
