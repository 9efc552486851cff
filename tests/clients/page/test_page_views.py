"""Views on the page: kept by name, found, opened by a link, removed; one signal against another."""

import re
from collections.abc import Iterator

import pytest
from chromium import chart_of, colours
from playwright.sync_api import Browser, Page, expect
from webs import Web

from ringlog.server.logins import Right, add_login
from servers import Login
from waiting import wait_until

SPAN = "from=2026-06-07T12:00:00Z&to=2026-06-07T12:10:00Z&utc=1"
OPERATOR = Login("page_keeper", "view-Ω-9")


@pytest.fixture(scope="module")
def ramp(web: Web) -> Iterator[None]:
    """Ten minutes of two signals, the second twice the first; a login that may keep views."""
    web.server.sql(
        "insert into log.every_type (seq_no, time, a_real, a_double)"
        " select 1, timestamptz '2026-06-07 12:00Z' + step * interval '1 s', step, 2 * step"
        " from generate_series(0, 599) as step"
    )
    add_login(web.server.dsn, OPERATOR.user, [Right.READER, Right.RECORDER], OPERATOR.password)
    yield
    web.server.sql("delete from log.every_type where time >= '2026-06-07' and time < '2026-06-08'")


@pytest.fixture
def keeper(browser: Browser, web: Web, ramp: None) -> Iterator[Page]:
    """A window of this login."""
    shown = {"username": OPERATOR.user, "password": OPERATOR.password}
    size = {"width": 1400, "height": 900}
    page = browser.new_page(viewport=size, base_url=web.url, http_credentials=shown | {"send": "always"})
    yield page
    page.close()


def test_kept_found_opened_and_removed(keeper: Page, web: Web) -> None:
    page = keeper
    page.goto(chart_of("every_type/a_real", span=SPAN))
    expect(page.locator(".legend")).to_contain_text("every_type/a_real")
    form = page.locator("#keep")

    def send(button: str) -> None:
        page.get_by_role("button", name="Keep", exact=True).click()
        form.get_by_label("Name").fill("Ramp")
        form.get_by_label("Description").fill("of the magnets")
        form.get_by_role("button", name=button).click()

    # a confirmation is shown for four seconds
    page.evaluate(
        """() => {
            const line = document.getElementById("message");
            window.confirmed = [];
            new MutationObserver(() => confirmed.push(line.textContent)).observe(line, { childList: true });
        }"""
    )
    send("Save")
    expect(form).to_be_hidden()
    question = wait_until(lambda: page.evaluate("confirmed.find(Boolean)"))
    assert f"{web.url}/#saved=Ramp opens it" in question
    kept = "select name, description, owner, signals from ringlog.saved_view"
    assert web.server.sql(kept) == [("Ramp", "of the magnets", OPERATOR.user, ["every_type/a_real"])]
    # in the list
    page.goto("/")
    page.locator("#views summary").click()
    item = page.locator("#views").get_by_role("button", name="Ramp")
    expect(item).to_contain_text("of the magnets")
    item.click()
    expect(page.locator(".chart h2")).to_have_text("every_type/a_real")
    expect(page).to_have_url(re.compile("from=2026-06-07T12"))
    # by the search
    page.goto("about:blank")
    page.goto("/")
    reads: list[str] = []
    page.on("request", lambda request: reads.append(request.url) if "/api/v1/views" in request.url else None)
    found = page.locator("#found li").first
    for words in ("ramp", "magnets", "magnets ramp"):
        page.get_by_role("combobox", name="Find signals").fill("of nothing")
        expect(page.locator("#found li")).to_have_count(0)
        page.get_by_role("combobox", name="Find signals").fill(words)
        expect(found).to_contain_text(f"view of {OPERATOR.user}")
    assert len(reads) == 1
    expect(found).to_contain_text(f"view of {OPERATOR.user}")
    found.click()
    expect(page.locator(".chart h2")).to_have_text("every_type/a_real")
    # by the link
    page.goto("about:blank")
    page.goto("/#saved=Ramp")
    expect(page.locator(".chart h2")).to_have_text("every_type/a_real")
    send("Remove")
    expect(form).to_be_hidden()
    assert web.server.sql(kept) == []
    page.goto("about:blank")
    page.goto("/#saved=Ramp")
    expect(page.locator("#message")).to_contain_text("There is no view Ramp that you may read.")


def test_one_against_another(keeper: Page) -> None:
    page = keeper
    with page.expect_request(re.compile("wide=last&step=300ms")):
        page.goto(chart_of("every_type/a_real", "every_type/a_double", mode="pairs", span=SPAN))
    legend = page.locator(".legend .value")
    expect(legend.nth(0)).to_have_text(re.compile(r"^2000 pairs, 0 … 599"))
    expect(legend.nth(1)).to_have_text(re.compile(r"^2000 pairs, 0 … 1198"))
    # from blue to red
    assert colours(page) > 100
    page.goto("about:blank")
    page.goto(chart_of("every_type/a_real", mode="pairs", span=SPAN))
    expect(page.locator("#message")).to_contain_text("needs two signals")
