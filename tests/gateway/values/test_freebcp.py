"""Bulk copy by freebcp, with files of characters."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from case_tables import cases

from tds_clients import Admin, Clients
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("functions")

VERSIONS = ("5.0", "7.1", "7.4")


def freebcp(clients: Clients, version: str, *words: str | Path) -> str:
    login = clients.server.writer
    done = subprocess.run(
        ["freebcp", *words, "-T", "4000000", "-S", version, "-U", login.user, "-P", login.password],
        env={"FREETDSCONF": str(clients.configuration), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", cases(__file__, "case"), ids=lambda case: case["name"])
def test_files(clients: Clients, admin: Admin, tmp_path: Path, case: dict[str, Any]) -> None:
    (tmp_path / "rows").write_text(case["rows"] * case.get("times", 1))
    for version in case.get("versions", VERSIONS):
        admin.execute(
            f"create table gateway_test.filed ({case['columns']});"
            " grant select, insert on gateway_test.filed to writer"
        )
        try:
            words = ["gateway_test..filed", "in", tmp_path / "rows", "-c", "-t|", *case.get("words", ())]
            start = time.monotonic()
            printed = freebcp(clients, version, *words)
            assert time.monotonic() - start < PATIENCE
            for part in (*case["says"], case.get("at5" if version == "5.0" else "at7", "")):
                assert part in printed, printed
            found = admin.execute(case["query"].encode()).fetchall()
            assert [list(map(str, row)) for row in found] == case["stored"]
        finally:
            admin.execute("drop table gateway_test.filed")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_out_and_in(clients: Clients, admin: Admin, version: str, tmp_path: Path) -> None:
    """The rows of a table of every type, including long texts, are exported and imported by freebcp. FreeTDS
    has only milliseconds of times.
    """
    admin.execute(
        "create table gateway_test.original as select * from gateway_test.types; "
        "alter table gateway_test.original drop a_bytea, add long_text text, add long_varchar varchar(2000), "
        "add last_text text; "
        "update gateway_test.original set long_text = repeat('long', 3000), "
        "  long_varchar = repeat('x', 1000), a_timestamp = date_trunc('milliseconds', a_timestamp), "
        "  a_timestamptz = date_trunc('milliseconds', a_timestamptz) where a_bit; "
        "insert into gateway_test.original (an_int, last_text) select n, repeat('y', n) "
        "  from generate_series(1, 700, 100) n; "
        "create table gateway_test.again as select * from gateway_test.original with no data; "
        "grant select, insert on gateway_test.original, gateway_test.again to writer"
    )
    try:
        out = freebcp(clients, version, "gateway_test..original", "out", tmp_path / "rows", "-c")
        assert "9 rows copied" in out, out
        into = freebcp(clients, version, "gateway_test..again", "in", tmp_path / "rows", "-c")
        assert "9 rows copied" in into, into
        differing = admin.execute(
            "select * from gateway_test.original except select * from gateway_test.again"
        ).fetchall()
        assert differing == []
    finally:
        admin.execute("drop table gateway_test.original, gateway_test.again")


def test_a_table_of_too_many_columns_at_5(clients: Clients, admin: Admin, tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} integer" for n in range(251))
    admin.execute(f"create table gateway_test.wide ({columns}); grant all on gateway_test.wide to writer")
    try:
        (tmp_path / "rows").write_text("|".join("1" for _ in range(251)) + "\n")
        words = ["gateway_test..wide", "in", tmp_path / "rows", "-c", "-t|"]
        assert "at most 250 columns" in freebcp(clients, "5.0", *words)
        assert "1 rows copied" in freebcp(clients, "7.4", *words)
    finally:
        admin.execute("drop table gateway_test.wide")
