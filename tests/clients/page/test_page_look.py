"""The look of a chart, and the way back to an earlier state. In a real browser."""

import re
from datetime import timedelta
from itertools import combinations
from math import dist
from urllib.parse import quote

import pytest
from chromium import SPAN, box_of, cells, chart_of, cursors, picture, pointed, settled
from known_rows import HELD, ROWS, row, time_of
from playwright.sync_api import Browser, Locator, Page, Route, expect

from waiting import wait_until


def parts_of(*parts: str) -> str:
    """A chart of an address, from parts as the page writes them."""
    return f"c={quote(','.join(parts), safe='')}"


REAL, INT, DOUBLE = (quote(f"every_type/{name}", safe="") for name in ("a_real", "an_int", "a_double"))


def chart(page: Page, *parts: str, span: str = SPAN) -> Locator:
    """Opens a chart of these parts; its drawing."""
    page.goto(f"/#{parts_of(*parts)}&{span}")
    settled(page)
    return page.locator(".u-over")


def drag(page: Page, box: Locator, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags from one place of an element to another, in fractions of its width and height."""
    found = box_of(box)
    for share, work in ((begin, page.mouse.move), (end, None)):
        x, y = found["x"] + found["width"] * share[0], found["y"] + found["height"] * share[1]
        if work is not None:
            work(x, y)
            page.mouse.down()
        else:
            page.mouse.move(x, y, steps=6)
            page.mouse.up()


def test_the_pointer_shows_the_time_and_the_values_there(page: Page) -> None:
    over = chart(page, "trend", REAL, INT)
    # the four minutes begin 20 s before the rows, which are a second apart
    value = f"every_type/a_real{row(100)['a_real']}"
    pointed(over, (20 + 100.1) / 240, 50, rf"2026-01-01 00:00:00\.\d{{3}}.*{re.escape(value)}")
    box = box_of(over)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 100)
    expect(page.locator(".pointer")).to_have_count(0)


def test_values_are_zoomed_moved_and_freed(page: Page) -> None:
    over = chart(page, "trend", REAL)
    axis = page.locator(".u-axis").nth(1)

    def steps(made: int) -> None:
        """Waits for the address after this many changes; a change that follows at once would be the same
        step.
        """
        page.wait_for_function("made => history.state?.depth === made", arg=made)

    drag(page, over, (0.5, 0.25), (0.52, 0.75))
    steps(1)
    expect(page).to_have_url(re.compile(r"min%3D.*max%3D"))
    drag(page, axis, (0.5, 0.5), (0.5, 0.75))
    steps(2)
    found = box_of(axis)
    page.mouse.move(found["x"] + found["width"] / 2, found["y"] + found["height"] / 2)
    page.mouse.wheel(0, -100)
    steps(3)
    axis.dblclick()
    steps(4)
    expect(page).not_to_have_url(re.compile("min"))
    # the browser goes back through each of these
    page.go_back()
    expect(page).to_have_url(re.compile("min"))
    for _ in range(3):
        page.go_back()
    expect(page).not_to_have_url(re.compile("min"))
    expect(page.get_by_role("button", name="Back", exact=True)).to_be_disabled()


def test_an_axis_by_hand(page: Page) -> None:
    chart(page, "trend", REAL, DOUBLE)
    before = picture(page)
    page.get_by_role("button", name="Look of every_type/a_double").click()
    look = page.locator("#look")
    look.get_by_label("Axis of its own").check()
    look.get_by_label("Greatest value").fill("40")
    look.get_by_label("Greatest value").press("Tab")
    look.get_by_label("Upside down").check()
    look.get_by_label("Side of the axis").select_option("right")
    look.get_by_role("button", name="Close").click()
    expect(look).to_be_hidden()
    expect(page).to_have_url(re.compile("own.*max%3D40%3Binvert%3Bside%3Dright"))
    expect(page.locator(".u-axis")).to_have_count(3)
    assert picture(page) != before


def test_whole_numbers_are_held_until_the_next(page: Page) -> None:
    shown = {}
    for line in ("", ";line=steps", ";line=straight", ";line=points"):
        page.goto("about:blank")
        chart(page, "trend", INT + line, span="from=2025-12-31T23:59:00Z&to=2025-12-31T23:59:06Z&utc=1")
        expect(page.locator(".legend")).to_contain_text("every_type/an_int")
        shown[line] = picture(page)
    assert shown[""] == shown[";line=steps"]
    assert len(set(shown.values())) == 3


def test_a_held_value_is_drawn_as_steps(page: Page, held: None) -> None:
    """The line is not interrupted where rows are missing, and the pointer shows the value that holds."""
    begin, end = (time.isoformat()[:19] + "Z" for time in (HELD[0][0], HELD[-1][0] + timedelta(seconds=2)))
    span, name = f"from={begin}&to={end}&utc=1", quote("bpm/x_set", safe="")
    shown = {}
    for line in ("", ";line=steps", ";line=straight"):
        page.goto("about:blank")
        over = chart(page, "trend", name + line, span=span)
        expect(page.locator(".legend")).to_contain_text("bpm/x_set")
        shown[line] = picture(page)
    assert shown[""] == shown[";line=steps"] != shown[";line=straight"]
    # 2.9 of 9 seconds
    pointed(over, 2.9 / 9, 50, r"bpm/x_set1\.5 mm$")


def test_the_legend_hides_and_shows(page: Page) -> None:
    chart(page, "trend", REAL, DOUBLE, INT)
    real, double, whole = (
        page.locator(".legend .toggle", has_text=name) for name in ("a_real", "a_double", "an_int")
    )
    real.click()
    expect(real).to_have_attribute("aria-pressed", "false")
    expect(page).to_have_url(re.compile("hide"))
    real.dblclick()
    for each, shown in ((real, "true"), (double, "false"), (whole, "false")):
        expect(each).to_have_attribute("aria-pressed", shown)
    real.dblclick()
    for each in (real, double, whole):
        expect(each).to_have_attribute("aria-pressed", "true")


def test_the_legend_has_statistics(page: Page) -> None:
    chart(page, "trend", REAL)
    page.get_by_role("button", name="Statistics").click()
    values = [float(str(value)) for number in range(ROWS) if (value := row(number)["a_real"]) is not None]
    mean = f"{sum(values) / len(values):.6g}"
    words = f"least {min(values):g} · mean {mean} · greatest {max(values):g} · last {values[-1]:g}"
    expect(page.locator(".legend .stats")).to_have_text(f"{words} · {len(values)} samples")


def test_a_chosen_colour_remains_with_a_comparison(page: Page) -> None:
    chart(page, "trend", f"{REAL};colour={quote('#aa5500', safe='')}", DOUBLE)
    swatches = page.locator(".legend .swatch")

    def shown() -> list[str]:
        return [each.evaluate("each => getComputedStyle(each).backgroundColor") for each in swatches.all()]

    before = shown()
    assert before[0] == "rgb(170, 85, 0)"
    page.get_by_label("View of the chart").select_option("compare-86400")
    expect(swatches).to_have_count(4)
    assert shown() == before * 2


@pytest.mark.parametrize("look", ["light", "dark"])
def test_ten_signals_have_distinguishable_colours(page: Page, look: str) -> None:
    """Each two differ by more than 40 in CIE 1976 L*a*b*; differences from about 2 on can be seen at all."""
    page.goto("/")
    page.evaluate("look => { document.documentElement.dataset.theme = look; }", look)
    ten = page.evaluate(
        """async () => {
            const { colourOf } = await import("/page/charts/axes.js");
            return [...Array(10).keys()].map(colourOf);
        }"""
    )
    assert min(dist(lab(one), lab(other)) for one, other in combinations(ten, 2)) > 40


def lab(colour: str) -> tuple[float, float, float]:
    """L*, a*, b* of a colour as #rrggbb, by IEC 61966-2-1 and CIE 15 (white D65)."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    weights = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.95047, 1.0, 1.08883)
    shares = [sum(w * part for w, part in zip(weight, linear, strict=True)) for weight in weights]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (share / whole for share, whole in zip(shares, white, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_times_in_the_facilitys_zone_or_another(page: Page) -> None:
    chart(page, "trend", REAL)
    zone, begin = page.get_by_label("Time zone", exact=True), page.get_by_label("From", exact=True)
    expect(begin).to_have_value("2025-12-31 23:58:00")
    expect(zone.locator("[value=facility]")).to_have_text("Facility (Asia/Tokyo)")
    zone.select_option("facility")
    expect(begin).to_have_value("2026-01-01 08:58:00")
    zone.select_option("other")
    entry = page.get_by_label("Name of the time zone")
    entry.fill("America/St_Johns")
    entry.press("Tab")
    expect(begin).to_have_value("2025-12-31 20:28:00")
    expect(page).to_have_url(re.compile("zone=America"))
    # inputs are in the zone shown, also across a change of clocks; Back keeps the zone
    begin.fill("2025-10-31 20:28")
    begin.press("Tab")
    expect(page).to_have_url(re.compile("from=2025-10-31T22%3A58%3A00"))
    page.go_back()
    expect(begin).to_have_value("2025-12-31 20:28:00")
    zone.select_option("other")
    entry.fill("Mars/Base")
    entry.press("Tab")
    expect(page.locator("#message")).to_have_text(
        "There is no time zone Mars/Base: write it as Europe/Berlin."
    )


def test_one_zoom_of_several_charts_is_one_step(page: Page) -> None:
    page.goto(f"/#{parts_of('trend', REAL)}&{parts_of('trend', DOUBLE)}&{parts_of('trend', INT)}&{SPAN}")
    expect(page.locator(".chart canvas")).to_have_count(3)
    settled(page)
    drag(page, page.locator(".u-over").first, (0.25, 0.5), (0.75, 0.52))
    expect(page).not_to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))
    page.go_forward()
    expect(page).not_to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page).to_have_url(re.compile(r"from=2025-12-31T23%3A58%3A00"))
    expect(page.locator(".chart")).to_have_count(3)


