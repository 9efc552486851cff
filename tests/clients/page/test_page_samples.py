"""Waveforms of a table of samples on the page, in a real browser."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from chromium import chart_of, cursors
from playwright.sync_api import Page, expect
from webs import OPEN, Web

from servers import free_port, ringlog, serving

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
FACILITY = """
[[table]]
name = "scope"
kind = "samples"
type = "double[]"
points = 500
[[table.signal]]
name = "scope:{n}"
count = 2
unit = "V"
"""
WAVES = [[0.5, -2.5, 4.0], None, *[None] * 25, [], [float(number % 7) for number in range(100)]]
"""of each second; a table of samples has those without a reading, too"""


@pytest.fixture(scope="module")
def web(temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server with waveforms of samples, the second signal's between those of the first."""
    file = tmp_path_factory.mktemp("scope") / "scope.toml"
    file.parent.chmod(0o755)
    file.write_text(FACILITY)
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}", "--http-role", OPEN.user)
    with serving(temporary_directory / "scope", *options, facility=file) as running:
        words = ("user", "add", OPEN.user, "--reader", "--password-stdin", "--data", running.data)
        assert ringlog(*words, stdin=OPEN.password).returncode == 0
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            for second, wave in enumerate(WAVES):
                at = BEGIN + timedelta(seconds=second)
                connection.execute("select ringlog.put_scope('scope:1', %s, %s::float8[])", [at, wave])
            half = BEGIN + timedelta(seconds=0.5)
            connection.execute("select ringlog.put_scope('scope:2', %s, '{1,2}')", [half])
        yield Web(running, f"http://127.0.0.1:{port}", "")


SPAN = "from=2026-05-01T12:00:00Z&to=2026-05-01T12:01:00Z&utc=1"


def test_waveforms_of_samples_are_drawn_one_by_one(page: Page) -> None:
    page.goto(chart_of("scope:1", "scope:2", span=SPAN) + cursors(a=BEGIN + timedelta(seconds=0.25)))
    first, second = (page.locator(".legend li").nth(index) for index in (0, 1))
    expect(first).to_contain_text("scope:1 A, 2026-05-01 12:00:00.000")
    expect(first).to_contain_text("3 points, -2.5 … 4 V")
    expect(second).to_contain_text("none so early")
    expect(second).to_contain_text("no reading")
    later, before = (page.get_by_role("button", name=f"Waveform {way}") for way in ("after", "before"))
    # over the 26 without a reading
    later.click()
    expect(first).to_contain_text("12:00:27.000")
    expect(first.locator(".value")).to_have_text("0 points")
    expect(second).to_contain_text("scope:2 A, 2026-05-01 12:00:00.500")
    later.click()
    expect(first).to_contain_text("12:00:28.000")
    expect(first).to_contain_text("100 points, 0 … 6 V")
    later.click()
    expect(page.get_by_role("status")).to_contain_text("no waveform after this")
    before.click()
    expect(first).to_contain_text("12:00:27.000")
    before.click()
    expect(first).to_contain_text("12:00:00.000")


def test_scalars_of_waveforms_of_samples(page: Page) -> None:
    page.goto(chart_of("scope:1", span=SPAN))
    page.get_by_label("Scalars of the waveforms").select_option("max")
    expect(page.locator(".legend").nth(1)).to_contain_text("scope:1.max")
    expect(page.locator(".legend .value").nth(1)).to_contain_text("6 V")
