"""Pages in a real browser: what is shown is what Python counts, and no key or name breaks it."""

import csv
import io
import re
from dataclasses import replace

import pytest
import torch

from netmargin import History
from netmargin.page.making import make_page
from netmargin.page.numbers import distance
from netmargin.page.payload import Split
from netmargin.page.render import render
from tests.browser import AXE, open_browser, open_page
from tests.page_fixture import (
    digits_records,
    endless_page,
    facts_of,
    full_page,
    labels_page,
    many_classes_page,
    plain_page,
    table_page,
)

pytestmark = pytest.mark.slow  # seconds for the browser and its pages

WIDTHS = (320, 390, 640, 1280)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started


@pytest.fixture(scope="module")
def files(browser, tmp_path_factory):
    """Every kind of page as a file, by name."""
    folder = tmp_path_factory.mktemp("pages")
    certificate, radii, history = digits_records()
    pages = {
        "full": full_page(),
        "plain": plain_page(),
        "table": table_page(),
        "certificate": make_page(facts_of(certificate)),
        "radii": make_page(facts_of(radii)),
        "history": make_page(facts_of(history)),
        "endless": endless_page(),
        "classes": many_classes_page(),
        "labels": labels_page(),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(render(page), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def full(browser, files):
    with open_page(browser, files["full"]) as tab:
        yield tab


def columns_of(key: str = "heldout", page=None) -> dict[str, list]:
    return next(s for s in (page or full_page()).splits if s.key == key).columns


def read_count(tab) -> int:
    """How many samples the page says that the filters leave."""
    return int(tab.inner_text("#count").split(" of ")[0].replace(",", ""))


def choose(tab, **fields: str) -> None:
    for name, value in fields.items():
        field = f"#filters [name={name}]"
        if name in ("from", "to"):
            tab.fill(field, value)
        else:
            tab.select_option(field, value)


KINDS = (
    "full",
    "plain",
    "table",
    "certificate",
    "radii",
    "history",
    "endless",
    "classes",
    "labels",
)


@pytest.mark.nightly_cases("certificate", "history", "radii")
@pytest.mark.parametrize("name", KINDS)
def test_every_chart_holds_marks_and_no_width_scrolls_sideways(browser, files, name):
    with open_page(browser, files[name], width=320) as tab:
        marks = tab.eval_on_selector_all(
            ".chart",
            "all => all.map(c => [c.id, c.querySelectorAll('svg [role=graphics-symbol] path, svg .mark-rect path, svg .mark-line path, svg .mark-area path').length])",
        )
        assert [chart for chart, count in marks if count == 0] == []
        wanted = {"full": 5, "plain": 2, "table": 2, "endless": 1}
        assert len(marks) == wanted.get(name, len(marks))
        for link in tab.locator("nav a").all():  # which lead somewhere, without a message
            link.click()
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 800})
            for view in ("Images", "Cards", "Table"):
                button = tab.locator("#view button", has_text=view)
                if button.count():
                    button.click()
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, view)


def test_filters_count_as_python_does(full):
    columns = columns_of()
    rows = list(zip(columns["y"], columns["p"], columns["r"], columns["d"], strict=True))
    assert read_count(full) == len(rows)
    choose(full, show="wrong")
    assert read_count(full) == sum(y != p for y, p, _, _ in rows) > 0
    assert full.locator("#gallery .image.wrong").count() == read_count(full)
    label = next(y for y, p, _, _ in rows if y != p)
    choose(full, **{"class": str(label)})
    assert read_count(full) == sum(y == label != p for y, p, _, _ in rows)
    assert full.inner_text("#count").endswith(f"held-out images (wrong, class {label})")
    full.click("#filters button[type=reset]")
    full.wait_for_function(
        f"document.getElementById('count').textContent.startsWith('{len(rows)} of')"
    )
    choose(full, **{"from": "0.1", "to": "0.3"})
    assert read_count(full) == sum(0.1 <= float(f"{d:.4g}") < 0.3 for *_, d in rows)
    choose(full, rival="8")
    assert read_count(full) == sum(0.1 <= d < 0.3 and r == 8 for *_, r, d in rows)