def test_charts_above_each_other_have_one_axis_of_time(page: Page) -> None:
    """Axes at both sides, one axis with a label, states alone; also when a chart is closed."""
    own = [f"{REAL};own", f"{DOUBLE};own", f"{INT};own"]
    others = [
        parts_of("trend", quote("sr_vac_ccg_1/pressure", safe="")),
        parts_of("trend", quote("every_type/a_bit", safe="")),
    ]
    page.goto(f"/#{'&'.join([parts_of('trend', *own), *others])}&{SPAN}")
    over = page.locator(".u-over")
    expect(over).to_have_count(3)

    def axes() -> set[tuple[float, float]]:
        return {(box["x"], box["width"]) for box in map(box_of, over.all())}

    wait_until(lambda: len(axes()) == 1)
    (narrow,) = axes()
    page.get_by_role("button", name="Close this chart").first.click()
    expect(over).to_have_count(2)
    wait_until(lambda: len(axes()) == 1)
    (wide,) = axes()
    assert wide[1] > narrow[1]


def test_times_are_entered_as_they_are_shown(page: Page) -> None:
    chart(page, "trend", REAL)
    begin, end = (page.get_by_label(name, exact=True) for name in ("From", "To"))
    expect(end).to_have_value("2026-01-01 00:02:00")
    assert end.evaluate("entry => entry.scrollWidth <= entry.clientWidth"), "it is cut off"
    for wrong in ("2025-02-29 12:00:00", "12/31/2025 11:58 PM", "2025-12-31 24:30", ""):
        begin.fill(wrong)
        begin.press("Tab")
        expect(page.locator("#message")).to_have_text("Write a time as 2026-11-28 14:05:00.")
        begin.fill("2025-12-31 23:59")
        begin.press("Tab")
        expect(page).to_have_url(re.compile("from=2025-12-31T23%3A59%3A00"))
        expect(page.locator("#message")).to_be_empty()


