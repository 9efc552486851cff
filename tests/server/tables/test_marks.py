"""Marks: notes of people, over procedures, HTTP and the command, with the history of each."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import httpx
import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg import errors
from webs import Web

from ringlog.schema.access.rights import Held
from ringlog.server.logins import Right, add_login
from servers import Login, free_port, ringlog, serving

FACILITY = Path(__file__).with_name("captures.toml")
OPERATOR = Login("operator", "mark-Ω-6")
RECORDER = Login("mark_recorder", "mark-Ω-7")
ONE_TABLE = Login("vac_only", "mark-Ω-8")
AT = datetime(2026, 3, 2, 12, 0, 0, 250_000, tzinfo=UTC)
HOUR = {"from": "2026-03-02T11:30Z", "to": "2026-03-02T12:30Z"}


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[Web]:
    """A server with HTTP, and the logins operator, who reads and writes marks, mark_recorder and vac_only."""
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}")
    with serving(temporary_directory / "marks", *options, facility=FACILITY) as running:
        add_login(running.dsn, OPERATOR.user, [Right.READER, Right.RECORDER], OPERATOR.password)
        add_login(running.dsn, RECORDER.user, [Right.RECORDER], RECORDER.password)
        add_login(
            running.dsn, ONE_TABLE.user, [Right.READER], ONE_TABLE.password, tables=Held(tables=("vac",))
        )
        yield Web(running, f"http://127.0.0.1:{port}", "")


def post(own: Web, content: Any, path: str = "marks", login: Login = OPERATOR) -> httpx.Response:
    with own.client(login) as client:
        return client.post(f"/api/v1/{path}", json=content)


def listed(own: Web, login: Login = OPERATOR, **parameters: Any) -> list[dict[str, Any]]:
    with own.client(login) as client:
        answer = client.get("/api/v1/marks", params=HOUR | parameters)
        assert answer.status_code == 200, answer.text
        return list(answer.json())


def test_added_corrected_and_withdrawn(own: Web) -> None:
    """Each version stays, with its author."""
    given = {"time": AT.isoformat(), "text": "klystron 4 tripped", "signals": ["vac/pressure"]}
    number = post(own, given).json()["mark"]
    (mark,) = [each for each in listed(own) if each["mark"] == number]
    assert {name: mark[name] for name in ("text", "signals", "until", "version", "login")} == {
        "text": "klystron 4 tripped",
        "signals": ["vac/pressure"],
        "until": None,
        "version": 1,
        "login": "operator",
    }
    assert datetime.fromisoformat(mark["time"]) == AT
    until = AT + timedelta(minutes=5)
    corrected = {"text": "klystron 3 tripped", "until": until.isoformat()}
    assert post(own, corrected, f"marks/{number}", RECORDER).json() == {"mark": number}
    (mark,) = [each for each in listed(own) if each["mark"] == number]
    assert (mark["text"], mark["version"], mark["login"]) == ("klystron 3 tripped", 2, "mark_recorder")
    assert mark["signals"] == ["vac/pressure"]
    assert datetime.fromisoformat(mark["until"]) == until
    assert post(own, {"withdraw": True, "text": "a test"}, f"marks/{number}").status_code == 200
    assert number not in [each["mark"] for each in listed(own)]
    with own.client(OPERATOR) as client:
        history = client.get(f"/api/v1/marks/{number}").json()
    assert [(each["version"], each["text"], each["withdrawn"], each["login"]) for each in history] == [
        (1, "klystron 4 tripped", False, "operator"),
        (2, "klystron 3 tripped", False, "mark_recorder"),
        (3, "a test", True, "operator"),
    ]


@pytest.fixture(scope="module")
def marks(own: Web) -> dict[str, int]:
    """Numbers of marks over TDS: of all signals, of vac for ten minutes, of mag."""
    with own.server.connect(RECORDER.user, RECORDER.password) as tds:
        cursor = tds.cursor()
        found = {}
        for name, more in (
            ("all", ""),
            ("vac", ", @until = '2026-03-02 12:10', @names = 'vac/pressure'"),
            ("mag", ", @names = 'mag_1/current'"),
        ):
            cursor.execute(
                f"declare @n int; exec add_mark @time = '2026-03-02 12:00', @text = '{name}'{more},"
                " @mark = @n output; select @n"
            )
            found[name] = cursor.fetchall()[0][0]
    return found


def test_of_time_and_signals(own: Web, marks: dict[str, int]) -> None:
    def found(login: Login = OPERATOR, **parameters: Any) -> set[str]:
        return {each["text"] for each in listed(own, login, **parameters)}

    assert found() == {"all", "vac", "mag"}
    assert found(signal="vac/pressure") == {"all", "vac"}
    assert found(signal=["mag_1/current", "mag_2/current"]) == {"all", "mag"}
    assert found(**{"from": "2026-03-02T12:05Z"}) == {"vac"}
    assert found(to="2026-03-02T12:00Z") == set()
    # the mark of a table that the login may not read
    assert found(ONE_TABLE) == {"all", "vac"}
    with psycopg.connect(own.server.dsn_of(ONE_TABLE)) as session:
        assert session.execute("select count(*) from ringlog.mark where text = 'mag'").fetchone() == (0,)


REFUSED = [
    ({"time": "now", "text": " "}, 400, "a mark must have a text"),
    ({"time": "2026-03-02", "until": "2026-03-01", "text": "x"}, 400, "must be finite times in this order"),
    ({"text": "x"}, 400, "must be finite times in this order"),
    ({"time": "now", "text": "x", "signals": ["none"]}, 404, "there is no signal 'none'"),
    ({"time": "now", "text": 3}, 400, "text must be a text"),
    ({"time": "noon", "text": "x"}, 400, "is not a time"),
    ({"time": "now", "txt": "x"}, 400, "a mark has only time, until, text, signals"),
]


@pytest.mark.parametrize(("content", "status", "message"), REFUSED)
def test_refused(own: Web, content: dict[str, Any], status: int, message: str) -> None:
    there = own.server.sql("select count(*) from ringlog.mark")
    answer = post(own, content)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert own.server.sql("select count(*) from ringlog.mark") == there


def test_not_anonymous(own: Web, marks: dict[str, int]) -> None:
    """Only recorders write; another site's form, or a request without a login, does not."""
    content = {"time": "now", "text": "x"}
    assert post(own, content, login=own.server.reader).status_code == 403
    assert post(own, {"withdraw": True}, "marks/99999").status_code == 404
    assert httpx.post(f"{own.url}/api/v1/marks", json=content).status_code == 401
    with own.client(OPERATOR) as client:
        assert client.post("/api/v1/marks", content=json.dumps(content)).status_code == 415
    with psycopg.connect(own.server.dsn_of(RECORDER), autocommit=True) as session:
        for statement in ("delete from ringlog.mark", "update ringlog.mark set text = ''"):
            with pytest.raises(errors.InsufficientPrivilege):
                session.execute(statement)