def test_what_the_sentence_counts_is_shown_by_its_links(full):
    columns, limit = columns_of(), full_page().nearest.below["heldout"]
    full.get_by_role("button", name="Show only these").click()
    said = full.inner_text("#images .takeaway")
    wrong, near = (int(n) for n in re.findall(r": (\d+)\.", said))
    assert read_count(full) == wrong + near == sum(d < limit for d in columns["d"])
    full.get_by_role("button", name="most wrong first").click()
    assert read_count(full) == wrong
    first = full.locator("#gallery .image").first.get_attribute("data-row")
    assert first == str(min(range(200), key=columns["d"].__getitem__))


def test_right_and_wrong_images_stand_apart(full):
    """Below a title each, nearest first; together as many as one list would hold, and at last all."""
    columns = columns_of()
    wrong = [y != p for y, p in zip(columns["y"], columns["p"], strict=True)]
    titles = full.locator("#gallery .side").all_inner_texts()
    assert titles == [
        f"Wrong side: {sum(wrong)}, nearest first",
        f"Right side: {200 - sum(wrong)}, nearest first",
    ]
    shown = "[...document.querySelectorAll('#gallery button')].map(b => +b.dataset.row)"
    rows = full.evaluate(shown)
    assert len(rows) == 39
    order = sorted(range(200), key=lambda row: (not wrong[row], abs(columns["d"][row])))
    few = min(13, sum(wrong))
    assert rows == order[:few] + [row for row in order if not wrong[row]][: 39 - few]
    while full.locator("#more").is_visible():
        full.click("#more")
    assert full.evaluate(shown) == order
    choose(full, sort="-d")
    assert full.locator("#gallery .side").count() == 0


def test_flips_are_pictures_that_are_there(full):
    assert full.locator(".flip").count() == 3
    for picture in full.locator(".flip img").all():
        assert picture.evaluate("e => e.complete && e.naturalWidth") == 8
        assert picture.get_attribute("alt").startswith("held-out image ")
    full.get_by_role("link", name="See what it looks like.").click()
    full.wait_for_function("document.getElementById('flips').getBoundingClientRect().y < 300")


def test_a_share_says_of_which_images_it_is(full):
    assert "share of the 40 examined images" in full.inner_text("#change")
    assert full.inner_text("#stand-0").startswith("Of the 40 examined images, under the worst")


def test_scaling_is_answered_first_and_folded(full):
    said = [line for line in full.inner_text("#scaling").split("\n") if line]
    assert said[1].startswith("All of them: ")
    layers = full.locator("#scaling pre")
    assert not layers.is_visible()
    full.get_by_text("layer by layer").click()
    assert layers.is_visible()


def test_the_next_step_shows_the_wrong_ones(full):
    full.get_by_role("button", name="Show them").click()
    columns = columns_of()
    assert read_count(full) == sum(y != p for y, p in zip(columns["y"], columns["p"], strict=True))


def test_the_next_step_of_an_audit_goes_to_its_labels(browser, files):
    with open_page(browser, files["labels"]) as tab:
        tab.get_by_role("link", name="Show them").click()
        tab.wait_for_function("document.getElementById('labels').getBoundingClientRect().y < 300")


def test_samples_on_which_nets_disagree_say_what_the_other_one_answers(full):
    full.get_by_role("button", name="give different answers").click()
    others = [answer for answer in columns_of()["o"] if answer is not None]
    assert read_count(full) == len(others)
    said = full.locator("#gallery .number", has_text="other: ").all_inner_texts()
    assert 0 < len(said) <= len(others)
    assert set(said) <= {f"other: {answer}" for answer in others}


