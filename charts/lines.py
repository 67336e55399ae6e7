"""Lines: the weight that the heaviest images carry, the loss and the margin over training."""

from typing import Any

import altair as alt

from .style import RULE_DASH, few_ticks, read_rows, style_chart

POWER = (
    "datum.value == 0 ? '1' : '10' + (datum.value < 0 ? '⁻' : '')"
    " + replace(replace(replace(replace(replace(replace(replace(replace(replace(replace("
    "format(abs(datum.value), 'd'), /0/g, '⁰'), /1/g, '¹'), /2/g, '²'), /3/g, '³'), /4/g, '⁴'),"
    " /5/g, '⁵'), /6/g, '⁶'), /7/g, '⁷'), /8/g, '⁸'), /9/g, '⁹')"
)
"""Powers of ten from their exponents: losses lie below the least positive number, 1e-308."""


def mark_where(signal: str) -> Any:
    """A dashed rule at the value of `signal`; nowhere if it is null."""
    return (
        alt.Chart(alt.InlineData(values=[{}]))
        .transform_filter(f"isValid({signal})")
        .transform_calculate(x=signal)
        .mark_rule(stroke="var(--ink)", strokeWidth=1.3, strokeDash=RULE_DASH)
        .encode(x="x:Q")
    )


def mark_nearest(rows: Any, x: Any, y: Any, colour: str) -> Any:
    """A point under the pointer, with what its row tells."""
    nearest = alt.selection_point(
        name="nearest", nearest=True, on="pointermove", encodings=["x"], clear="pointerout"
    )
    return (
        rows.mark_point(filled=True, fill=colour, size=50)
        .encode(
            x=x,
            y=y,
            tooltip="tip:N",
            opacity=alt.condition(nearest, alt.value(1), alt.value(0), empty=False),
        )
        .add_params(nearest)
    )


def draw_weights() -> Any:
    """Rows `rows` (number, share, tip); signals `half` and `extent`."""
    signals = [alt.param(name="half", value=None), alt.param(name="extent", value=[0, 1])]
    rows = alt.Chart(read_rows("rows"))
    x = alt.X(
        "number:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False),
        axis=alt.Axis(tickCount=few_ticks(), format=",d"),
    )
    y = alt.Y(
        "share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%", tickCount=5)
    )
    area = rows.mark_area(fill="var(--weight)", fillOpacity=0.22).encode(x=x, y=y)
    line = rows.mark_line(stroke="var(--weight)", strokeWidth=2).encode(x=x, y=y)
    layers = alt.layer(
        area, line, mark_where("half"), mark_nearest(rows, x, y, "var(--weight)")
    )
    return style_chart(layers.add_params(*signals), height=178)


def draw_over_epochs(colour: str, scale: Any, axis: Any) -> Any:
    """Rows `rows` (epoch, value, tip); the signal `since` is the first epoch without error."""
    signals = [alt.param(name="since", value=None), alt.param(name="extent", value=[0, 1])]
    rows = alt.Chart(read_rows("rows"))
    x = alt.X(
        "epoch:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False),
        axis=alt.Axis(tickCount=few_ticks(), format=",~d"),
    )
    y = alt.Y("value:Q", scale=scale, axis=axis)
    line = rows.mark_line(stroke=colour, strokeWidth=2, strokeJoin="round").encode(x=x, y=y)
    layers = alt.layer(line, mark_where("since"), mark_nearest(rows, x, y, colour))
    return style_chart(layers.add_params(*signals), height=152)


def draw_loss() -> Any:
    """The loss over epochs; values are its log10."""
    # Whole powers only: a tick between two of them has no label that can be read.
    ticks = alt.Axis(labelExpr=POWER, tickMinStep=1, tickCount=6)
    return draw_over_epochs("var(--ink2)", alt.Scale(zero=False, nice=False), ticks)


def draw_margin() -> Any:
    """The normalized margin over epochs, from 0."""
    axis = alt.Axis(tickCount=4, format="~g")
    return draw_over_epochs("var(--right)", alt.Scale(zero=True), axis)
