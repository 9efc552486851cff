"""The page for all people: by keyboard, by what is heard of it, on each screen. In a real browser."""

import re
from pathlib import Path

import pytest
from chromium import chart_of, cursors
from known_rows import ROWS, time_of
from playwright.sync_api import Page, expect

# of npm, by the Makefile
AXE = Path(__file__).parents[2] / "build/page/node_modules/axe-core/axe.min.js"


def test_the_keyboard_is_enough(page: Page) -> None:
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


def test_all_that_can_be_operated_has_a_name(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    snapshot = page.locator("body").aria_snapshot()
    assert not re.findall(r"- (?:button|combobox|textbox|link)(?: \[[^]]*\])*:?$", snapshot, re.MULTILINE), (
        snapshot
    )
    assert "listbox" in snapshot


def broken_rules(page: Page) -> list[str]:
    """What axe-core finds wrong: https://dequeuniversity.com/rules/axe."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("look", ["light", "dark", "wall=1", "view=status", "phone"])
def test_all_people_can_use_it(page: Page, waveforms: str, look: str) -> None:
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
    assert broken_rules(page) == []
    page.evaluate("document.querySelectorAll('.chart').forEach((chart) => chart.classList.add('busy'))")
    assert broken_rules(page) == []  # while it waits for readings, too
    if look == "light":
        page.goto(waveforms)
        expect(page.locator(".chart")).to_have_count(1)
        expect(page.locator(".legend")).to_contain_text("100 points")
        assert broken_rules(page) == []
