"""`ringlog assess`: its report on scripts, and a server's handling of them."""

from pathlib import Path

import pymssql
import pytest
from case_tables import cases
from typer.testing import CliRunner

from ringlog.adoption.conversion.script_files import Batch, assess, batches, files
from ringlog.cli import app
from servers import RunningServer

SCRIPTS = cases(__file__, "scripts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in SCRIPTS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def batches_in(folder: Path) -> list[Batch]:
    return [each for file in files([folder]) for each in batches(file, file.read_text(), sybase=False)]


def test_the_report_names_constructs_and_places(folder: Path) -> None:
    result = CliRunner().invoke(app, ["assess", str(folder)])
    first, *lines = result.output.splitlines()
    assert result.exit_code == 1
    assert first == "files: 2, batches: 8, run: 6, refused: 2"
    assert f"  {folder}/tables.sql:10" in lines
    assert f"  {folder}/deeper/queries.SQL:3" in lines
    assert sum(line.startswith("refused: 1: ") for line in lines) == 2


def test_a_server_refuses_the_same_batches(folder: Path, server: RunningServer) -> None:
    verdicts = assess(batches_in(folder), sybase=False)
    assert len(verdicts) == 8
    with server.connect(server.reader.user, server.reader.password) as connection:
        for verdict in verdicts:
            with connection.cursor() as cursor:
                try:
                    cursor.execute(verdict.batch.text)
                    found = None
                except pymssql.Error as error:
                    found = error.args[0]
            assert found == verdict.number, verdict


def test_procedures_run_by_the_gateway_are_reported(tmp_path: Path) -> None:
    script = tmp_path / "p.sql"
    texts = ("create type tid from int", "create table t (a tid)", "create proc p as exec ('select 1')")
    script.write_text("\ngo\n".join(texts))
    result = CliRunner().invoke(app, ["assess", str(script)])
    assert result.exit_code == 0
    assert "files: 1, batches: 3, run: 3, refused: 0" in result.output
    assert "with the rights of its callers" in result.output
    assert "a type that the scripts create" in result.output


def test_a_file_of_another_character_set(tmp_path: Path) -> None:
    script = tmp_path / "latin.sql"
    script.write_bytes("print 'é'".encode("cp1252"))
    assert CliRunner().invoke(app, ["assess", str(script)]).exception is not None
    assert CliRunner().invoke(app, ["assess", str(script), "--charset", "cp1252"]).exit_code == 0