def test_in_exports(own: Web, marks: dict[str, int], tmp_path: Path) -> None:
    """CSV has them as comments, Parquet in its notes, HDF5 in a group; a new mark changes an answer that was
    kept."""
    asked = HOUR | {"signal": "vac/pressure", "comments": "1"}
    with own.client(OPERATOR) as client:
        text = client.get("/api/v1/data", params=asked | {"format": "csv"}).text
    assert "# mark, 2026-03-02T12:00:00+00:00, mark_recorder: all\n" in text
    assert "# mark, 2026-03-02T12:00:00+00:00 to 2026-03-02T12:10:00+00:00, mark_recorder: vac\n" in text
    assert ": mag" not in text
    file = tmp_path / "vac.parquet"
    url = own.url.replace("//", f"//{OPERATOR.user}@")
    version = own.server.sql("select version from ringlog.registry_state")
    words = ("--server", url, "--at", "2026-03-02T13:01Z", "--signal", "vac/pressure")
    done = ringlog("mark", "add", "pump replaced", *words, RINGLOG_PASSWORD=OPERATOR.password)
    assert done.returncode == 0, done.stderr
    assert own.server.sql("select version from ringlog.registry_state") != version
    times = ("--from", HOUR["from"], "--to", "2026-03-02T14:00Z")
    done = ringlog(
        "export", "vac/pressure", *times, "-o", file, "--server", url, RINGLOG_PASSWORD=OPERATOR.password
    )
    assert done.returncode == 0, done.stderr
    notes = json.loads(pq.read_schema(file).metadata[b"ringlog"])
    assert [each["text"] for each in notes["marks"]] == ["all", "vac", "pump replaced"]
    for wide in ([], ["--wide", "last"]):
        file = tmp_path / "vac.h5"
        words = ("export", "vac/pressure", *times, "-o", file, *wide, "--server", url)
        done = ringlog(*words, RINGLOG_PASSWORD=OPERATOR.password)
        assert done.returncode == 0, done.stderr
        with h5py.File(file) as made:
            kept = (made if wide else made["vac|pressure"])["marks"]
            assert kept["time"][()].tolist() == [
                datetime(2026, 3, 2, *at, tzinfo=UTC).timestamp() for at in ((12,), (12,), (13, 1))
            ]
            assert kept["until"][1] == datetime(2026, 3, 2, 12, 10, tzinfo=UTC).timestamp()
            assert np.isnan(kept["until"][[0, 2]]).all()
            texts = {name: kept[name].asstr()[()].tolist() for name in ("text", "login", "signals")}
        assert texts == {
            "text": ["all", "vac", "pump replaced"],
            "login": ["mark_recorder", "mark_recorder", "operator"],
            "signals": ["", "vac/pressure", "vac/pressure"],
        }


def test_command(own: Web, marks: dict[str, int]) -> None:
    url = own.url.replace("//", f"//{OPERATOR.user}@")

    def run(*words: str) -> str:
        done = ringlog("mark", *words, "--server", url, RINGLOG_PASSWORD=OPERATOR.password)
        assert done.returncode == 0, done.stderr
        return done.stdout

    number = run("add", "shift change", "--at", "2026-04-01T08:00Z", "--until", "2026-04-01T08:10Z").split()[
        1
    ]
    run("correct", number, "--text", "shift change, crew B")
    shown = run("list", "--from", "2026-04-01", "--to", "2026-04-02")
    assert shown == (
        f"{number}  2026-04-01T08:00:00+00:00 to 2026-04-01T08:10:00+00:00  operator  shift change, crew B\n"
    )
    run("withdraw", number, "--reason", "wrong day")
    assert run("list", "--from", "2026-04-01", "--to", "2026-04-02") == ""
    lines = run("history", number).splitlines()
    assert [line.split("  ")[3:] for line in lines] == [
        ["shift change"],
        ["shift change, crew B"],
        ["withdrawn: wrong day"],
    ]
