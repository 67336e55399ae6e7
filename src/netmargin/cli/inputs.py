"""What a command line names: a model, data, a positive number."""

import argparse
import importlib
import os
import sys
import zipfile
from pathlib import Path

from torch import nn

from .. import datasets
from ..errors import DataError, ModelError
from ..recipes import RECIPES
from ..training.checkpoint import make_folder


def positive(number: type):
    """A parser of positive numbers, for argparse."""

    def parse(text: str):
        value = number(text)
        if not value > 0:
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {number.__name__}"
    return parse


def model(options: argparse.Namespace) -> nn.Module:
    """The net of a recipe, or what the user's factory returns. Raises ModelError."""
    name = getattr(options, "recipe", None) or options.factory
    if name is None:
        raise ModelError("Say which model: the name of a recipe, or --factory package.module:function.")
    if name in RECIPES:
        return RECIPES[name].make_model(bias=options.bias)
    module_name, colon, function = name.partition(":")
    if not colon:
        raise ModelError(f"{name!r} is no recipe ({', '.join(RECIPES)}). Your own model is given as package.module:function.")
    sys.path.insert(0, os.getcwd())
    try:
        make_model = getattr(importlib.import_module(module_name), function)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"Cannot find the model factory {name!r}: {error}. Run from the folder that holds its package.") from error
    model = make_model()
    if not isinstance(model, nn.Module):
        raise ModelError(f"{name} returned {type(model).__name__}; a factory takes no arguments and returns a torch.nn.Module.")
    return model


def data_name(options: argparse.Namespace) -> str:
    """The data set or file that was asked for, or that of the recipe. Raises DataError."""
    recipe = RECIPES.get(getattr(options, "recipe", None) or options.factory)
    name = options.data or (recipe.data if recipe else None)
    if name is None:
        raise DataError(f"Say which data: --data with {', '.join(datasets.BY_NAME)} or an .npz file with arrays X and y.")
    return name


def arrays(path: str):
    """X and y of an .npz file. Raises DataError."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"]
    except (OSError, KeyError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"Cannot read arrays X and y from {path!r}: {error}. Save them with numpy.savez(file, X=X, y=y)."
        ) from error


def data(options: argparse.Namespace, *, limit: int | None):
    """The samples that were asked for. Raises DataError."""

    name = data_name(options)
    if name in datasets.BY_NAME:
        return datasets.BY_NAME[name](getattr(options, "split", "train"), limit=limit)
    X, y = arrays(name)
    X = X.astype("float32") if X.dtype.kind == "f" else X
    return (X, y) if limit is None else datasets.selection.select(X, y, limit, scale=1)


def require_writable(path: Path) -> None:
    """Before minutes of work whose page could not be written. Raises CheckpointError, DataError."""
    make_folder(path.parent)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file.")
