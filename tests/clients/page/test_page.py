"""The page in a real browser: Debian's chromium, operated as by a user."""

import re

import psycopg
import pytest
from chromium import SPAN, box_of, chart_of, colours, settled
from known_rows import BEGIN, ROWS
from playwright.sync_api import Page, Request, expect

from waiting import wait_until


def test_a_signal_is_found_while_typing_and_shown(page: Page) -> None:
    page.goto(f"/#{SPAN}")
    expect(page.get_by_text("No signal chosen yet")).to_be_visible()
    page.get_by_role("combobox", name="Find signals").press_sequentially("real")
    expect(page.locator("#found li")).to_have_count(1)
    page.keyboard.press("Enter")
    legend = page.locator(".legend")
    # the legend shows the newest of the known rows with a reading, until the cursor is on the chart
    expect(legend).to_contain_text("every_type/a_real")
    expect(page.locator(".chart canvas")).to_be_visible()
    assert colours(page) > 3
    expect(page.locator(".plot")).to_have_attribute(
        "aria-label", re.compile("every_type/a_real.*from 2025-12-31")
    )


def test_a_signal_dragged_on_a_chart_has_an_axis_of_its_unit(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_role("combobox", name="Find signals").fill("a_double")
    # until the search has ended, the list is the earlier one
    expect(page.locator("#found li")).to_have_count(1)
    page.locator("#found li", has_text="every_type/a_double").drag_to(page.locator(".plot"))
    expect(page.locator(".legend li")).to_have_count(2)
    expect(page.locator(".chart")).to_have_count(1)


def test_a_drag_zooms_and_back_goes_back(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    settled(page)
    box = box_of(page.locator(".u-over"))
    with page.expect_request(re.compile("api/v1/trend")) as narrow:
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 110, steps=8)
        page.mouse.up()
    asked = re.search(r"from=([\d.]+)&to=([\d.]+)", narrow.value.url)
    assert asked is not None
    # half of the four minutes that were shown
    assert float(asked[2]) - float(asked[1]) == pytest.approx(120, rel=0.02)
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))


def test_samples_far_apart_are_points(page: Page, web) -> None:
    """The usual step is a second: no line leads to the sample two minutes before, nor to the one after."""
    web.server.sql(
        "insert into log.sr_vac (seq_no, time, pressure_1)"
        " select 1, timestamptz '2026-06-01 12:00Z' + step * interval '1 s', 1"
        " from unnest(array[0, 120, 121, 122, 123, 124, 240]) as step"
    )
    span = "from=2026-06-01T11:58:00Z&to=2026-06-01T12:06:00Z&utc=1"
    page.goto(chart_of("sr_vac_ccg_1/pressure", span=span))
    settled(page)
    drawn = page.evaluate(
        """() => {
            const canvas = document.querySelector(".chart canvas"), over = document.querySelector(".u-over");
            const box = over.getBoundingClientRect(), outer = canvas.getBoundingClientRect();
            const scale = canvas.width / outer.width, { data } = canvas.getContext("2d").getImageData(
                (box.left - outer.left) * scale, 0, box.width * scale, canvas.height);
            const width = Math.floor(box.width * scale), minutes = new Set();
            const [red, green, blue] = [0x0b, 0x72, 0x85];
            for (let place = 0; place < data.length; place += 4) {
                if (data[place] === red && data[place + 1] === green && data[place + 2] === blue) {
                    minutes.add(Math.round((place / 4 % width) / width * 8));
                }
            }
            return [...minutes].sort();
        }"""
    )
    assert drawn == [2, 4, 6]


@pytest.mark.parametrize("where", ["with Shift", "on the axis of time"])
def test_a_drag_moves_the_time(page: Page, where: str) -> None:
    page.goto(chart_of("every_type/a_real"))
    settled(page)
    box = box_of(page.locator(".u-over" if where == "with Shift" else ".u-axis >> nth=0"))
    plot = box_of(page.locator(".u-over"))
    if where == "with Shift":
        page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75 - plot["width"] / 4, box["y"] + 15, steps=5)
    page.mouse.up()
    # a quarter of the four minutes to the left: a minute later
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A5(8%3A59|9%3A00)"))
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))


def test_bits_and_texts_are_bars(page: Page) -> None:
    page.goto(chart_of("every_type/a_bit", "every_type/a_varchar", "every_type/an_int"))
    expect(page.locator(".legend li")).to_have_count(3)
    expect(page.locator(".legend")).to_contain_text("on" if (ROWS - 1) % 4 == 0 else "no reading")
    assert colours(page) > 5
    tall = box_of(page.locator(".plot"))["height"]
    page.goto(chart_of("every_type/a_bit", "every_type/a_varchar"))
    expect(page.locator(".legend li")).to_have_count(2)
    # alone they need two bars of 22 pixels and the axis
    page.wait_for_function("() => document.querySelector('.chart canvas').clientHeight < 120")
    assert box_of(page.locator(".plot"))["height"] < 120 < tall
    assert colours(page) > 5