def test_bars_are_picked_by_click_and_by_drag(full):
    bars = full_page().overview.histograms["heldout"]
    marks = full.locator("#c-histogram .mark-rect path[aria-roledescription='bar']")
    assert marks.count() == len(bars["count"])
    index = bars["count"].index(max(bars["count"]))
    full.locator("#histogram").scroll_into_view_if_needed()
    box = marks.nth(index).bounding_box()
    full.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    full.wait_for_selector("#picked:not([hidden])")
    assert full.inner_text("#picked-count") == f"{bars['count'][index]} images picked."
    assert read_count(full) == bars["count"][index]
    faded = [mark.get_attribute("opacity") for mark in marks.all()]
    assert [i for i, opacity in enumerate(faded) if opacity != "0.28"] == [index]
    # The box of a bar reaches beyond it, by its white edge.
    full.mouse.move(box["x"] + 8, box["y"] + 9)
    full.mouse.down()
    full.mouse.move(box["x"] + box["width"] + 8, box["y"] + 12, steps=4)
    full.mouse.up()
    both = bars["count"][index] + bars["count"][index + 1]
    full.wait_for_function(
        f"document.getElementById('picked-count').textContent.startsWith('{both} ')"
    )
    full.click("#clear-picked")
    full.wait_for_selector("#picked", state="hidden")
    assert read_count(full) == 200


def test_examples_stand_below_their_bars(full):
    """An example of distance d stands where the axis has d, those beyond it below the end bar."""
    columns, ends = columns_of(), full_page().overview.range
    half = 0.5 / len(full_page().overview.histograms["heldout"]["count"])
    plot = full.locator("#c-histogram .background").first.bounding_box()
    for card in full.locator("#examples button").all()[::3]:
        d = columns["d"][int(card.get_attribute("data-row"))]
        box = card.bounding_box()
        share = (box["x"] + box["width"] / 2 - plot["x"]) / plot["width"]
        expected = min(max((d - ends[0]) / (ends[1] - ends[0]), half), 1 - half)
        assert share == pytest.approx(expected, abs=0.01)


def test_cells_of_both_matrices_show_their_samples(full):
    pairs = full_page().classes.pairs["heldout"]
    for relation, button in (("rival", "Nearest rival"), ("mistake", "Mistakes")):
        full.get_by_role("button", name=button).click()
        assert full.locator("#not-mistakes").is_visible() == (relation == "rival")
        counts = pairs[relation]
        label, other = max(
            ((a, b) for a in range(10) for b in range(10) if a != b),
            key=lambda p: counts[p[0]][p[1]],
        )
        cell = full.locator(
            f"#matrix tbody tr:nth-child({label + 1}) td:nth-child({other + 2}) button"
        )
        assert cell.inner_text() == str(counts[label][other])
        cell.click()
        assert read_count(full) == counts[label][other]
        assert full.locator("#matrix [aria-pressed=true]").count() == 1


def test_table_is_sorted_by_its_titles_and_writes_numbers_as_python(full):
    full.click("#view button[value=table]")
    columns = columns_of()
    title = full.locator("#table th", has_text="distance")
    title.locator("button").click()
    assert title.get_attribute("aria-sort") == "ascending"
    while full.locator("#more").is_visible():
        full.click("#more")
    place = [
        text.strip("▲▼ ") for text in full.locator("#table thead tr > *").all_inner_texts()
    ].index("distance (est.)")
    shown = full.eval_on_selector_all(
        "#table tbody tr", f"rows => rows.map(r => r.children[{place}].textContent)"
    )
    assert shown == [distance(float(f"{d:.4g}")) for d in sorted(columns["d"])]
    title.locator("button").click()
    assert title.get_attribute("aria-sort") == "descending"
    first = full.locator("#table tbody tr").first.locator("td").nth(place).inner_text()
    assert first == distance(float(f"{max(columns['d']):.4g}"))
    assert full.evaluate("document.activeElement.textContent") == "distance (est.)"


