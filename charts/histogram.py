"""How far the images lie from the boundary: bars, the other split as a line, a brush."""

from typing import Any

import altair as alt

from .style import read_rows, style_chart, write_distance

FADED = 0.28
"""Opacity of the bars that are not picked: they stay readable, the picked ones stand out."""

RANGE = (
    f"(folded[0] && datum.from === extent[0] ? 'below ' + {write_distance('datum.to')}"
    f" : folded[1] && datum.to === extent[1] ? 'from ' + {write_distance('datum.from')}"
    f" : {write_distance('datum.from')} + ' to ' + {write_distance('datum.to')})"
)
"""The range of a bar in words; the bars at the ends hold what lies beyond them too."""

SHARE_LABEL = "format(datum.value, domain('y')[1] < 0.05 ? '.1%' : '.0%')"


def draw_histogram() -> Any:
    """Rows `bars` and `steps` (from, to, count, share in percent); signals set by the page.

    `picked` is the picked range (null: all), `extent` the range of the bars, `folded` whether the
    bars at its ends hold what lies beyond, `ticks` where the `labels` stand, `samples` what is
    counted.
    """
    signals = [
        alt.param(name="picked", value=None),
        alt.param(name="extent", value=[0, 1]),
        alt.param(name="ticks", value=[]),
        alt.param(name="labels", value=[]),
        alt.param(name="folded", value=[False, False]),
        alt.param(name="samples", value=""),
    ]
    brush = alt.selection_interval(
        name="brush",
        encodings=["x"],
        mark=alt.BrushConfig(fill="var(--ink)", fillOpacity=0.06, stroke="var(--border)"),
    )
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False, zero=False),
        axis=alt.Axis(values={"expr": "ticks"}, labelExpr="labels[indexof(ticks, datum.value)]"),
    )
    y = alt.Y("part:Q", axis=alt.Axis(labelExpr=SHARE_LABEL, tickCount=5))
    bars = (
        alt.Chart(read_rows("bars"))
        .transform_calculate(
            part="datum.share / 100",
            tip=f"{RANGE} + ': ' + format(datum.count, ',') + ' ' + samples"
            " + ' (' + format(datum.share / 100, '.1%') + ')'",
        )
        .mark_bar(stroke="var(--bg)", strokeWidth=1, cursor="pointer")
        .encode(
            x=x,
            x2="to:Q",
            y=y,
            y2=alt.datum(0),
            fill=alt.condition(
                "datum.to <= 0", alt.value("var(--wrong)"), alt.value("var(--right)")
            ),
            opacity=alt.condition(
                "!picked || (datum.from >= picked[0] && datum.to <= picked[1])",
                alt.value(1),
                alt.value(FADED),
            ),
            tooltip="tip:N",
        )
        .add_params(brush)
    )
    steps = (
        alt.Chart(read_rows("steps"))
        .transform_calculate(part="datum.share / 100")
        .mark_line(
            interpolate="step-after",
            stroke="var(--ink)",
            strokeWidth=1.3,
            strokeDash=[2, 2],
            clip=True,
        )
        .encode(x="from:Q", y="part:Q")
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"x": 0}]))
        .mark_rule(stroke="var(--ink)", strokeWidth=1.5, clip=True)
        .encode(x="x:Q")
    )
    return style_chart(alt.layer(bars, steps, zero).add_params(*signals), height=182)
