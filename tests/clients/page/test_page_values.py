"""Values on the page: cursors, comparisons, events, waveforms, tables. In a real browser."""

import re
from datetime import timedelta

import psycopg
import pytest
from chromium import box_of, cells, chart_of, colours, cursors, picture, settled
from known_rows import BEGIN, ROWS, WAVEFORMS, row, time_of
from playwright.sync_api import Page, expect


def test_two_cursors_show_values_and_their_difference(page: Page) -> None:
    page.goto(chart_of("every_type/a_real") + cursors(a=time_of(40), b=time_of(120)))
    between = [row(number)["a_real"] for number in range(40, 121)]
    there = [float(str(value)) for value in between if value is not None]
    mean = f"{sum(there) / len(there):.6g}"
    expect(page.locator(".readout th").nth(3)).to_have_text(re.compile("^B . A: 1 min 20 s$"))
    expect(page.locator(".readout tbody tr")).to_have_count(1)
    assert cells(page) == [["every_type/a_real", "5", "15", "10", "5", mean, "15"]]
    cursor = page.get_by_role("slider", name="Cursor A")
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(r"2025-12-31 23:59:00\.000"))
    cursor.focus()
    page.keyboard.press("ArrowRight")
    # the next row: 41 / 8
    expect(page.locator(".readout tbody tr")).to_contain_text("5.125")
    expect(page).to_have_url(re.compile(f"a={time_of(41).timestamp():.6f}"))
    page.keyboard.press("c")
    expect(page.locator(".readout")).to_be_hidden()


def test_a_cursor_is_dragged(page: Page) -> None:
    page.goto(chart_of("every_type/a_real", "every_type/a_varchar"))
    settled(page)
    page.get_by_role("button", name="Cursors").click()
    box, plot = box_of(page.locator(".cursor-a")), box_of(page.locator(".u-over"))
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.down()
    # the span is four minutes and begins 20 s before the rows: this is between rows 104 and 105
    page.mouse.move(plot["x"] + plot["width"] * (20 + 104.5) / 240, plot["y"] + 60, steps=5)
    page.mouse.up()
    expect(page.locator(".readout th").nth(1)).to_contain_text("A 2026-01-01 00:00:0")
    expect(page).to_have_url(re.compile(r"a=17672256\d\d"))
    assert cells(page)[1][1].startswith("run 10")
    # and the drag did not zoom
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))


def test_another_time_is_drawn_for_comparison(page: Page) -> None:
    span = "from=2026-01-01T00:00:00Z&to=2026-01-01T00:01:00Z&utc=1"
    page.goto(chart_of("every_type/a_real", span=span) + cursors(a=time_of(120)))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_label("View of the chart").select_option("other")
    entry = page.get_by_label("Begin of the compared time")
    entry.fill("2025-12-31 23:59:00")
    entry.press("Tab")
    expect(page).to_have_url(re.compile("compare-60"))
    expect(page.locator(".legend")).to_contain_text("every_type/a_real (before)")
    # rows 120 and 60: the ones a minute before
    assert [line[1] for line in cells(page)] == ["15", "7.5"]


def test_events_are_shown_with_the_lines(page: Page, web) -> None:
    hour = BEGIN.replace(minute=0, second=0)
    with psycopg.connect(web.server.dsn) as connection:
        connection.execute(
            "insert into ringlog.event (spool, number, table_name, time, until, kind, rows, message)"
            " values ('page', 1, 'every_type', %s, %s, 'gap', 7, 'the source was silent')"
            " on conflict do nothing",
            [BEGIN, BEGIN + timedelta(seconds=7)],
        )
        connection.execute(
            "insert into ringlog.ledger values ('every_type', %s, 'page', 200, 200, 0, 0, 12, 0)"
            " on conflict do nothing",
            [hour],
        )
    page.goto(chart_of("every_type/a_real"))
    happened = page.locator(".happened")
    expect(happened.locator("summary")).to_have_text("Meanwhile: 1 late, 1 gap")
    happened.locator("summary").click()
    expect(happened).to_contain_text("every_type gap, 7 rows: the source was silent")
    expect(happened).to_contain_text("late, 12 rows: rows of this hour arrived after later ones")


