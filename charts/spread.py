"""Distances by class or by net: tick at the median, bar over the middle half, line 10% to 90%."""

from typing import Any

import altair as alt

from .style import LABELS_WIDTH, few_ticks, read_rows, style_chart

LONGEST_LABEL = 130
"""Pixels; longer names are cut by Vega with an ellipsis, and stand in full in the table below."""


def draw_spread() -> Any:
    """Rows `rows` (order, p10, p25, p50, p75, p90, tip); the signal `names` labels them in order."""
    names = alt.param(name="names", value=[])
    rows = alt.Chart(read_rows("rows"))
    y = alt.Y(
        "order:O",
        axis=alt.Axis(
            labelExpr="names[datum.value]",
            labelLimit=LONGEST_LABEL,
            ticks=False,
            domain=False,
            minExtent=LABELS_WIDTH,
            maxExtent=LONGEST_LABEL,
        ),
    )
    x = alt.X("p10:Q", axis=alt.Axis(grid=True, tickCount=few_ticks()))
    zero = (
        alt.Chart(alt.InlineData(values=[{"x": 0}]))
        .mark_rule(stroke="var(--ink)", strokeWidth=1.5)
        .encode(x="x:Q")
    )
    line = rows.mark_rule(stroke="var(--right)", strokeWidth=2, opacity=0.5).encode(
        x=x, x2="p90:Q", y=y, tooltip="tip:N"
    )
    bar = rows.mark_bar(fill="var(--right)", opacity=0.55, height=12).encode(
        x="p25:Q", x2="p75:Q", y=y, tooltip="tip:N"
    )
    tick = rows.mark_tick(fill="var(--ink)", thickness=3, size=18).encode(
        x="p50:Q", y=y, tooltip="tip:N"
    )
    return style_chart(alt.layer(zero, line, bar, tick).add_params(names), height={"step": 26})