def test_csv_holds_the_filtered_rows(full):
    choose(full, show="wrong")
    with full.expect_download() as started:
        full.click("#csv")
    lines = list(csv.DictReader(io.StringIO(started.value.path().read_text(encoding="utf-8"))))
    columns = columns_of()
    wrong = [i for i, (y, p) in enumerate(zip(columns["y"], columns["p"], strict=True)) if y != p]
    assert sorted(int(line["#"]) for line in lines) == wrong
    assert all(line["label"] != line["answer"] for line in lines)


def test_a_view_can_be_sent_by_its_address(browser, files, full):
    full.click("#switch button[value=training]")
    choose(full, show="right", rival="8", to="0.5", sort="-d")
    full.click("#view button[value=table]")
    said, rows = full.inner_text("#count"), full.inner_text("#table tbody")
    hash = full.evaluate("location.hash")
    with open_page(browser, files["full"], hash=hash) as other:
        assert other.inner_text("#count") == said
        assert other.inner_text("#table tbody") == rows
        assert other.input_value("#filters [name=to]") == "0.5"
        other.evaluate("location.hash = '#show=wrong'")
        other.wait_for_function("document.getElementById('count').textContent.includes('wrong')")
    # What does not exist chooses nothing; a name of a section leads to it.
    with open_page(
        browser, files["full"], hash="#show=none&class=77&split=no&sort=x&view=3d"
    ) as other:
        assert read_count(other) == 200
        assert other.locator("#gallery .image").count() == 39
    with open_page(browser, files["full"], hash="#support") as other:
        other.wait_for_function(
            "document.getElementById('support').getBoundingClientRect().y < 200"
        )


def test_keys_reach_every_card_and_open_and_close_it(full):
    for group in ("#gallery", "#examples", "#matrix", "#heaviest"):
        stops = full.eval_on_selector_all(
            f"{group} button", "all => all.filter(b => b.tabIndex === 0).length"
        )
        assert stops == 1, group
    full.focus("#gallery button")
    full.keyboard.press("ArrowRight")
    full.keyboard.press("ArrowDown")
    at = full.evaluate(
        "[...document.querySelectorAll('#gallery button')].indexOf(document.activeElement)"
    )
    assert at == 14  # a desktop has 13 in a row
    stops = "[...document.querySelectorAll('#gallery button')].filter(b => b.tabIndex === 0).length"
    assert full.evaluate(stops) == 1
    row = full.evaluate("document.activeElement.dataset.row")
    full.keyboard.press("Enter")
    assert full.locator("dialog[open]").count() == 1
    assert full.inner_text("#sample-name") == f"Held-out image {row}"
    full.keyboard.press("Escape")
    assert full.locator("dialog[open]").count() == 0
    assert full.evaluate("document.activeElement.dataset.row") == row
    full.keyboard.press("End")
    assert full.evaluate(
        "document.activeElement === document.querySelector('#gallery').lastElementChild"
    )
    full.keyboard.press("Home")
    assert full.evaluate("document.activeElement === document.querySelector('#gallery .image')")


def test_a_sample_tells_what_is_proved_open_and_flipped(full):
    columns = columns_of()
    row = next(
        i for i, low in enumerate(columns["lower"]) if low and columns["y"][i] == columns["p"][i]
    )
    choose(full, show="radii", sort="d")
    while full.locator("#more").is_visible():
        full.click("#more")
    full.click(f"#gallery [data-row='{row}']")
    shown = full.inner_text("#sample-body")
    assert re.search(rf"flip found at\n{distance(columns['upper'][row])}\nMeasured", shown)
    proved = float(re.search(r"proved safe below\n(\S+)\nProved", shown)[1])
    assert columns["lower"][row] - 0.01 < proved <= columns["lower"][row]
    parts = [
        full.locator(f"#sample .{kind}").bounding_box()
        for kind in ("fill-proved", "fill-open", "fill-flipped")
    ]
    whole = sum(part["width"] for part in parts)
    end = 1.15 * max(columns["upper"][row], columns["d"][row])
    assert parts[0]["width"] / whole == pytest.approx(columns["lower"][row] / end, abs=0.02)


