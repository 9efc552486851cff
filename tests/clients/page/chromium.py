"""The page in Debian's chromium: positions of elements, addresses, drawings."""

from datetime import datetime
from urllib.parse import quote

from playwright.sync_api import FloatRect, Locator, Page, expect

CHROMIUM = "/usr/bin/chromium"
# root cannot use its sandbox; it must not contact Google's hosts
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


def chart_of(*signals: str, mode: str = "trend", span: str = SPAN) -> str:
    """An address that shows these signals in one chart over the known rows, or another span."""
    parts = ",".join(quote(part, safe="") for part in (mode, *signals))
    return f"/#c={quote(parts, safe='')}&{span}"


def cursors(**places: datetime) -> str:
    """The part of an address that sets the cursors `a` and `b`."""
    return "".join(f"&{name}={at.timestamp():.6f}" for name, at in places.items())


def cells(page: Page) -> list[list[str]]:
    """The rows of the table at the cursors."""
    rows = page.locator(".readout tbody tr").all()
    return [line.locator("th, td").all_inner_texts() for line in rows]


def place(element: Locator) -> FloatRect:
    """The position of an element in the window, after it has appeared."""
    expect(element).to_be_visible()
    box = element.bounding_box()
    assert box is not None
    return box


def colours(page: Page) -> int:
    """The number of colours on the first chart's canvas: more than a few if something is drawn."""
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
