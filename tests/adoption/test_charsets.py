"""Texts of clients that declare a character set arrive unchanged at the new server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import RunningServer, ringlog, run, serving

pytestmark = pytest.mark.long

SITE = """
create role notes nologin;
create schema notes authorization notes;
grant usage on schema notes to public;
create role clerk login password 'clerk-1' in role notes;
grant clerk to ringlog_gateway with inherit false, set true;
alter role clerk set role = notes;
"""
# by the character set that a TDS 5.0 client declares at login
TEXTS = {
    "iso_1": "Größe ÿ½",
    "cp850": "Größe ░½",
    "cp1252": "Größe €œ",
    "sjis": "加速器ｱ表",
    "eucjis": "加速器ｱ表",
    "utf8": "Größe 加速器 😀",
}


def tsql(server: RunningServer, folder: Path, charset: str, text: str) -> list[str]:
    """Runs a batch by a client of TDS 5.0 that declares the character set; the lines of its answer."""
    configuration = folder / f"{charset}.conf"
    configuration.write_text(
        "[global]\nclient charset = UTF-8\n[old]\n"
        f"host = {server.host}\nport = {server.port}\ntds version = 5.0\nserver charset = {charset}\n"
    )
    words = ("tsql", "-S", "old", "-U", "clerk", "-P", "clerk-1", "-D", "notes", "-o", "qhf")
    done = run(*words, stdin=f"{text}\ngo\n", FREETDSCONF=str(configuration), LC_ALL="C.UTF-8")
    assert "Msg" not in done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def old(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "notes") as running:
        running.sql(SITE)
        columns = "charset varchar(10) not null, fixed char(20) null, said varchar(40) null, body text null"
        tsql(running, temporary_directory, "utf8", f"create table note ({columns})")
        for charset, text in TEXTS.items():
            insert = f"insert note values ('{charset}', '{text}', '{text}', '{text}')"
            tsql(running, temporary_directory, charset, insert)
        yield running


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_texts_arrive_unchanged(
    old: RunningServer, temporary_directory: Path, tmp_path: Path, version: str
) -> None:
    words = ("adopt", f"tds://clerk:clerk-1@{old.host}:{old.port}/notes", "--tds-version", version)
    words = (*words, "--timezone", "Asia/Tokyo")
    words = (*words, "--output", tmp_path / "adopted")
    ringlog(*words)
    with serving(temporary_directory / f"notes_{version}") as new:
        new.sql(SITE)
        tsql(new, tmp_path, "utf8", (tmp_path / "adopted" / "1_tables.sql").read_text())
        copied = ringlog(*words, "--copy", "--data", new.data)
        assert "note: 6 rows, new, the same on both sides" in copied.stdout, copied.stdout
        for charset, text in TEXTS.items():
            asked = f"select fixed, said, body from note where charset = '{charset}'"
            (line,) = tsql(new, tmp_path, charset, asked)
            fixed, said, body = line.split("\t")
            assert (fixed.rstrip(), said, body) == (text, text, text)
