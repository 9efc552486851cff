"""Captures on the page: a click draws all signals of one at full rate, with time zero at the event."""

import re
from datetime import UTC, datetime, timedelta

from chromium import pointed
from playwright.sync_api import Page, expect
from webs import Web

from ringlog.server.logins import Right, add_login
from servers import Login
from waiting import wait_until

RECORDER = Login("page_recorder", "trip-Ω-9")


def test_captures(page: Page, web: Web) -> None:
    """Rows each tenth of a second, of which the capture has 2 s before and 1 s after the event."""
    event = datetime(2026, 6, 6, 12, 0, 0, 250_000, tzinfo=UTC)
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real, a_varchar)"
        " select 1, %s + step * interval '0.1 s', step, case when step < 0 then 'on' else 'tripped' end"
        " from generate_series(-50, 50) as step",
        [event],
    )
    add_login(web.server.dsn, RECORDER.user, [Right.READER, Right.RECORDER], RECORDER.password)
    call = "select ringlog.capture_event(%s, %s, 2, 1, 'every_type,bpm', note => %s, late => 0)"
    for name, at in (("earlier", event - timedelta(days=1)), ("klystron 4", event)):
        web.server.sql(call, [name, at, "reflected power"], login=RECORDER)
    ended = "select distinct state from ringlog.list_captures()"
    wait_until(lambda: web.server.sql(ended, login=RECORDER) == [("ended",)])
    page.goto("/#utc=1")
    captures = page.locator("#captures")
    captures.locator("summary").click()
    expect(captures.locator(".name")).to_have_text(["klystron 4", "earlier"])
    expect(captures.locator(".age").first).to_have_text("2026-06-06 12:00:00")
    expect(captures.locator(".about").first).to_have_text("reflected power")
    captures.get_by_role("button").first.click()
    chart = page.locator(".chart").filter(has=page.locator("[data-signal='every_type/a_real']"))
    expect(chart.locator(".mode")).to_have_value(re.compile("capture-"))
    # the newest value, and the rows: from -2 s on and before 1 s
    expect(chart.locator("[data-signal='every_type/a_real'] .value")).to_have_text(re.compile("^9"))
    chart.get_by_role("button", name="Statistics").click()
    stats = chart.locator("[data-signal='every_type/a_real'] .stats")
    expect(stats).to_have_text("least -20 · mean -5.5 · greatest 9 · last 9 · 30 samples")
    expect(chart.locator(".happened summary")).to_contain_text("1 capture")
    time = r"^\+0\.(49|50)\d s · 2026-06-06 12:00:00\.7.*every_type/a_real"
    pointed(chart.locator(".u-over"), 2.5 / 3, 100, time)
    states = page.locator(".chart").filter(has=page.locator("[data-signal='every_type/a_varchar']"))
    expect(states.locator("[data-signal='every_type/a_varchar'] .value")).to_have_text("tripped")
    # the link shows the same
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(stats).to_have_text("least -20 · mean -5.5 · greatest 9 · last 9 · 30 samples")
