"""What the charts have in common: fonts, colours by name of the page's palette, axes."""

from typing import Any

import altair as alt

FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
"""Named here: with `inherit` Vega measures the wrong width and clips labels."""

LABELS_WIDTH = 46
"""Pixels for the labels of the vertical axis: fixed, or the plot would move when they change."""

RULE_DASH = [4, 3]


def style_chart(chart: Any, *, height: Any) -> Any:
    """The chart as wide as its place, with the page's axes and no frame."""
    return chart.properties(
        width="container",
        height=height,
        padding={"left": 0, "right": 8, "top": 6, "bottom": 2},
        background="transparent",
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    ).configure(
        font=FONT,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor="var(--muted)",
            labelFontSize=12,
            labelPadding=4,
            domainColor="var(--border)",
            tickColor="var(--border)",
            tickSize=4,
            gridColor="var(--grid)",
            title=None,
        ),
        axisX=alt.AxisConfig(grid=False, labelFlush=False, labelOverlap="greedy"),
        axisY=alt.AxisConfig(minExtent=LABELS_WIDTH, maxExtent=LABELS_WIDTH),
    )


def axis_below(**options: Any) -> Any:
    """A horizontal axis: a tick about every 75 pixels, so that labels do not collide on a phone.

    A label at the right end stays inside: beyond it, the plot would shrink, and part from what
    stands below it.
    """
    ends = alt.condition(
        "scale('x', datum.value) > width - 16", alt.value("right"), alt.value("center")
    )
    return alt.Axis(tickCount={"expr": "max(2, floor(width / 75))"}, labelAlign=ends, **options)


def read_rows(name: str) -> Any:
    """The data set `name`, empty until the page sends its rows."""
    return alt.NamedData(name=name)


def write_distance(value: str) -> str:
    """An expression that writes a distance as the page does: small ones with three decimals."""
    return f"format({value}, abs({value}) < 0.095 ? '.3f' : '.2f')"
