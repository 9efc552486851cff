"""A click on a gap of the page says why readings are missing."""

import json
import re
from collections.abc import Iterator

import pytest
from chromium import box_of, chart_of, settled
from playwright.sync_api import Page, expect
from webs import Web

SPAN = "from=2026-06-02T12:00:00Z&to=2026-06-02T12:10:00Z&utc=1"


@pytest.fixture
def old(web: Web) -> Iterator[None]:
    """The table's signals are older than the rows of this file."""
    change = "update ringlog.signal set valid_from = valid_from {} interval '365 days'"
    web.server.sql(change.format("-"))
    yield
    web.server.sql(change.format("+"))


def test_a_click_on_a_gap_says_why(page: Page, web: Web, old: None) -> None:
    """Rows of ten minutes, a second each; none from the fourth to the sixth minute."""
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real, a_double)"
        " select 1, timestamptz '2026-06-02 12:00Z' + step * interval '1 s', 1, 2"
        " from generate_series(0, 599) as step where step not between 240 and 359"
    )
    gap = {
        "number": 1,
        "time": "2026-06-02T12:03:59Z",
        "until": "2026-06-02T12:06:00Z",
        "kind": "gap",
        "message": "the source gave no rows",
        "rows": 120,
    }
    query = "select ringlog.report_events('every_type', 'why', %s)"
    web.server.sql(query, [json.dumps([gap])], login=web.server.writer)
    page.goto(chart_of("every_type/a_real", "every_type/a_double", span=SPAN))
    settled(page)
    box = box_of(page.locator(".u-over"))

    def click(minute: float) -> None:
        page.mouse.click(box["x"] + box["width"] * minute / 10, box["y"] + 100)

    with page.expect_request(re.compile("api/v1/why")):
        click(5)
    answer = page.locator(".why")
    expect(answer.locator("p")).to_have_text(re.compile(r"^every_type/a_real, every_type/a_double have no "))
    expect(answer).to_contain_text("no rows from source")
    expect(answer).to_contain_text("120 rows: event gap: the source gave no rows")
    # where there are rows nothing is missing
    click(2)
    expect(answer).to_have_text("")


def test_no_line_leads_over_a_shaded_time(page: Page, web: Web) -> None:
    """Three rows are few, but an event says that they are missing; two others have no event."""
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real)"
        " select 1, timestamptz '2026-06-04 12:00Z' + step * interval '1 s', step"
        " from generate_series(0, 39) as step where step not in (10, 11, 12, 30, 31)"
    )
    web.server.sql(
        "insert into ringlog.event (spool, number, table_name, kind, time, until, rows, message)"
        " select 'broken', 1, 'every_type', 'gap', '2026-06-04 12:00:09Z', '2026-06-04 12:00:13Z', 3, ''"
    )
    span = "from=2026-06-04T12:00:00Z&to=2026-06-04T12:00:40Z&utc=1"
    page.goto(chart_of("every_type/a_real", span=span))
    expect(page.locator(".happened summary")).to_have_text("Meanwhile: 1 gap")
    settled(page)
    # the share of the columns of pixels from one second to another that have the line's colour
    drawn = r"""([from, to]) => {
        const find = (selector) => document.querySelector(selector), canvas = find(".chart canvas");
        const box = find(".u-over").getBoundingClientRect(), { left } = canvas.getBoundingClientRect();
        const x = (second) => Math.round((box.left - left + box.width * second / 40) * devicePixelRatio);
        const width = x(to) - x(from), has = Array(width).fill(false);
        const { data } = canvas.getContext("2d").getImageData(x(from), 0, width, canvas.height);
        const colour = getComputedStyle(find(".legend .swatch")).backgroundColor.match(/\d+/g).map(Number);
        for (let i = 0; i < data.length; i += 4) {
            if (colour.every((part, k) => Math.abs(data[i + k] - part) < 40)) has[(i / 4) % width] = true;
        }
        return has.filter(Boolean).length / width;
    }"""
    assert page.evaluate(drawn, [14, 28]) > 0.95
    assert page.evaluate(drawn, [29.5, 31.5]) > 0.95, "two rows that nobody says are missing"
    assert page.evaluate(drawn, [10.5, 12.5]) < 0.1