def test_waveforms_are_drawn_row_by_row(page: Page, charted: str) -> None:
    page.goto(charted)
    legend = page.locator(".legend")
    expect(legend).to_contain_text("bpm/turns, 2026-03-01 12:00:02.000")
    expect(legend).to_contain_text("100 points, 0 … 6")
    assert colours(page) > 3
    page.get_by_role("button", name="Waveform before").click()
    expect(legend).to_contain_text("12:00:01.000")
    expect(legend.locator(".value")).to_have_text("0 points")
    page.get_by_role("button", name="Waveform before").click()
    expect(legend).to_contain_text("12:00:00.000")
    expect(legend).to_contain_text("3 points, -2.5 … 4")
    # points 0 to 2: the mark at the right end is whole
    last = "canvas => [...canvas.getContext('2d').getImageData(canvas.width - 1, 0, 1, canvas.height).data]"
    assert not any(page.locator(".chart canvas").evaluate(last))
    page.get_by_role("button", name="Waveform before").click()
    expect(page.get_by_role("status")).to_contain_text("no waveform before this")
    # two at the same time: the one at the cursor B next to that at A
    page.get_by_role("button", name="Newest").click()
    page.goto(charted + cursors(a=WAVEFORMS, b=WAVEFORMS + timedelta(seconds=9)))
    expect(legend.locator("li")).to_have_count(2)
    expect(legend).to_contain_text("bpm/turns B, 2026-03-01 12:00:02.000")
    slider = page.get_by_role("slider", name="Time of the waveform")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("12:00:00.000"))


def test_a_waveform_has_a_chart_of_its_own(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_role("combobox", name="Find signals").press_sequentially("turns")
    expect(page.locator("#found li")).to_have_count(1)
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".chart")).to_have_count(2)


def test_points_are_read_as_a_table(page: Page) -> None:
    page.goto(chart_of("every_type/an_int", "every_type/a_varchar", mode="values"))
    rows = page.locator(".values tbody tr")
    expect(rows).to_have_count(ROWS)
    assert rows.nth(1).locator("th, td").all_inner_texts()[:2] == ["2025-12-31 23:58:21.000", "-88999997"]


@pytest.fixture
def pressures(web) -> str:
    """A span of 300 pressures, of which each 60th is 0."""
    web.server.sql(
        "insert into log.sr_vac (seq_no, time, pressure_1)"
        " select 1, timestamptz '2026-06-08 12:00Z' + step * interval '1 s',"
        " case when step % 60 > 0 then 1e-8 * 10 ^ (step % 3) else 0 end"
        " from generate_series(0, 299) step on conflict do nothing"
    )
    return "from=2026-06-08T12:00:00Z&to=2026-06-08T12:10:00Z&utc=1"


def test_a_logarithmic_axis(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    linear = picture(page)
    button = page.get_by_role("button", name="Log", exact=True)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("%2C%3D%3Blog"))
    # row 0 is 0, row 1 is 1/8, and so on
    expect(page.locator(".unseen")).to_have_text(
        "1 point at or below 0, which a logarithmic axis does not have"
    )
    logarithmic = picture(page)
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".unseen")).to_contain_text("1 point")
    # a chart that is drawn anew looks the same
    assert picture(page) == logarithmic
    button.click()
    expect(page.locator(".unseen")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("log"))
    assert picture(page) == linear


def test_each_axis_is_logarithmic_by_itself(page: Page, pressures: str) -> None:
    names = ("every_type/a_double", "sr_vac_ccg_1/pressure")
    page.goto(chart_of(*names))
    number, pascal = (page.get_by_role("button", name=name) for name in ("Log (no unit)", "Log Pa"))
    pascal.click()
    expect(page).to_have_url(re.compile("%2C%3DPa%3Blog"))
    expect(pascal).to_have_attribute("aria-pressed", "true")
    expect(number).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".unseen")).to_be_hidden()
    number.click()
    expect(page.locator(".unseen")).to_contain_text("1 point")
    both = picture(page)
    # a link of version 1.0 has one choice for all axes
    page.goto("about:blank")
    page.goto(chart_of(*names, mode="trend:log"))
    expect(page.locator(".unseen")).to_contain_text("1 point")
    expect(pascal).to_have_attribute("aria-pressed", "true")
    assert picture(page) == both


