"""The page in a real browser: Debian's chromium, driven as a person would."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from known_rows import BEGIN, ROWS
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
# as root it needs no sandbox of its own; it must not call its maker's hosts
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SPAN = "from=2025-12-31T23:58:00Z&to=2026-01-01T00:02:00Z&utc=1"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, web) -> Iterator[Page]:
    """A window, in which nothing may go wrong unseen and nothing may come from elsewhere."""
    wrong: list[str] = []
    made = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light", base_url=web.url)
    made.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    made.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    own = (web.url, "data:", "blob:")
    made.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
    yield made
    made.close()
    assert wrong == []


def chart_of(*signals: str, mode: str = "trend") -> str:
    """An address that shows these signals in one chart over the known rows."""
    parts = ",".join(quote(part, safe="") for part in (mode, *signals))
    return f"/#c={quote(parts, safe='')}&{SPAN}"


def colours(page: Page) -> int:
    """How many colours the first chart's canvas has: more than a few when something is drawn."""
    found = page.evaluate(
        """() => {
            const canvas = document.querySelector(".chart canvas"), { width, height } = canvas;
            const bytes = canvas.getContext("2d").getImageData(0, 0, width, height).data, seen = new Set();
            for (let i = 0; i < bytes.length; i += 4) {
                if (bytes[i + 3]) seen.add(bytes.slice(i, i + 3).join());
            }
            return seen.size;
        }"""
    )
    return int(found)


def test_a_signal_is_found_as_one_types_and_shown(page: Page) -> None:
    page.goto(f"/#{SPAN}")
    expect(page.get_by_text("No signal chosen yet")).to_be_visible()
    page.get_by_role("combobox", name="Find signals").press_sequentially("real")
    expect(page.locator("#found li")).to_have_count(1)
    page.keyboard.press("Enter")
    legend = page.locator(".legend")
    # the newest of the known rows with a reading stands in the legend, until the cursor is on the chart
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
    # until it has been searched, the list is the one of before
    expect(page.locator("#found li")).to_have_count(1)
    page.locator("#found li", has_text="every_type/a_double").drag_to(page.locator(".plot"))
    expect(page.locator(".legend li")).to_have_count(2)
    expect(page.locator(".chart")).to_have_count(1)


def test_a_drag_zooms_and_back_goes_back(page: Page) -> None:
    page.goto(chart_of("every_type/a_real"))
    over = page.locator(".u-over")
    expect(over).to_be_visible()
    box = over.bounding_box()
    assert box is not None
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


def test_bits_and_texts_are_bars(page: Page) -> None:
    page.goto(chart_of("every_type/a_bit", "every_type/a_varchar", "every_type/an_int"))
    expect(page.locator(".legend li")).to_have_count(3)
    expect(page.locator(".legend")).to_contain_text("on" if (ROWS - 1) % 4 == 0 else "no reading")
    assert colours(page) > 5


@pytest.mark.parametrize("mode", ["histogram", "spectrum", "compare-86400"])
def test_other_views_of_the_same_time(page: Page, mode: str) -> None:
    page.goto(chart_of("every_type/a_double"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_label("What the chart shows").select_option(mode)
    expect(page).to_have_url(re.compile(mode))
    expect(page.locator(".chart canvas")).to_be_visible()
    assert colours(page) > 3


def test_values_appear_as_they_are_written(page: Page, web) -> None:
    page.goto(f"/#c={quote('trend,sr_vac_ccg_2%2Fpressure', safe='')}&last=600")
    expect(page.locator(".legend")).to_contain_text("sr_vac_ccg_2/pressure")
    with psycopg.connect(web.server.dsn) as connection:
        connection.execute(
            "insert into log.sr_vac (seq_no, time, pressure_2) select 1, now() - interval '9 s', 1.5e-8"
        )
    page.get_by_role("button", name="Live").click()
    page.get_by_role("button", name="Live").click()
    expect(page.locator(".legend")).to_contain_text("1.5000e-8")
    with psycopg.connect(web.server.dsn) as connection:
        connection.execute("update online.sr_vac set time = now(), pressure_2 = 2.5e-8 where seq_no = 2")
    expect(page.locator(".legend")).to_contain_text("2.5000e-8")


def test_an_address_shows_the_same_again(page: Page) -> None:
    page.goto(chart_of("every_type/a_real", "every_type/an_int"))
    expect(page.locator(".legend li")).to_have_count(2)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator(".legend li")).to_have_count(2)
    expect(page.get_by_label("From", exact=True)).to_have_value("2025-12-31T23:58")


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


def test_status_tells_of_every_table(page: Page) -> None:
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


def test_data_are_saved_as_a_file(page: Page) -> None:
    page.goto(chart_of("every_type/a_double"))
    expect(page.locator(".chart canvas")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_label("Save the data shown").select_option("csv")
    text = saved.value.path().read_text()
    assert text.startswith("time,value\n")
    assert len(text.splitlines()) == ROWS + 1
    assert BEGIN.isoformat()[:16] in text