def test_switch_and_support_vectors(full):
    full.click("#switch button[value=training]")
    assert read_count(full) == 400
    assert "training images" in full.inner_text("#histogram figcaption")
    full.click("#switch button[value=heldout]")
    full.click("#all-support")
    weights = columns_of("training")["w"]
    assert read_count(full) == sum(w > 0 for w in weights)
    heaviest = max(range(400), key=weights.__getitem__)
    assert full.locator("#gallery .image").first.get_attribute("data-row") == str(heaviest)
    assert full.locator("#heaviest .image").first.get_attribute("data-row") == str(heaviest)


@pytest.mark.parametrize("view", ["images", "table"])
def test_filters_that_leave_nothing_say_so_and_can_be_cleared(full, view):
    """The net is right on all training images, and wrong on some held-out ones."""
    choose(full, show="wrong")
    full.click(f"#view button[value={view}]")
    assert not full.locator(".none:visible").count()
    full.click("#switch button[value=training]")
    assert read_count(full) == 0
    place = "gallery" if view == "images" else "table"
    assert not full.locator(f"#{place}").is_visible()
    assert not full.locator("#examples .image").count()
    assert [text.split(". ")[0] for text in full.locator(".none:visible").all_inner_texts()] == [
        "No image matches the filters below",
        "No image matches the filters",
    ]
    full.locator(".none:visible button").last.click()
    full.wait_for_function("document.getElementById('count').textContent.startsWith('400 of 400')")
    assert not full.locator(".none:visible").count()
    assert full.locator(f"#{place}").is_visible()


def test_wrong_labels_open_and_lead_to_the_list(browser, files):
    page = labels_page()
    columns, worst = columns_of("training", page), [label.row for label in page.labels.worst]
    with open_page(browser, files["labels"]) as tab:
        cards = tab.locator("#labels .image")
        assert [int(card.get_attribute("data-row")) for card in cards.all()] == worst
        assert cards.first.locator(".pic").count() == 1
        cards.first.click()
        shown = tab.inner_text("#sample-body")
        assert tab.inner_text("#sample-name") == f"Training image {worst[0]}"
        assert re.search(rf"suggested label\n{columns['s'][worst[0]]}\n", shown)
        assert re.search(r"label wrong\n\S+\nEstimated", shown)
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Show all in this order").click()
        assert read_count(tab) == len(columns["f"])
        listed = tab.locator("#gallery .image")
        assert int(listed.first.get_attribute("data-row")) == worst[0]
        with tab.expect_download() as started:
            tab.click("#csv")
        lines = csv.DictReader(io.StringIO(started.value.path().read_text(encoding="utf-8")))
        assert [int(line["#"]) for line in lines][:50] == worst


def test_ticks_of_a_short_run_have_labels_of_their_own(browser, tmp_path):
    """A loss from 2 to 0.8: with one digit there were two ticks of 2, and two of 1."""
    rows = [{"epoch": e, "log10_mean_loss": 0.3 - 0.027 * e, "accuracy": 0.5} for e in range(16)]
    path = tmp_path / "short.html"
    path.write_text(render(make_page(facts_of(History(rows)))), encoding="utf-8")
    with open_page(browser, path) as tab:
        labels = tab.locator("#c-loss .role-axis").last.locator("text").all_text_contents()
    assert len(labels) > 3
    assert len(set(labels)) == len(labels)


def test_slider_counts_what_is_proved_open_and_flipped(full):
    net = full_page().change.nets[0]
    for share in (0.0, 0.25, 0.6, 1.0):
        full.locator("#size").evaluate(
            "(slider, share) => { slider.value = share * slider.max; slider.dispatchEvent(new Event('input')); }",
            share,
        )
        size = float(full.input_value("#size"))
        lower, upper = (
            [float(f"{radius:.4g}") for radius in side] for side in (net.lower, net.upper)
        )
        flipped = sum(radius <= size for radius in upper)
        safe = sum(
            low > 0 and size <= low and not up <= size for low, up in zip(lower, upper, strict=True)
        )
        counts = [
            full.inner_text(f"#stand-0 [data-count={kind}]") for kind in ("safe", "open", "flipped")
        ]
        assert counts == [str(safe), str(len(lower) - safe - flipped), str(flipped)]
    assert counts[0] != "40"


