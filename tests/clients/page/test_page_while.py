"""The page shows the times in which a condition of other signals holds."""

import re

from chromium import chart_of
from playwright.sync_api import Browser, Page, expect
from webs import Web

SPAN = "from=2026-06-03T12:00:00Z&to=2026-06-03T12:10:00Z&utc=1"


def test_a_chart_while_a_condition_holds(page: Page, web: Web) -> None:
    """A ramp of ten minutes; the condition holds in its second half."""
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real, an_int)"
        " select 1, timestamptz '2026-06-03 12:00Z' + step * interval '1 s', step, step"
        " from generate_series(0, 599) as step"
    )
    page.goto(chart_of("every_type/a_real", span=SPAN))
    legend = page.locator(".legend")
    expect(legend).to_contain_text("every_type/a_real")
    field = page.get_by_label("While this condition holds")
    with page.expect_response(re.compile("api/v1/trend.*while=")) as got:
        field.fill("every_type/an_int >= 300")
        field.press("Enter")
    (line,) = got.value.json()["signals"]
    assert (min(line["min"]), max(line["max"]), sum(line["n"])) == (300, 599, 300)
    expect(page).to_have_url(re.compile("while=every_type"))
    field.fill("every_type/an_int >= 600")
    field.press("Enter")
    expect(page).to_have_url(re.compile("600"))
    page.go_back()
    expect(field).to_have_value("every_type/an_int >= 300")


def test_a_condition_that_is_not_understood(browser: Browser, web: Web) -> None:
    # in a window of its own, because the refusal is an error in its console
    page = browser.new_page(base_url=web.url)
    page.goto(chart_of("every_type/a_real") + "&while=every_type%2Fan_int+%3E%3D")
    expect(page.locator("#message")).to_contain_text("condition, character 21")
    page.close()