@pytest.mark.parametrize("mode", ["histogram", "spectrum", "compare-86400"])
def test_other_views_of_the_same_time(page: Page, mode: str) -> None:
    page.goto(chart_of("every_type/a_double"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_label("View of the chart").select_option(mode)
    expect(page).to_have_url(re.compile(mode))
    expect(page.locator(".chart canvas")).to_be_visible()
    assert colours(page) > 3


def test_values_appear_when_they_are_written(page: Page, web) -> None:
    page.goto(chart_of("sr_vac_ccg_2/pressure", span="last=600"))
    expect(page.locator(".legend")).to_contain_text("sr_vac_ccg_2/pressure")
    web.server.sql(
        "insert into log.sr_vac (seq_no, time, pressure_2) select 1, now() - interval '9 s', 1.5e-8"
    )
    page.get_by_role("button", name="Live").click()
    page.get_by_role("button", name="Live").click()
    expect(page.locator(".legend")).to_contain_text("1.5000e-8")
    web.server.sql("update online.sr_vac set time = now(), pressure_2 = 2.5e-8 where seq_no = 2")
    expect(page.locator(".legend")).to_contain_text("2.5000e-8")


def test_the_legend_of_a_long_time_shows_new_values(page: Page, web) -> None:
    """Its points are of minutes, and are read again after minutes."""
    page.goto(chart_of("sr_vac_ccg_3/pressure", span="last=86400"))
    expect(page.locator(".legend")).to_contain_text("sr_vac_ccg_3/pressure")
    for value in ("3.5000e-8", "4.5000e-8"):
        web.server.sql(
            "update online.sr_vac set time = now(), pressure_3 = %s where seq_no = 3", [float(value)]
        )
        expect(page.locator(".legend")).to_contain_text(value)


def test_an_address_shows_the_same_again(page: Page) -> None:
    page.goto(chart_of("every_type/a_real", "every_type/an_int"))
    expect(page.locator(".legend li")).to_have_count(2)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator(".legend li")).to_have_count(2)
    expect(page.get_by_label("From", exact=True)).to_have_value("2025-12-31 23:58:00")


def test_an_address_that_is_entered_is_not_overwritten_by_a_change_before(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    # the change is not in the address yet, and the page is busy
    page.evaluate(
        """() => {
            document.getElementById("zone").click();
            setTimeout(() => {
                const end = performance.now() + 500;
                while (performance.now() < end);
            });
        }"""
    )
    page.goto(chart_of("every_type/a_real", "every_type/an_int"))
    expect(page.locator(".legend li")).to_have_count(2)


def test_the_page_measures_how_long_a_chart_took(page: Page) -> None:
    page.goto(f"/#{SPAN}")
    page.get_by_role("combobox", name="Find signals").fill("a_real")
    expect(page.locator("#found li")).to_have_count(1)
    page.locator("#found li").click()
    wait_until(lambda: page.evaluate("performance.getEntriesByName('chart shown').length") == 1)


def test_status_shows_every_table(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Status").click()
    rows = page.locator("#tables tbody tr")
    expect(rows).to_have_count(5)
    row = rows.filter(has_text="every_type")
    # its newest row is of last year
    expect(row).to_contain_text("silent")
    expect(page.locator("#tiles")).to_contain_text("tables are current")
    expect(page.locator("#tiles")).to_contain_text("in the database")
    expect(page.locator("#tiles")).to_contain_text("on its disk")


def test_a_table_whose_writer_runs_is_current(page: Page, web) -> None:
    # like the report of a writer of `ringlog load` about itself: clients/figures.py
    web.server.sql(
        "insert into ringlog.writer (table_name, epoch, spool, name, since, state)"
        " values ('sr_rf', 1, 'page', 'linac process 7', now(), 'running')"
    )
    current = page.locator("#tables tbody tr").filter(has_text="linac process 7").filter(has_text="current")

    def is_current() -> bool:
        """The state while the writer writes, however long the page's request takes."""
        web.server.sql("update online.sr_rf set time = now() where seq_no = 1")
        return current.is_visible()

    try:
        page.goto("/#view=status")
        wait_until(is_current)
    finally:
        with psycopg.connect(web.server.dsn) as connection:
            connection.execute("delete from ringlog.writer where spool = 'page'")
            connection.execute("update online.sr_rf set time = null where seq_no = 1")


def test_data_are_saved_as_a_file(page: Page) -> None:
    page.goto(chart_of("every_type/a_double"))
    expect(page.locator(".chart canvas")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_label("Save the data shown").select_option("csv")
    text = saved.value.path().read_text()
    assert text.startswith("time,value\n")
    assert len(text.splitlines()) == ROWS + 1
    assert BEGIN.isoformat()[:16] in text


@pytest.mark.parametrize("choice", ["csv-last", "csv-mean"])
def test_several_signals_are_saved_in_one_file(page: Page, choice: str) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(chart_of("every_type/a_double", "every_type/an_int"))
    expect(page.locator(".chart canvas")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_label("Save the data shown").select_option(choice)
    name = "every_type_a_double_and_1_more_20251231T235800Z_20260101T000200Z.csv"
    assert saved.value.suggested_filename == name
    (request,) = (one for one in asked if "download=1" in one.url)
    answer = request.response()
    assert answer is not None
    assert name in answer.headers["content-disposition"]
    lines = saved.value.path().read_text().splitlines()
    assert lines[0] == "time,every_type/a_double,every_type/an_int"
    assert len(lines) == 1 + (ROWS if choice == "csv-last" else 1000)
