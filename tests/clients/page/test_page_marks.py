"""Marks on the page: written at a cursor, shown as a line, at the pointer and in the list, corrected."""

import re
from datetime import UTC, datetime

from chromium import chart_of, pointed
from playwright.sync_api import Browser, expect
from webs import Web

from ringlog.server.logins import Right, add_login
from servers import Login

SPAN = "from=2026-06-05T12:00:00Z&to=2026-06-05T12:10:00Z&utc=1"
OPERATOR = Login("page_operator", "mark-Ω-9")


def test_marks(browser: Browser, web: Web) -> None:
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real)"
        " select 1, timestamptz '2026-06-05 12:00Z' + step * interval '1 s', sin(step / 40.0)"
        " from generate_series(0, 599) as step"
    )
    add_login(web.server.dsn, OPERATOR.user, [Right.READER, Right.RECORDER], OPERATOR.password)
    shown = {"username": OPERATOR.user, "password": OPERATOR.password}
    page = browser.new_page(
        viewport={"width": 1400, "height": 900}, base_url=web.url, http_credentials=shown | {"send": "always"}
    )
    # cursor A at 12:02:30, B at 12:04
    page.goto(chart_of("every_type/a_real", span=f"{SPAN}&a=1780660950&b=1780661040"))
    expect(page.locator(".legend")).to_contain_text("every_type/a_real")
    page.get_by_role("button", name="Mark", exact=True).click()
    form = page.locator("#note")
    expect(form.get_by_label("Time")).to_have_value("2026-06-05 12:02:30.000")
    expect(form.get_by_label("Until")).to_have_value("2026-06-05 12:04:00.000")
    form.get_by_label("Text").fill("RF conditioning")
    with page.expect_response(re.compile("/api/v1/marks")):
        form.get_by_role("button", name="Save").click()
    expect(form).to_be_hidden()
    happened = page.locator(".happened")
    expect(happened.locator("summary")).to_have_text("Meanwhile: 1 mark")
    query = 'select mark, "time", until, text, signals, login from ringlog.list_marks(names => %s)'
    ((number, begin, until, *rest),) = web.server.sql(query, ["every_type/a_real"])
    assert begin == datetime(2026, 6, 5, 12, 2, 30, tzinfo=UTC)
    assert until == datetime(2026, 6, 5, 12, 4, tzinfo=UTC)
    assert rest == ["RF conditioning", ["every_type/a_real"], OPERATOR.user]
    over = page.locator(".u-over")
    pointed(over, 0.3, 100, rf"RF conditioning \({OPERATOR.user}\)$")
    assert "RF conditioning" not in pointed(over, 0.7, 100)
    happened.locator("summary").click()
    happened.get_by_role("button", name="Correct").click()
    form.get_by_label("Text").fill("RF conditioning, station 2")
    form.get_by_role("button", name="Save").click()
    expect(happened).to_contain_text("RF conditioning, station 2")
    happened.get_by_role("button", name="Correct").click()
    form.get_by_role("button", name="Withdraw").click()
    expect(happened).to_be_hidden()
    history = 'select version, text, withdrawn, "time" from ringlog.mark_history(%s)'
    assert web.server.sql(history, [number]) == [
        (1, "RF conditioning", False, begin),
        (2, "RF conditioning, station 2", False, begin),
        (3, "RF conditioning, station 2", True, begin),
    ]
    page.close()


def test_who_may_not_write_is_told(browser: Browser, web: Web) -> None:
    shown = {"username": web.server.reader.user, "password": web.server.reader.password, "send": "always"}
    page = browser.new_page(base_url=web.url, http_credentials=shown)
    page.goto(chart_of("every_type/a_real", span=SPAN))
    expect(page.locator(".legend")).to_contain_text("every_type/a_real")
    page.get_by_role("button", name="Mark", exact=True).click()
    form = page.locator("#note")
    form.get_by_label("Text").fill("x")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("has no right to do this")
    page.close()
