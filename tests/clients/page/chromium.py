"""The page in Debian's chromium: positions of elements, addresses, drawings."""

import re
from datetime import datetime
from urllib.parse import quote

from playwright.sync_api import FloatRect, Locator, Page, expect

from waiting import wait_until

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


def box_of(element: Locator) -> FloatRect:
    """The position of an element in the window, after it has appeared."""
    expect(element).to_be_visible()
    box = element.bounding_box()
    assert box is not None
    return box


def settled(page: Page) -> None:
    """Waits until the charts are read and drawn. Until then they may be drawn anew, or in another size, which
    ends a drag."""
    expect(page.locator(".chart canvas").first).to_be_visible()
    # the server has answered which zone this is
    expect(page.locator("#zone [value=facility]")).to_have_text(re.compile(r"\("))
    expect(page.locator(".chart.busy")).to_have_count(0)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pointed(over: Locator, share: float, below: float, words: str = "") -> str:
    """Points at a share of a drawing's width, so far below its top, until the box at the pointer has these
    words (a regular expression); the text of the box. A chart that is drawn again forgets the pointer."""
    boxes: list[str] = []

    def found() -> str | None:
        box = box_of(over)
        x, y = box["x"] + box["width"] * share, box["y"] + below
        over.page.mouse.move(x - 1, y)
        over.page.mouse.move(x, y)
        boxes[:] = over.locator(".pointer").all_text_contents()
        return next((text for text in boxes if re.search(words, text, re.DOTALL)), None)

    text = wait_until(found, lambda: boxes)
    assert text is not None
    return text


def picture(page: Page) -> str:
    """The first chart's canvas, as the address of its picture."""
    settled(page)
    return str(page.locator(".chart canvas").evaluate("canvas => canvas.toDataURL()"))


def colours(page: Page) -> int:
    """The number of colours on the first chart's canvas: more than a few if something is drawn."""
    settled(page)
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