def test_histogram_and_spectrum_have_a_drawing_for_each_unit(page: Page, pressures: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(chart_of("every_type/a_double", "sr_vac_ccg_1/pressure", mode="histogram", span=pressures))
    legend = page.locator(".legend li", has_text="sr_vac_ccg_1/pressure")
    expect(legend).to_contain_text("300 samples, mean ")
    expect(page.locator(".chart canvas")).to_have_count(2)
    page.get_by_role("button", name="Log Pa").click()
    # five of 300 pressures are 0
    expect(page.locator(".unseen")).to_contain_text("5 points at or below 0")
    page.get_by_role("button", name="Log number").click()
    expect(page).to_have_url(re.compile("number%3Blog"))
    page.get_by_label("View of the chart").select_option("spectrum")
    expect(legend).to_contain_text("greatest ")
    page.get_by_role("button", name="Log frequency").click()
    expect(page.get_by_role("button", name="Log Pa")).to_have_attribute("aria-pressed", "true")
    with page.expect_download() as saved:
        page.get_by_label("Save the data shown").select_option("png")
    drawn = page.locator(".chart canvas").evaluate_all(
        "all => all.reduce((sum, { height }) => sum + height, 0)"
    )
    # the height of a picture: bytes 20 to 23 of PNG (ISO/IEC 15948, 11.2.2)
    assert int.from_bytes(saved.value.path().read_bytes()[20:24]) == drawn
    assert not [url for url in asked if "api/v1/trend" in url], "the server makes the bins"


def test_scalars_of_waveforms(page: Page, charted: str) -> None:
    page.goto(charted)
    page.get_by_label("Scalars of the waveforms").select_option("max")
    expect(page.locator(".chart")).to_have_count(2)
    expect(page.locator(".legend").nth(1)).to_contain_text("bpm/turns.max")
    expect(page.locator(".legend .value").nth(1)).to_contain_text("6")


def test_the_wall_is_the_whole_screen(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_role("button", name="Wall").click()
    page.wait_for_function("document.fullscreenElement !== null")
    expect(page.locator("aside")).to_be_hidden()
    # like Escape, which a browser handles itself
    page.evaluate("document.exitFullscreen()")
    expect(page.locator("aside")).to_be_visible()
    expect(page).not_to_have_url(re.compile("wall"))


def test_the_bars_of_a_histogram_begin_at_0(page: Page) -> None:
    """180 readings, evenly spread: 2 to 4 in each bar, so the lowest is about half of the highest."""
    page.goto(chart_of("every_type/a_real", mode="histogram"))
    expect(page.locator(".legend")).to_contain_text("180 samples")
    settled(page)
    low, high = page.evaluate(
        """() => {
            const canvas = document.querySelector(".chart canvas"), { width, height } = canvas, heights = [];
            const bytes = canvas.getContext("2d").getImageData(0, 0, width, height).data;
            for (let x = 0; x < width; x++) {
                let n = 0;
                for (let y = 0; y < height; y++) {
                    const at = 4 * (y * width + x);
                    if (bytes[at + 3] && bytes[at + 2] - bytes[at] > 40) n++;
                }
                if (n > 20) heights.push(n); // not the line at 0
            }
            heights.sort((a, b) => a - b);
            return [heights[0], heights[heights.length - 1]];
        }"""
    )
    assert low / high == pytest.approx(0.5, abs=0.1)


def test_an_outage_is_visible_with_other_signals(page: Page) -> None:
    """A line has no points where only another has some; a null breaks it up to its own neighbours. A state
    ends before an outage and begins anew after it."""
    page.goto(chart_of("every_type/a_real"))
    wide = page.evaluate(
        """async () => {
            const { withWideGaps } = await import("/page/charts/series.js");
            const shown = (values) => values.map((value) => (value === undefined ? "-" : value));
            const none = undefined, given = [[none, 1, none, null, none, 2, none], [none, null], [1], []];
            return given.map((values) => shown(withWideGaps(values)));
        }"""
    )
    assert wide == [["-", 1, None, None, None, 2, "-"], [None, None], [1], []]
    pieces = page.evaluate(
        """async () => {
            const { pieces } = await import("/page/charts/states.js");
            const at = [0, 1000, 2000, 3000, 60000, 61000, 62000, 63000];
            const series = { at, mean: [1, 1, 0, 0, 0, 0, 1, 1], width: 0, usual: 1000 };
            return pieces(series, { from: 0, to: 100000 }).map(({ from, to, value }) => [from, to, value]);
        }"""
    )
    assert pieces[:4] == [[0, 2000, 1], [2000, 4000, 0], [60000, 62000, 0], [62000, pieces[3][1], 1]]


def test_headings_stand_above_their_figures(page: Page) -> None:
    page.goto("/#view=status")
    expect(page.locator("#tables tbody tr").first).to_be_visible()
    wrong = page.evaluate(
        """() => [...document.querySelectorAll("#tables, #losses, #events")].flatMap((table) => {
            const heads = [...table.querySelectorAll("th")], row = table.querySelector("tbody tr");
            if (row.cells.length !== heads.length) return [];
            const align = (cell) => getComputedStyle(cell).textAlign;
            const wrong = heads.filter((head, index) => align(head) !== align(row.cells[index]));
            return wrong.map((head) => head.textContent);
        })"""
    )
    assert wrong == []
