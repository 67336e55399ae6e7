"""What `page` was given, sorted: nets, a run, and records by their kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from ..core.saved_records import load
from ..errors import ArgumentError
from ..kkt import KKTCertificate
from ..label_errors import LabelErrors
from ..margins import Comparison
from ..nets.accepted_models import describe_other_thing
from ..radii import RobustnessReport
from ..training import History
from .runs import RunFolder, read_run

_RECORDS = "what nm.certify, nm.robustness, nm.train, nm.compare or nm.label_errors returned"
_KINDS = {
    RunFolder: "run",
    KKTCertificate: "certificate",
    History: "history",
    Comparison: "comparison",
    LabelErrors: "label_errors",
}
"""Records of which a page shows one each, and what they are called here."""


@dataclass
class Given:
    """What `page` was given: nets, that of the page first, and at most one record of each kind.

    Radii are by the name of their net; "" for that of the page.
    """

    models: dict[str, nn.Module] = field(default_factory=dict)
    run: RunFolder | None = None
    certificate: KKTCertificate | None = None
    history: History | None = None
    comparison: Comparison | None = None
    label_errors: LabelErrors | None = None
    radii: dict[str, RobustnessReport] = field(default_factory=dict)

    def add(self, record: Any) -> None:
        """Add a record, the file of one, or the folder of a run. Raises ArgumentError."""
        if isinstance(record, (str, Path)):
            path = Path(record)
            if path.suffix == ".jsonl":
                record = History.load(path)
            else:
                record = read_run(path) if path.is_dir() else load(path)
        kind = next((name for kind, name in _KINDS.items() if isinstance(record, kind)), None)
        if isinstance(record, RobustnessReport):
            record = {"": record}
        if kind is not None:
            self._put(kind, record)
            if isinstance(record, RunFolder):
                self._put("history", record.history)
        elif isinstance(record, Mapping) and all(
            isinstance(value, RobustnessReport) for value in record.values()
        ):
            if set(map(str, record)) & set(self.radii):
                raise ArgumentError(
                    "records holds more than one RobustnessReport. Give those of several nets as a"
                    " dict by the names of the nets."
                )
            self.radii |= {str(name): report for name, report in record.items()}
        else:
            raise ArgumentError(
                f"records must hold {_RECORDS}, files of such, or the folder of a run; got"
                f" {type(record).__name__}"
            )

    def _put(self, name: str, record: Any) -> None:
        """Keep a record. Raises ArgumentError where there is one of its kind."""
        if getattr(self, name) is not None:
            raise ArgumentError(
                f"records holds more than one {type(record).__name__}. A page shows one of them:"
                " leave out the others."
            )
        setattr(self, name, record)


def read_given(subject: Any, records: Any) -> Given:
    """Sort what `page` was given. Raises ArgumentError for what no page is made of."""
    given, nets = Given(), subject
    if isinstance(subject, nn.Module):
        nets = {type(subject).__name__: subject}
    elif _is_list(subject):
        nets = {f"net {index}": model for index, model in enumerate(subject)}
    if isinstance(nets, Mapping) and nets and all(isinstance(n, nn.Module) for n in nets.values()):
        given.models = {str(name): model for name, model in nets.items()}
    else:
        try:
            for record in subject if _is_list(subject) and subject else [subject]:
                given.add(record)
        except ArgumentError as error:
            if "more than one" in str(error):
                raise
            raise ArgumentError(
                "A page is made of a model, several by name or in a list, the folder of a run, or"
                f" {_RECORDS}; {describe_other_thing(subject)}"
            ) from None
    if not _is_list(records):  # one alone need not be put into a list
        records = [] if records is None else [records]
    for record in records:
        given.add(record)
    return given


def _is_list(values: Any) -> bool:
    """Whether something is a list of things, and no text."""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes))