def test_numbers_of_pictures_can_be_opened(full):
    table = full.locator("#histogram details.numbers")
    table.locator("summary").click()
    counts = full_page().overview.histograms["heldout"]["count"]
    shown = table.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert shown == [str(count) for count in counts]


def test_names_and_texts_are_text(browser, tmp_path):
    """Names of classes, texts and the title of a page may hold HTML: it is shown, never run."""
    evil = "<img src=x onerror='document.title=1'></script><script>document.title=2</script>"
    page = table_page()
    split = page.splits[0]
    texts = [evil, '=1+1,"x"', *["${'x'} {{ 7*7 }}"] * (split.n - 2)]
    page = replace(
        page,
        title=evil,
        classes=replace(page.classes, names=(evil, "\u2028</style>")),
        splits=(replace(split, columns=split.columns | {"text": texts}),),
    )
    path = tmp_path / "evil.html"
    path.write_text(render(page), encoding="utf-8")
    with open_page(browser, path) as tab:
        assert tab.title() == evil
        assert tab.locator("img").count() == 0
        assert tab.locator("script").count() == 4
        tab.click("#view button[value=table]")
        tab.locator("#table tbody button").first.click()
        assert "onerror" in tab.inner_text("#sample-body")
        assert tab.locator("img").count() == 0
        tab.keyboard.press("Escape")
        with tab.expect_download() as started:
            tab.click("#csv")
        lines = list(
            csv.reader(io.StringIO(started.value.path().read_text(encoding="utf-8"), newline=""))
        )
        assert len(lines) == 1 + split.n
        cells = {cell for line in lines for cell in line}
        assert evil in cells
        assert '\'=1+1,"x"' in cells  # no spreadsheet reads it as a formula
    assert started.value.suggested_filename.endswith("-training.csv")


def test_nothing_can_leave_the_page(browser, files):
    """The page's own policy forbids every request: it holds in the browser, not only in our code."""
    tab = browser.new_page()
    tab.goto(files["plain"].as_uri())
    refused = tab.evaluate(
        "() => new Promise(done => { document.addEventListener('securitypolicyviolation',"
        " event => done(event.effectiveDirective)); fetch('http://127.0.0.1:9/').catch(() => 0); })"
    )
    assert refused == "connect-src"
    tab.close()


