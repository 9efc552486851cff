"""The page in Debian's chromium."""

from collections.abc import Iterator

import pytest
from chromium import CHROMIUM, QUIET, chart_of
from playwright.sync_api import Browser, Page, expect, sync_playwright


# playwright's loop counts as running in this thread: tests of other files run their own loops
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, web) -> Iterator[Page]:
    """A window; errors in its console and requests to other hosts fail the test."""
    wrong: list[str] = []
    made = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light", base_url=web.url)
    made.set_default_timeout(60_000)
    made.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    own = (web.url, "data:", "blob:")
    made.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
    yield made
    made.close()
    assert wrong == []


@pytest.fixture
def charted(waveforms: None) -> str:
    """An address that shows the three waveforms."""
    return chart_of("bpm/turns", span="from=2026-03-01T11:59:50Z&to=2026-03-01T12:00:10Z&utc=1")
