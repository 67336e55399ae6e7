"""Lines: the loss and the margin over training."""

from typing import Any

import altair as alt

from .style import RULE_DASH, axis_below, read_rows, style_chart


def write_power(exponent: str) -> str:
    """An expression that writes a power of ten: losses lie below the least number, 1e-308."""
    digits = f"format(abs({exponent}), '.0f')"
    for digit, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹"):
        digits = f"replace({digits}, /{digit}/g, '{raised}')"
    return f"(round({exponent}) == 0 ? '1' : '10' + ({exponent} < 0 ? '⁻' : '') + {digits})"


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


def draw_over_epochs(value: str, said: str, colour: str, scale: Any, axis: Any) -> Any:
    """Rows `rows` (epoch, right in percent, and the value); signals `since` and `extent`.

    Before `since`, the first epoch without error, the smallest margin is negative and means
    nothing: of it the page draws what follows.
    """
    signals = [alt.param(name="since", value=None), alt.param(name="extent", value=[0, 1])]
    right = "format(datum.right / 100, '.1%') + ' right'"
    rows = (
        alt.Chart(read_rows("rows"))
        .transform_filter(f"isValid(datum.{value}) && isFinite(datum.{value})")
        .transform_calculate(tip=f"'epoch ' + datum.epoch + ': ' + {said} + '; ' + {right}")
    )
    if value == "margin":
        rows = rows.transform_filter("!isValid(since) || datum.epoch >= since")
    x = alt.X(
        "epoch:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False),
        axis=axis_below(tickMinStep=1, format=",~d"),
    )
    y = alt.Y(f"{value}:Q", scale=scale, axis=axis)
    line = rows.mark_line(stroke=colour, strokeWidth=2, strokeJoin="round").encode(x=x, y=y)
    layers = alt.layer(line, mark_where("since"), mark_nearest(rows, x, y, colour))
    return style_chart(layers.add_params(*signals), height=152)


def draw_loss() -> Any:
    """The loss over epochs; values are its log10."""
    # Whole powers only, as long as three of them can be seen: between them no power can be read.
    few = "domain('y')[1] - domain('y')[0] < 3"
    label = f"{few} ? format(pow(10, datum.value), '.2~g') : {write_power('datum.value')}"
    step = {"expr": f"{few} ? 0.1 : 1"}
    ticks = alt.Axis(labelExpr=label, tickMinStep=step, tickCount=6)
    large = "format(pow(10, datum.log10_loss), '.2~g')"
    loss = f"'loss ' + (datum.log10_loss > -3 ? {large} : {write_power('datum.log10_loss')})"
    scale = alt.Scale(zero=False, nice=False)
    return draw_over_epochs("log10_loss", loss, "var(--ink2)", scale, ticks)


def draw_margin() -> Any:
    """The normalized margin over epochs, from 0."""
    axis = alt.Axis(tickCount=4, format="~g")
    margin = "'margin ' + format(datum.margin, '.3~g')"
    return draw_over_epochs("margin", margin, "var(--right)", alt.Scale(zero=True), axis)
