"""Distances by class or by net: tick at the median, bar over the middle half, line 10% to 90%."""

from typing import Any

import altair as alt

from .style import LABELS_WIDTH, axis_below, read_rows, style_chart, write_distance

LONGEST_LABEL = 122
"""Pixels; longer names are cut by Vega with an ellipsis, and stand in full in the table below."""


def draw_spread() -> Any:
    """Rows `rows` (row, low, first, median, third, high); the signal `names` names them."""
    names = alt.param(name="names", value=[])
    said = [
        f"names[datum.row] + ': median ' + {write_distance('datum.median')}",
        f"', middle half ' + {write_distance('datum.first')}",
        f"' to ' + {write_distance('datum.third')}",
    ]
    rows = (
        alt.Chart(read_rows("rows"))
        .transform_filter("isFinite(datum.low) && isFinite(datum.high)")
        .transform_calculate(tip=" + ".join(said))
    )
    y = alt.Y(
        "row:O",
        axis=alt.Axis(
            labelExpr="names[datum.value]",
            labelLimit=LONGEST_LABEL,
            ticks=False,
            domain=False,
            minExtent=LABELS_WIDTH,
            maxExtent=LONGEST_LABEL + 8,
        ),
    )
    x = alt.X("low:Q", axis=axis_below(grid=True))
    zero = (
        alt.Chart(alt.InlineData(values=[{"x": 0}]))
        .mark_rule(stroke="var(--ink)", strokeWidth=1.5)
        .encode(x="x:Q")
    )
    line = rows.mark_rule(stroke="var(--right)", strokeWidth=2, opacity=0.5).encode(
        x=x, x2="high:Q", y=y, tooltip="tip:N"
    )
    bar = rows.mark_bar(fill="var(--right)", opacity=0.55, height=12).encode(
        x="first:Q", x2="third:Q", y=y, tooltip="tip:N"
    )
    tick = rows.mark_tick(fill="var(--ink)", thickness=3, size=18).encode(
        x="median:Q", y=y, tooltip="tip:N"
    )
    return style_chart(alt.layer(zero, line, bar, tick).add_params(names), height={"step": 26})