def test_a_link_keeps_all_signals_of_a_chart(page: Page) -> None:
    names = [f"sr_mag_ps_b_{number}/current_adc" for number in range(1, 31)]
    page.goto(chart_of(*names))
    expect(page.locator(".legend li")).to_have_count(30)
    page.get_by_role("button", name="Earlier").click()
    page.reload()
    expect(page.locator(".legend li")).to_have_count(30)
    too_many = [f"sr_mag_ps_b_{number}/current_adc" for number in range(1, 201)]
    page.goto("/#" + "&".join(chart_of(name).split("&")[0].removeprefix("/#") for name in too_many[:26]))
    expect(page.locator("#message")).to_contain_text("2 signals more than the page shows: sr_mag_ps_b_25/")


def test_loss_and_return_of_a_server_are_reported(browser: Browser, web) -> None:
    """A separate page, because failed requests appear in the browser's console."""
    page = browser.new_page(base_url=web.url)

    def gone(request: Route) -> None:
        request.abort()

    page.route("**/api/v1/live*", gone)
    page.goto(f"/#{parts_of('trend', REAL)}&last=600")
    expect(page.locator("#message")).to_contain_text("The server does not answer")
    page.unroute("**/api/v1/live*")
    expect(page.locator("#message")).to_be_empty()
    page.close()


