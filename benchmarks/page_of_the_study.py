"""The tables and the picture of docs/comparing.md, from the records of the nets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from netmargin.figures.style import BOTH, OTHER, OUTPUT, open_canvas

from .nets_of_the_study import Setting
from .ranking import Pairs, Taus, agree, average_tau, pair_by_setting, pair_within

FIT = 0.05
"""Nets with a larger training loss have not fitted their data, and are left out."""
ONE_SETTING = ("wide", "deep", "optimizer", "decay", "batch")
"""Settings over whose pairs tau is averaged; BatchNorm and noise are shown by themselves."""
KIND = ("architecture", "batch_norm", "noise")
"""Settings in which nets of one kind agree."""
TEST_IMAGES = 10_000
"""What the test errors were counted on."""
HELD_OUT, INPUT, TRAINING, NORMALIZED = "held-out", "input", "training", "normalized"
COLORS = {HELD_OUT: BOTH, INPUT: OTHER, TRAINING: "#777777", NORMALIZED: OUTPUT}


@dataclass(frozen=True)
class Number:
    """What nets are ranked by: its title, its name in the records, and the sign of "better"."""

    title: str
    key: str
    sign: int
    family: str

    @property
    def cell(self) -> str:
        """The title in a table of Markdown, where bars end cells."""
        return self.title.replace("|", r"\|")


NUMBERS = [
    Number("z, 200 held-out labels", "z 200", 1, HELD_OUT),
    Number("z, 500 labels", "z 500", 1, HELD_OUT),
    Number("margin-weighted error, 200 labels", "weighted 200", -1, HELD_OUT),
    Number("error, 200 labels", "error 200", -1, HELD_OUT),
    Number("error, 500 labels", "error 500", -1, HELD_OUT),
    Number("error, 1,000 labels", "error 1000", -1, HELD_OUT),
    Number("input margin, 10%", "input 10%", 1, INPUT),
    Number("input margin, 25%", "input 25%", 1, INPUT),
    Number("input margin, 50%", "input 50%", 1, INPUT),
    Number("relative input margin, 25%", "relative input 25%", 1, INPUT),
    Number("training loss (control)", "train loss", -1, TRAINING),
    Number("score margin q, median", "q 50%", 1, TRAINING),
    Number("smallest q / ||theta||^L", "global min", 1, NORMALIZED),
    Number("median q / ||theta||^L", "global 50%", 1, NORMALIZED),
    Number("median q e^(-a*), quasi-homogeneous", "quasi 50%", 1, NORMALIZED),
    Number("median q / product of layer norms", "layers 50%", 1, NORMALIZED),
    Number("median q / Bartlett's norm (MLPs)", "bartlett 50%", 1, NORMALIZED),
]
INDEX = {number.key: index for index, number in enumerate(NUMBERS)}
STRATA: Mapping[str, Callable[[Mapping], bool]] = {
    "plain": lambda setting: not setting["batch_norm"] and not setting["noise"],
    "BatchNorm": lambda setting: setting["batch_norm"],
    "label noise": lambda setting: setting["noise"] > 0,
}
AXES = {
    "0, 10 or 20% label noise": "noise",
    "BatchNorm or not": "batch_norm",
    "architecture": "architecture",
    "width": "wide",
    "depth": "deep",
    "optimizer": "optimizer",
    "weight decay or not": "decay",
    "batches of 128 or 32": "batch",
}
"""Settings, in words."""
_IN_STRATA = ("z 200", "error 200", "input 25%", "relative input 25%", "train loss", "global 50%")


class Population:
    """The nets of one data set that fit it, and how numbers rank them.

    Parameters
    ----------
    records : sequence of dict
        What `study_net` returned, for one data set.
    """

    def __init__(self, records: Sequence[dict]) -> None:
        self.trained = len(records)
        self.records = [r for r in records if r["numbers"]["train loss"] < FIT]
        self.settings = [asdict(Setting(*record["setting"])) for record in self.records]
        self.errors = np.array([record["numbers"]["test error"] for record in self.records])
        self.by_setting = pair_by_setting(self.settings)

    @cached_property
    def one_setting(self) -> Taus:
        """Tau over pairs that differ in one setting, averaged over settings."""
        return self.rank([self.by_setting[s] for s in ONE_SETTING if s in self.by_setting])

    @cached_property
    def one_kind(self) -> Taus:
        """Tau over all pairs of one architecture, with the same noise and BatchNorm or none."""
        return self.rank([pair_within(self.settings, KIND)])

    @cached_property
    def clear_pairs(self) -> Pairs:
        """Pairs that differ in one setting, and in their test errors by two standard errors."""
        pairs = np.concatenate([self.by_setting[s] for s in ONE_SETTING if s in self.by_setting])
        first, second = self.errors[pairs.T]
        variance = (first * (1 - first) + second * (1 - second)) / TEST_IMAGES
        return pairs[np.abs(first - second) > 2 * np.sqrt(variance)]

    @cached_property
    def clear(self) -> Taus:
        """Tau over `clear_pairs`."""
        return self.rank([self.clear_pairs])

    def rank(self, groups: Sequence[Pairs]) -> Taus:
        """Tau of every number, averaged over groups of pairs."""
        values = [
            number.sign
            * np.array(
                [{**r["numbers"], **r["heldout"]}.get(number.key, np.nan) for r in self.records]
            )
            for number in NUMBERS
        ]
        agreements = [
            np.stack([agree(value, self.errors, pairs) for value in values], 1) for pairs in groups
        ]
        return average_tau(groups, agreements, len(self.records))


def make_populations(records: Sequence[dict]) -> dict[str, Population]:
    """The nets of each data set, by its title."""
    titles = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
    found: dict[str, list[dict]] = {}
    for record in records:
        setting = Setting(*record["setting"])
        title = f"{titles[setting.data]}, {setting.images:,} images"
        found.setdefault(title, []).append(record)
    return {title: Population(group) for title, group in found.items()}


def show(value: float) -> str:
    """A tau with two digits, without the zero before the point."""
    return "-" if np.isnan(value) else f"{round(value, 2) + 0.0:.2f}".replace("0.", ".", 1)


def write_ranking(populations: Mapping[str, Population]) -> str:
    """One table for each data set: what every number says of several kinds of pairs."""
    parts = []
    for title, population in populations.items():
        everything = population.rank([pair_within(population.settings, ())])
        one, kind, clear = population.one_setting, population.one_kind, population.clear
        low, high = one.intervals
        rows = [
            f"**{title}** ({len(population.records)} nets)\n",
            f"| number | one setting ({one.pairs} pairs) [95%] | ranked right of {clear.pairs}"
            f" clear pairs | one kind ({kind.pairs}) | all ({everything.pairs}) |",
            "|---|---|---|---|---|",
        ]
        for k, number in enumerate(NUMBERS):
            right = f"{50 * (1 + clear.values[k]):.0f}%" if clear.pairs else "-"
            rows.append(
                f"| {number.cell} | {show(one.values[k])} [{show(low[k])}, {show(high[k])}]"
                f" | {right} | {show(kind.values[k])} | {show(everything.values[k])} |"
            )
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def write_nets(populations: Mapping[str, Population]) -> str:
    """The table of what was trained."""
    rows = [
        "| data | nets trained | of them fit | pairs that differ in one setting | test errors |"
        " with label noise |",
        "|---|---|---|---|---|---|",
    ]
    for title, p in populations.items():
        noisy = np.array([setting["noise"] > 0 for setting in p.settings])
        ranges = [
            f"{100 * part.min():.1f} to {100 * part.max():.1f}%" if len(part) else "-"
            for part in (p.errors[~noisy], p.errors[noisy])
        ]
        rows.append(
            f"| {title} | {p.trained} | {len(p.records)} | {p.one_setting.pairs}"
            f" | {ranges[0]} | {ranges[1]} |"
        )
    return "\n".join(rows)


def write_strata(populations: Mapping[str, Population]) -> str:
    """One table of strata for each data set: tau within each, and over pairs that differ in one
    named setting.
    """
    titles = [NUMBERS[INDEX[key]].cell for key in _IN_STRATA]
    parts = []
    for title, p in populations.items():
        taus = {}
        for name, holds in STRATA.items():
            kept = zip(p.records, p.settings, strict=True)
            part = Population([record for record, setting in kept if holds(setting)])
            if part.by_setting:
                taus[name] = part.one_setting
        for name, key in AXES.items():
            if key in p.by_setting:
                taus[f"alike but for {name}"] = p.rank([p.by_setting[key]])
        rows = [
            f"**{title}**\n",
            f"| nets | pairs | {' | '.join(titles)} |",
            "|---" * (2 + len(titles)) + "|",
        ]
        for name, found in taus.items():
            shown = [show(found.values[INDEX[key]]) for key in _IN_STRATA]
            rows.append(f"| {name} | {found.pairs} | {' | '.join(shown)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def write_expectations(populations: Mapping[str, Population]) -> str:
    """The table of what was expected before the study, and what it found."""
    columns = [check_expectations(p, title) for title, p in populations.items()]
    rows = [f"| expected | {' | '.join(populations)} |", "|---" * (1 + len(populations)) + "|"]
    for expected in columns[0]:
        found = [
            f" {'yes' if met else '**no**'}: {shown} |"
            for met, shown in (column[expected] for column in columns)
        ]
        rows.append(f"| {expected} |" + "".join(found))
    return "\n".join(rows)


def check_expectations(population: Population, title: str) -> dict[str, tuple[bool, str]]:
    """Whether each expectation is met, and the numbers that say so, by the expectation."""
    one = population.one_setting
    tau = {key: one.values[index] for key, index in INDEX.items()}
    z, error, margin = tau["z 200"], tau["error 500"], tau["input 25%"]
    ahead, of_kind, of_clear = (
        taus.difference(INDEX["z 200"], INDEX["error 200"])
        for taus in (one, population.one_kind, population.clear)
    )
    weighted = one.difference(INDEX["weighted 200"], INDEX["error 200"])
    control = one.difference(INDEX["input 25%"], INDEX["train loss"])
    least = 0.5 if title.startswith("MNIST") else 0.4
    return {
        "z at 200 labels: at least .5": (z >= 0.5, show(z)),
        "z minus error, the same 200 labels: interval above 0": (
            ahead[1] > 0,
            f"{show_difference(ahead)}; clear pairs {show_difference(of_clear)};"
            f" pairs of one kind {show_difference(of_kind)}",
        ),
        "the same for the margin-weighted error (not expected, shown beside it)": (
            weighted[1] > 0,
            show_difference(weighted),
        ),
        "z at 200 labels at most .02 below the error at 500": (
            z >= error - 0.02,
            f"{show(z)} and {show(error)}",
        ),
        "input margin 25%: at least .5 (MNIST), .4 (CIFAR-10)": (margin >= least, show(margin)),
        "input margin 25% minus training loss: above 0": (
            control[0] > 0,
            show_difference(control),
        ),
        r"median q / \|\|theta\|\|^L: at most .1": (
            tau["global 50%"] <= 0.1,
            show(tau["global 50%"]),
        ),
    }


def show_difference(found: tuple[float, float, float]) -> str:
    """A difference with its interval."""
    difference, low, high = map(show, found)
    return f"{difference} [{low}, {high}]"


TABLES: Mapping[str, Callable[[Mapping[str, Population]], str]] = {
    "nets": write_nets,
    "ranking": write_ranking,
    "expectations": write_expectations,
    "strata": write_strata,
}


def fill_page(text: str, populations: Mapping[str, Population]) -> str:
    """The page with its tables written anew, each between two comments."""
    for name, write in TABLES.items():
        before, rest = text.split(f"<!-- {name} -->")
        after = rest.split("<!-- end -->", 1)[1]
        text = f"{before}<!-- {name} -->\n{write(populations)}\n<!-- end -->{after}"
    return text


def draw_ranking(populations: Mapping[str, Population], path: Path) -> None:
    """Draw tau over pairs that differ in one setting, with its intervals, number by number."""
    drawn, axes = open_canvas(len(populations), width=4.6, height=4.6)
    places = -np.arange(len(NUMBERS))
    for axis, (title, population) in zip(axes[0], populations.items(), strict=True):
        one, (low, high) = population.one_setting, population.one_setting.intervals
        for k, number in enumerate(NUMBERS):
            color = COLORS[number.family]
            axis.plot([low[k], high[k]], [places[k]] * 2, color=color, linewidth=1.5)
            axis.plot(one.values[k], places[k], "o", color=color, markersize=5)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(xlim=(-1, 1), xlabel="Kendall's tau with the test error")
        axis.set_xticks([-1, -0.5, 0, 0.5, 1])
        axis.set_title(f"{title}: {len(population.records)} nets, {one.pairs} pairs", fontsize=10)
        axis.grid(axis="x", alpha=0.3)
        axis.set_yticks(places, [])
    axes[0, 0].set_yticks(places, [number.title for number in NUMBERS], fontsize=9)
    drawn.savefig(path, dpi=110)
