"""How much change the answers can stand: proved below, open between, flipped above."""

from typing import Any

import altair as alt

from .style import RULE_DASH, axis_below, read_rows, style_chart


def draw_change() -> Any:
    """Rows `curves` (x, proved, flipped), shares in percent; three signals set by the page.

    `size` is where the slider stands, `extent` the range of sizes, `attacked` whether flips were
    looked for; where not, all above what is proved is open.
    """
    signals = [
        alt.param(name="size", value=0),
        alt.param(name="extent", value=[0, 1]),
        alt.param(name="attacked", value=True),
    ]
    curves = alt.Chart(read_rows("curves")).transform_calculate(
        proved="datum.proved / 100",
        kept="attacked ? 1 - datum.flipped / 100 : 1",
        found="attacked ? 1 - datum.flipped / 100 : null",
    )
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain={"expr": "extent"}, nice=False),
        axis=axis_below(),
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(format=".0%", tickCount=5)

    def fill(top: str, bottom: str, paint: str, opacity: float = 1.0) -> Any:
        return curves.mark_area(
            interpolate="step-after", fill=paint, fillOpacity=opacity, clip=True
        ).encode(x=x, y=alt.Y(top, scale=scale, axis=axis), y2=bottom)

    flipped = (
        curves.transform_calculate(all="1")
        .mark_area(interpolate="step-after", fill="var(--wrong)", fillOpacity=0.22, clip=True)
        .encode(x=x, y=alt.Y("all:Q", scale=scale, axis=axis), y2="kept:Q")
    )
    proved = (
        curves.transform_calculate(none="0")
        .mark_area(interpolate="step-after", fill="var(--proved)", clip=True)
        .encode(x=x, y=alt.Y("proved:Q", scale=scale, axis=axis), y2="none:Q")
    )
    found = curves.mark_line(
        interpolate="step-after", stroke="var(--wrong)", strokeWidth=2, clip=True
    ).encode(x=x, y=alt.Y("found:Q", scale=scale, axis=axis))
    rule = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_rule(stroke="var(--ink)", strokeWidth=1.5, strokeDash=RULE_DASH)
        .encode(x=alt.datum(alt.expr("size"), type="quantitative"))
    )
    layers = alt.layer(
        flipped,
        fill("kept:Q", "proved:Q", "var(--open)"),
        fill("kept:Q", "proved:Q", "url(#hatch)"),
        proved,
        found,
        rule,
    )
    return style_chart(layers.add_params(*signals), height=256)