def test_a_save_that_is_refused_says_why(browser: Browser, web) -> None:
    page = browser.new_page(base_url=web.url)
    page.route("**/api/v1/data*", lambda route: route.fulfill(status=413, json={"error": "too many rows"}))
    page.goto(chart_of("every_type/a_real"))
    expect(page.locator(".chart canvas")).to_be_visible()
    page.get_by_label("Save the data shown").select_option("csv")
    expect(page.locator("#message")).to_have_text("too many rows")
    page.close()


def test_status_is_not_empty_while_it_is_read(browser: Browser, web) -> None:
    page = browser.new_page(base_url=web.url)
    held: list[Route] = []
    page.route("**/api/v1/losses*", lambda route: held.append(route))
    page.goto("/#view=status")
    expect(page.locator("#tables tbody tr")).to_have_count(5)
    expect(page.locator("#losses tbody")).to_have_text("Reading…")
    expect(page.locator("#tiles")).to_contain_text("tables are current")
    for route in held:
        route.abort()
    page.close()


def test_suggested_words_find_signals(page: Page) -> None:
    page.goto("/")
    words = page.locator("#examples")
    expect(words).to_contain_text(", as ")
    for word in words.inner_text().removeprefix(", as ").split(" or "):
        page.get_by_role("combobox", name="Find signals").fill(word)
        expect(page.locator("#found li").first).to_contain_text(word)


