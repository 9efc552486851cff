"""Views: states of the page that logins keep by name, over procedures and HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import errors
from webs import Web

from ringlog.schema.access.rights import Held
from ringlog.server.logins import Right, add_login
from servers import Login, free_port, serving

FACILITY = Path(__file__).with_name("captures.toml")
ANNA, BELA = Login("anna", "view-Ω-1"), Login("bela", "view-Ω-2")
ONE_TABLE = Login("vac_viewer", "view-Ω-3")
STATE = "c=trend%2Cvac%252Fpressure&last=3600"


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[Web]:
    """A server with HTTP; the logins anna and bela keep views, and vac_viewer reads one table."""
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}")
    with serving(temporary_directory / "views", *options, facility=FACILITY) as running:
        for login in (ANNA, BELA):
            add_login(running.dsn, login.user, [Right.READER, Right.RECORDER], login.password)
        only = Held(tables=("vac",))
        add_login(running.dsn, ONE_TABLE.user, [Right.READER], ONE_TABLE.password, tables=only)
        yield Web(running, f"http://127.0.0.1:{port}", "")


def post(own: Web, login: Login | None, **content: Any) -> httpx.Response:
    with own.client(login) as client:
        return client.post("/api/v1/views", json=content)


def listed(own: Web, login: Login) -> dict[str, dict[str, Any]]:
    with own.client(login) as client:
        return {view["name"]: view for view in client.get("/api/v1/views").json()}


def test_kept_replaced_and_removed(own: Web) -> None:
    assert post(own, ANNA, name="Vacuum", state=STATE, description="of the ring").json() == {"name": "Vacuum"}
    view = listed(own, BELA)["Vacuum"]
    assert {name: view[name] for name in ("description", "owner", "state", "signals")} == {
        "description": "of the ring",
        "owner": "anna",
        "state": STATE,
        "signals": None,
    }
    refused = post(own, BELA, name="Vacuum", state="last=60")
    assert (refused.status_code, "another login" in refused.text) == (409, True)
    assert post(own, ANNA, name="Vacuum", state="last=60").status_code == 200
    assert (listed(own, BELA)["Vacuum"]["state"], listed(own, BELA)["Vacuum"]["description"]) == (
        "last=60",
        "",
    )
    assert post(own, BELA, name="Vacuum", remove=True).status_code == 404
    assert "Vacuum" in listed(own, BELA)
    assert post(own, ANNA, name="Vacuum", remove=True).status_code == 200
    assert "Vacuum" not in listed(own, ANNA)


def test_over_tds(own: Web) -> None:
    with own.server.connect(BELA.user, BELA.password) as tds:
        cursor = tds.cursor()
        cursor.execute("exec save_view @name = 'RF', @state = 'last=600', @description = 'stations'")
        cursor.execute("exec list_views @pattern = 'R%'")
        assert [row[:4] for row in cursor.fetchall()] == [("RF", "stations", "bela", "last=600")]
        cursor.execute("exec remove_view @name = 'RF'")
    assert "RF" not in listed(own, BELA)


def test_a_role_does_not_hide_who_kept_it(own: Web) -> None:
    with psycopg.connect(own.server.dsn_of(ANNA), autocommit=True) as session:
        session.execute("set role event_recorder")
        session.execute("select ringlog.save_view('By role', 'last=60')")
        session.execute("select ringlog.add_mark('2026-03-02 12:00Z', 'by role')")
    assert listed(own, BELA)["By role"]["owner"] == "anna"
    query = "select login from ringlog.mark where text = 'by role'"
    assert own.server.sql(query) == [("anna",)]


def test_who_may_read_no_signal_of_a_view_does_not_see_it(own: Web) -> None:
    for name, signals in (("of mag", ["mag_1/current"]), ("of both", ["mag_1/current", "vac/pressure"])):
        assert post(own, ANNA, name=name, state=STATE, signals=signals).status_code == 200
    assert {"of mag", "of both"} <= {*listed(own, BELA)}
    assert {*listed(own, ONE_TABLE)} & {"of mag", "of both"} == {"of both"}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"name": " ", "state": STATE}, 400),
        ({"name": "x"}, 400),
        ({"name": "x", "state": STATE, "signals": "vac/pressure"}, 400),
        ({"name": "x", "state": "a\0b"}, 400),
        ({"name": "x", "state": STATE, "remove": 3}, 400),
        ({"name": "x", "state": STATE, "colour": "red"}, 400),
        ({"name": "x", "state": "s" * 100_001}, 400),
    ],
)
def test_refused(own: Web, content: dict[str, Any], status: int) -> None:
    assert post(own, ANNA, **content).status_code == status
    assert "x" not in listed(own, ANNA)


def test_who_may_not_keep_one(own: Web) -> None:
    assert post(own, None, name="x", state=STATE).status_code == 401
    assert post(own, own.server.reader, name="x", state=STATE).status_code == 403
    with (
        psycopg.connect(own.server.dsn_of(own.server.reader)) as session,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        session.execute("delete from ringlog.saved_view")
