"""Accessibility of the page: by keyboard, by screen reader, on each size of screen. In a real browser."""

import re
from pathlib import Path

import pytest
from chromium import chart_of, cursors
from known_rows import ROWS, time_of
from playwright.sync_api import Browser, Page, Route, expect

# of npm, by the Makefile
AXE = Path(__file__).parents[3] / "build/page/node_modules/axe-core/axe.min.js"


def test_the_page_works_by_keyboard_alone(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.locator(".plot").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A57%3A00"))
    page.keyboard.press("d")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("w")
    expect(page.locator("aside")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("aside")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Find signals")).to_be_focused()


def test_all_controls_have_a_name(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    snapshot = page.locator("body").aria_snapshot()
    assert not re.findall(r"- (?:button|combobox|textbox|link)(?: \[[^]]*\])*:?$", snapshot, re.MULTILINE), (
        snapshot
    )
    assert "listbox" in snapshot


def broken_rules(page: Page) -> list[str]:
    """The violations found by axe-core: https://dequeuniversity.com/rules/axe."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("look", ["light", "dark", "wall=1", "view=status", "phone"])
def test_the_page_is_accessible(page: Page, charted: str, look: str) -> None:
    if look == "phone":
        page.set_viewport_size({"width": 390, "height": 844})
    others = "&theme=dark" if look == "dark" else f"&{look}" if "=" in look else ""
    lines = chart_of("every_type/a_real", "every_type/a_bit") + cursors(a=time_of(40), b=time_of(120))
    values = chart_of("every_type/a_double", mode="values").removeprefix("/#")
    page.goto(f"{lines}&{values}{others}")
    if look == "view=status":
        expect(page.locator("#tables tbody tr")).to_have_count(5)
    else:
        expect(page.locator(".values tbody tr")).to_have_count(ROWS)
        expect(page.locator(".readout").first.locator("tbody tr")).to_have_count(2)
    if look in ("light", "dark"):
        page.get_by_text("Tables, with the last values").click()
        page.locator("#tree li summary").first.click()
        expect(page.locator("#tree button").first).to_be_visible()
    assert broken_rules(page) == []
    page.evaluate("document.querySelectorAll('.chart').forEach((chart) => chart.classList.add('busy'))")
    assert broken_rules(page) == []  # also while it waits for readings
    if look == "light":
        page.goto(charted)
        expect(page.locator(".chart")).to_have_count(1)
        expect(page.locator(".legend")).to_contain_text("100 points")
        assert broken_rules(page) == []


def test_a_failure_is_shown_until_it_works(browser: Browser, web) -> None:
    """A separate page, because failed requests appear in the browser's console."""
    page = browser.new_page(base_url=web.url)
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    words = "too many queries are running: try again in some seconds"

    def busy(route: Route) -> None:
        route.fulfill(status=429, json={"error": words, "status": 429})

    def gone(route: Route) -> None:
        route.abort()

    for answer, message in ((busy, words), (gone, "The server does not answer.")):
        page.route("**/api/v1/trend*", answer)
        page.get_by_role("button", name="Earlier").click()
        expect(page.locator("#message")).to_have_text(message)
        expect(page.locator(".chart .note")).to_have_text("This time could not be read.")
        page.unroute("**/api/v1/trend*")
        page.get_by_role("button", name="Later").click()
        expect(page.locator("#message")).to_be_empty()
        expect(page.locator(".chart .note")).to_have_count(0)
    page.close()


def test_a_link_with_a_deleted_signal_shows_the_others(browser: Browser, web) -> None:
    page = browser.new_page(base_url=web.url)
    page.goto(chart_of("every_type/a_real", "no/such"))
    expect(page.locator("#message")).to_have_text("There is no signal no/such. Find signals on the left.")
    expect(page.locator(".legend li")).to_have_count(1)
    expect(page.locator(".legend")).to_contain_text("every_type/a_real")
    page.close()


def test_a_search_without_a_result_repeats_the_search(page: Page) -> None:
    page.goto("/")
    page.get_by_role("combobox", name="Find signals").fill("zzzz")
    expect(page.locator("#count")).to_have_text("No signal has these words in its name, description or unit.")