@pytest.mark.parametrize("view", [parts_of("trend", REAL), "view=status"])
def test_the_head_leaves_a_phone_its_screen(page: Page, view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/#{view}&{SPAN}")
    assert box_of(page.locator("body > header"))["height"] < 0.1 * 844
    if view != "view=status":
        page.get_by_role("button", name="More", exact=True).click()
        expect(page.get_by_label("From", exact=True)).to_be_visible()


def test_severities_have_their_names(page: Page) -> None:
    """A severity is a state, as a number or by its name; of several at once the worst is shown."""
    page.goto("/")
    shown = page.evaluate(
        """async () => {
            const { isState } = await import("/page/charts/series.js");
            const { stateText } = await import("/page/charts/states.js");
            const severity = { signal: "bpm/x.SEVR", type: "smallint" };
            const names = [0, 1, 2, 3, null].map((one) => stateText(one, severity));
            return [isState(severity), isState({ signal: "bpm/n", type: "smallint" }), ...names];
        }"""
    )
    assert shown == [True, False, "NO_ALARM", "MINOR", "MAJOR", "INVALID", "no reading"]


def test_a_state_has_the_name_of_its_time(page: Page) -> None:
    page.goto("/")
    shown = page.evaluate(
        """async () => {
            const { pieces, stateText } = await import("/page/charts/states.js");
            const valve = { type: "smallint", states: { 0: "shut" }, at: [10, 20, 30, 40], mean: [0, 0, 0, 0],
              was: [{ until: 15, states: null }, { until: 30, states: { 0: "closed" } }] };
            const named = ({ from, value }) => [from, stateText(value, valve, from)];
            return [...pieces(valve, { to: 50 }).map(named), stateText(0, valve)];
        }"""
    )
    assert shown == [[10, "0"], [20, "closed"], [30, "shut"], "shut"]


def test_states_and_limits_of_the_facility_file(page: Page) -> None:
    """Whole numbers with names are bars; a value between two levels of limits is a warning."""
    look = {
        "every_type/a_smallint": {"states": {"98": "standby", "97": "off"}},
        "every_type/a_double": {"limits": [None, 20], "alarm_limits": [None, 50]},
        "every_type/a_real": {"limits": [0, 10], "alarm_limits": [0, 20]},
    }

    def described(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        for signal in content["signals"]:
            signal |= look[signal["signal"]]
        route.fulfill(response=answer, json=content)

    page.route("**/api/v1/trend*", described)
    # to the last row with readings
    until = "from=2026-01-01T00:01:00Z&to=2026-01-01T00:01:38.5Z&utc=1"
    chart(page, "trend", *(quote(name, safe="") for name in look), span=until + cursors(a=time_of(198)))
    values = {name: page.locator(".legend li", has_text=name).locator(".value") for name in look}
    expect(values["every_type/a_smallint"]).to_have_text("standby")
    assert cells(page)[0] == ["every_type/a_smallint", "standby"]
    expect(values["every_type/a_double"]).to_have_class(re.compile("warn"))
    expect(values["every_type/a_real"]).to_have_class(re.compile("alarm"))
    seen = page.evaluate(
        """async () => {
            const { alarmOf, stateAt } = await import("/page/charts/series.js");
            const limited = { limits: [null, 5], alarm_limits: [-9, null] };
            const series = { states: { 1: "on" }, type: "int", mean: [1.5, 1], min: [1, 1], max: [2, 1] };
            const alarms = [-8, -10, 6].map((value) => alarmOf(limited, value));
            return [stateAt(series, 0), stateAt(series, 1), ...alarms];
        }"""
    )
    assert seen == ["changing", 1, "", "alarm", "warn"]


def test_the_tree_has_the_last_values(page: Page, web) -> None:
    def renamed(route: Route) -> None:
        """A state has another name now than at the time of the last value."""
        answer = route.fetch()
        content = answer.json()
        for signal in content:
            if signal["signal"] == "every_type/a_smallint":
                before = {"until": 4e12, "unit": "", "states": {"1": "then"}}
                signal |= {"value": 1, "states": {"1": "now"}, "was": [before]}
        route.fulfill(response=answer, json=content)

    page.route("**/api/v1/latest*", renamed)
    page.goto("/")
    page.get_by_text("Tables, with the last values").click()
    tree = page.locator("#tree")
    expect(tree.locator("ul > li > details")).to_have_count(5)
    tree.locator("summary", has_text="every_type").click()
    line = tree.get_by_role("button", name="a_varchar")
    expect(line.locator(".value")).to_have_text("no reading")
    expect(tree.get_by_role("button", name="a_smallint").locator(".value")).to_have_text("then")
    tree.locator("summary", has_text="bpm").click()
    never = tree.get_by_role("button", name="x.SEVR")
    expect(never.locator(".age")).to_have_text("never")
    line.click()
    expect(page.locator(".chart .legend")).to_contain_text("every_type/a_varchar")