@pytest.mark.parametrize("name", ["full", "table", "labels"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, files, name, scheme):
    with open_page(browser, files[name], color_scheme=scheme) as tab:
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            (each["id"], each["nodes"][0]["html"][:150], each["nodes"][0]["failureSummary"][:300])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_no_target_is_below_24_pixels(browser, files):
    for width in (390, 1280):
        with open_page(browser, files["full"], width=width) as tab:
            small = tab.evaluate(
                "[...document.querySelectorAll('button, select, input, summary, nav a')]"
                ".map(e => [e.outerHTML.slice(0, 90), e.getBoundingClientRect()])"
                ".filter(([, b]) => b.width > 0 && (b.width < 24 || b.height < 24))"
                ".map(([html, b]) => [html, b.width, b.height])"
            )
            assert small == []


def test_paper_is_light_and_holds_every_section(browser, files):
    with open_page(browser, files["full"], color_scheme="dark") as tab:
        tab.emulate_media(media="print")
        assert (
            tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert not tab.locator("#filters").is_visible()
        assert tab.locator("#scaling").is_visible()
        pdf = tab.pdf(format="A4")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


def test_labels_of_the_axis_name_the_edges_of_the_bars(browser, tmp_path):
    """An end bar holds what lies beyond it: its label is its inner edge, however coarse the axis."""
    page = plain_page()
    edges = [i / 2 for i in range(-2, 56)]
    bars = {"from": edges[:-1], "to": edges[1:], "count": [1] * 57, "share": [1.0] * 57}
    ends = (edges[0], edges[-1])
    overview = replace(
        page.overview, histograms={"training": bars}, range=ends, folded=(True, True)
    )
    path = tmp_path / "edges.html"
    path.write_text(render(replace(page, overview=overview)), encoding="utf-8")
    with open_page(browser, path, width=390) as tab:
        labels = tab.locator("#c-histogram .role-axis-label text").all_text_contents()
    assert {text for text in labels if text[0] in "≤≥"} == {"≤ −0.5", "≥ 27.0"}
    assert "10" in labels


def test_the_pointer_tells_the_numbers_of_a_mark(full):
    bars = full_page().overview.histograms["heldout"]
    index = bars["count"].index(max(bars["count"]))
    full.locator("#c-histogram .mark-rect path[aria-roledescription='bar']").nth(index).hover()
    said = f"{distance(bars['from'][index])} to {distance(bars['to'][index])}: "
    assert full.inner_text("#tip").startswith(f"{said}{bars['count'][index]} held-out images (")
    full.locator("#c-loss svg").hover()
    assert re.fullmatch(r"epoch \d+: loss 0\.\d+; [\d.]+% right", full.inner_text("#tip"))
    full.mouse.move(5, 5)
    assert not full.locator("#tip").is_visible()


@pytest.mark.parametrize("name", ["full", "endless"])
@pytest.mark.parametrize("width", [390, 1280])
def test_slider_stands_below_its_rule(browser, files, name, width):
    """The middle of the thumb, which runs over the plot from end to end, is where the rule is.

    On the endless page a label stands at the right end of the axis, where it must not move the
    plot.
    """
    with open_page(browser, files[name], width=width) as tab:
        size, largest = float(tab.input_value("#size")), float(tab.get_attribute("#size", "max"))
        track = tab.locator("#size").bounding_box()
        thumb = track["x"] + 8 + (track["width"] - 16) * size / largest
        rule = tab.locator("#c-change-0 .mark-rule line").last.bounding_box()
        assert rule["x"] == pytest.approx(thumb, abs=2)


def test_pairs_of_many_classes_and_all_classes_on_demand(browser, files):
    page = many_classes_page()
    with open_page(browser, files["classes"]) as tab:
        pairs, rows = page.classes.pairs["heldout"]["rival"], page.classes.rows["heldout"]
        shown = tab.locator("#matrix button")
        assert shown.count() == len(pairs["count"]) == 20
        shown.first.click()
        assert read_count(tab) == pairs["count"][0]
        bars = tab.locator("#c-classes .mark-rect path[aria-roledescription='bar']")
        assert bars.count() == 20
        tab.click("#all-classes")
        tab.locator("#all-classes").wait_for(state="hidden")
        assert bars.count() == len(rows["label"]) == 200


def test_forced_colours_mark_what_is_pressed(browser, files):
    with open_page(browser, files["full"], forced_colors="active") as tab:
        pressed = tab.locator("#switch [aria-pressed=true]")
        assert "underline" in pressed.evaluate("e => getComputedStyle(e).textDecorationLine")


@pytest.mark.nightly
def test_a_hundred_thousand_samples(browser, tmp_path):
    n = 100_000
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (n,), generator=generator)
    d = torch.randn(n, generator=generator) + 1
    page = table_page()
    columns = {
        "y": y.tolist(),
        "p": torch.where(d > 0, y, 1 - y).tolist(),
        "r": (1 - y).tolist(),
        "d": d.tolist(),
        "q": d.tolist(),
        "text": [None] * n,
    }
    page = replace(page, splits=(Split("training", "Training", "samples", n, columns),))
    path = tmp_path / "many.html"
    path.write_text(render(page), encoding="utf-8")
    with open_page(browser, path) as tab:
        assert tab.inner_text("#count") == "100,000 of 100,000 training samples"
        choose(tab, show="wrong")
        assert read_count(tab) == int((d <= 0).sum())
    assert path.stat().st_size < 6_000_000
