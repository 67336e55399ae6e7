"""How far the images lie from the boundary: bars, the other split as a line, a brush."""

from typing import Any

import altair as alt

from .style import read_rows, style_chart

FADED = 0.28
"""Opacity of the bars that are not picked: they stay readable, the picked ones stand out."""

SHARE_LABEL = "format(datum.value, domain('y')[1] < 0.05 ? '.1%' : '.0%')"


def draw_histogram() -> Any:
    """Rows `bars` (low, high, share, tip) and `steps` (x, share); signals set by the page.

    `picked` is the picked range (null: all), `extent` the range of the bins, `ticks` where the
    `labels` stand: the two end bins hold what lies beyond them too, and their labels say so.
    """
    signals = [
        alt.param(name="picked", value=None),
        alt.param(name="extent", value=[0, 1]),
        alt.param(name="ticks", value=[]),
        alt.param(name="labels", value=[]),
    ]
    brush = alt.selection_interval(
        name="brush",
        encodings=["x"],
        mark=alt.BrushConfig(fill="var(--ink)", fillOpacity=0.06, stroke="var(--border)"),
    )
    x = alt.X(
        "low:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False, zero=False),
        axis=alt.Axis(values={"expr": "ticks"}, labelExpr="labels[indexof(ticks, datum.value)]"),
    )
    y = alt.Y("share:Q", axis=alt.Axis(labelExpr=SHARE_LABEL, tickCount=5))
    bars = (
        alt.Chart(read_rows("bars"))
        .mark_bar(stroke="var(--bg)", strokeWidth=1, cursor="pointer")
        .encode(
            x=x,
            x2="high:Q",
            y=y,
            y2=alt.datum(0),
            fill=alt.condition(
                "datum.high <= 0", alt.value("var(--wrong)"), alt.value("var(--right)")
            ),
            opacity=alt.condition(
                "!picked || (datum.low >= picked[0] && datum.high <= picked[1])",
                alt.value(1),
                alt.value(FADED),
            ),
            tooltip="tip:N",
        )
        .add_params(brush)
    )
    steps = (
        alt.Chart(read_rows("steps"))
        .mark_line(
            interpolate="step-after",
            stroke="var(--ink)",
            strokeWidth=1.3,
            strokeDash=[2, 2],
            clip=True,
        )
        .encode(x="x:Q", y="share:Q")
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"x": 0}]))
        .mark_rule(stroke="var(--ink)", strokeWidth=1.5, clip=True)
        .encode(x="x:Q")
    )
    return style_chart(alt.layer(bars, steps, zero).add_params(*signals), height=182)
