"""Refusals of the command: the message, the exit code, and no effect."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from case_tables import cases
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ringlog.cli import EXPECTED, OF_POSTGRESQL, app
from servers import FACILITY, RINGLOG, RunningServer, ringlog, run


def logins(server: RunningServer) -> set[str]:
    return {row[0] for row in server.sql("select rolname from pg_roles where rolcanlogin")}


@pytest.mark.parametrize(("arguments", "password", "code", "message"), cases(__file__, "a_login_is_refused"))
def test_a_login_is_refused(
    server: RunningServer, arguments: list[str], password: str, code: int, message: str
) -> None:
    before = logins(server)
    refused = ringlog("user", "add", *arguments, "--password-stdin", "--data", server.data, stdin=password)
    assert refused.returncode == code
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "secret" not in refused.stderr
    assert logins(server) == before


def test_a_password_is_not_asked_for_without_a_terminal(server: RunningServer) -> None:
    refused = ringlog("user", "add", "x", "--writer", "--data", server.data, stdin="secret")
    assert refused.returncode == 2
    assert "--password-stdin" in refused.stderr
    assert "x" not in logins(server)


def remove(server: RunningServer, name: str) -> None:
    removed = ringlog("user", "remove", name, "--data", server.data)
    assert removed.returncode == 0, removed.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "second", "code"), [("typed", "pass word", 0), ("mistyped", "pass Word", 2)]
)
def test_a_password_is_typed_twice_at_a_terminal(
    server: RunningServer, name: str, second: str, code: int
) -> None:
    command = shlex.join([str(RINGLOG), "user", "add", name, "--writer", "--data", str(server.data)])
    with subprocess.Popen(
        ["script", "--quiet", "--return", "--command", command, "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        shown = b""
        for prompt, answer in ((f"Password of {name}: ", "pass word"), ("Once more: ", second)):
            while not shown.endswith(prompt.encode()):
                shown += (byte := terminal.stdout.read(1))
                assert byte, shown
            terminal.stdin.write(answer.encode() + b"\n")
            terminal.stdin.flush()
        shown += terminal.stdout.read()
    assert terminal.returncode == code, shown
    assert b"pass word" not in shown
    assert (name in logins(server)) == (code == 0)
    if code == 0:
        remove(server, name)


@pytest.mark.long
def test_a_name_too_long_for_tds_5_is_warned_of(server: RunningServer) -> None:
    name = "n" * 31
    added = ringlog(
        "user", "add", name, "--reader", "--password-stdin", "--data", server.data, stdin="secret"
    )
    assert added.returncode == 0
    assert f"TDS 5.0 clients cannot log in as {name}" in added.stderr
    remove(server, name)


def test_a_login_needs_a_facility(data: Path) -> None:
    refused = ringlog("user", "add", "x", "--writer", "--password-stdin", "--data", data, stdin="secret")
    assert refused.returncode == 1
    assert f"there is no database in {data}" in refused.stderr
    assert not data.exists()


@pytest.mark.parametrize(("arguments", "message"), cases(__file__, "a_request_is_refused"))
def test_a_request_is_refused(data: Path, arguments: list[str], message: str) -> None:
    refused = ringlog(*arguments, RINGLOG_DATA=str(data))
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "secret" not in refused.stderr
    assert not data.exists()


def test_a_server_that_does_not_answer_is_named() -> None:
    failed = ringlog("maintain", "--dsn", "host=127.0.0.1 port=1")
    assert failed.returncode == 1
    assert failed.stderr.startswith("ringlog: PostgreSQL: connection failed")
    assert failed.stderr.count("\n") == 1


@pytest.mark.long
def test_dsn_of_a_stopped_server_reports_that(data: Path) -> None:
    made = ringlog("init", "--facility", FACILITY, "--data", data)
    assert made.returncode == 0, made.stderr
    ran = ringlog("dsn", "--data", data)
    assert ran.returncode == 0
    assert re.fullmatch(rf"host={data}/socket port=\d+ dbname=ringlog user=postgres\n", ran.stdout)
    assert "is not running: start it with ringlog serve" in ran.stderr


def test_init_twice_changes_nothing(data: Path) -> None:
    first = ringlog("init", "--facility", FACILITY, "--data", data)
    assert first.returncode == 0, first.stderr
    second = ringlog("init", "--facility", FACILITY, "--data", data)
    assert second.returncode == 0, second.stderr
    assert second.stdout == "nothing to do\n"


def test_check_prints_a_summary_of_a_facility() -> None:
    ran = ringlog("facility", "check", FACILITY)
    assert ran.returncode == 0, ran.stderr
    assert "4 tables, 213 data columns" in ran.stdout
    assert "sr_mag_ps: 200 columns, 50 rows, every 1 s" in ran.stdout


def test_check_refuses_columns_that_cannot_hold_a_field_of_a_pv(tmp_path: Path) -> None:
    file = tmp_path / "fields.toml"
    types = {
        **{f"T{number}.TIME": kind for number, kind in enumerate(["double", "datetime", "numeric(19,9)"])},
        **{f"T{number}.SEVR": kind for number, kind in enumerate(["smallint", "varchar(9)", "real"])},
        **{
            "A.TIME": "int",
            "B.TIME": "real",
            "C.TIME": "numeric(9,0)",
            "D.STAT": "bit",
            "E.DIM1": "datetime",
        },
    }
    columns = "".join(
        f'[[table.column]]\nname = "c{number}"\nsignal = "{signal}"\ntype = "{kind}"\n'
        for number, (signal, kind) in enumerate(types.items())
    )
    file.write_text('[[table]]\nname = "t"\nrows = 9\ncycle = 1\n' + columns)
    ran = ringlog("facility", "check", file)
    assert ran.returncode == 2
    refused = [line.split(" needs ")[0] for line in ran.stderr.splitlines()]
    assert [words.split(", ", 1)[1] for words in refused] == [
        "column c6 is int, and signal A.TIME",
        "column c7 is real, and signal B.TIME",
        "column c8 is numeric(9,0), and signal C.TIME",
        "column c9 is bit, and signal D.STAT",
        "column c10 is datetime, and signal E.DIM1",
    ]


@pytest.mark.long
def test_an_invalid_data_directory(tmp_path: Path) -> None:
    file, loop = tmp_path / "file", tmp_path / "loop"
    file.touch()
    loop.symlink_to(loop)
    for path in (file, file / "below", loop, tmp_path / ("x" * 300)):
        for command in (("init", "--facility", FACILITY), ("status",), ("serve", "--facility", FACILITY)):
            refused = ringlog(*command, "--data", path)
            assert refused.returncode in (1, 2)
            assert refused.stderr.startswith("ringlog: "), refused.stderr
            assert refused.stderr.count("\n") == 1


# --- every command has a help text with its options ---


def commands(of: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group of commands."""
    yield words
    if isinstance(of, TyperGroup):
        for name in of.list_commands(None):
            yield from commands(of.get_command(None, name), *words, name)


@pytest.mark.parametrize("words", [*commands(get_command(app))], ids=" ".join)
def test_each_command_has_help(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.exception
    assert f"Usage: ringlog {' '.join(words)}".strip() in shown.output.replace("root", "ringlog")
    assert "--help" in shown.output


def test_the_help_shows_the_whole_url() -> None:
    shown = CliRunner().invoke(app, ["load", "--help"], terminal_width=200)
    assert "tds://user@host:port[,host:port …][/database]" in " ".join(shown.output.split())


def test_commands_of_the_lab_are_listed_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "  bench " in CliRunner().invoke(app, ["--help"]).output
    monkeypatch.setattr("ringlog.commands.group.find_spec", lambda _: None)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "  status " in shown
    assert not [name for name in ("bench", "plan") if f"  {name} " in shown]


def test_an_unknown_command_names_a_similar_one() -> None:
    shown = CliRunner().invoke(app, ["statsu"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 2
    assert "Did you mean 'status'" in shown.output


def test_expected_errors_exist() -> None:
    for name in (*EXPECTED, *OF_POSTGRESQL):
        module, _, error = name.rpartition(".")
        assert issubclass(getattr(import_module(module), error), Exception), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("adopt somewhere", "the URL has no scheme: write tds://user@host:port"),
        ("adopt tds://sa@127.0.0.1:1/plant", "no password for tds://sa@127.0.0.1:1/plant: give "),
        ("loadtest normal --time soon", "'soon' is not a duration"),
    ],
)
def test_a_wrong_word_gets_one_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RINGLOG_PASSWORD", raising=False)
    ended = ringlog(*words.split(), HOME=str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"ringlog: {message}")
    assert len(ended.stderr.splitlines()) == 1


HEAVY = {"sqlalchemy", "numpy", "pyarrow", "rich", "orjson", "starlette", "pydantic", "ringlog.loadtest"}


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("--help", {"psycopg", "psutil", "importlib.metadata", "tempfile"}),
        ("--version", {"psycopg", "psutil"}),
        ("dsn --help", set()),
        ("status --help", set()),
        ("signals --help", set()),
        ("signal --help", set()),
        ("latest --help", set()),
        ("user --help", set()),
        ("report losses --help", set()),
        ("doctor --help", set()),
        ("export --help", {"psycopg", "psutil", "urllib.request"}),
        ("plot --help", {"psycopg", "psutil", "urllib.request"}),
    ],
)
def test_a_command_imports_only_its_modules(words: str, others: set[str]) -> None:
    """Each import costs time at every start: none of these packages, and few modules in total."""
    loaded = f"import sys; from ringlog.cli import app; app({words.split()!r}, standalone_mode=False); "
    found = run(sys.executable, "-P", "-c", loaded + "print(*sys.modules)").stdout.splitlines()[-1].split()
    assert "ringlog.commands.group" in found
    assert not (HEAVY | others).intersection(found)
    assert len(found) < (250 if others else 460)


def test_the_list_of_commands_describes_each() -> None:
    """The list has its own texts: no command is imported for it."""
    shown = CliRunner().invoke(app, ["-h"], terminal_width=120)
    group = get_command(app)
    for name in group.list_commands(None):  # type: ignore[attr-defined]
        (line,) = (line for line in shown.output.splitlines() if line.split()[:1] == [name])
        assert len(line) <= 120
        assert len(line.split()) > 2 or name in ("user", "facility")


def test_no_option_is_cut_on_a_narrow_terminal() -> None:
    shown = CliRunner().invoke(app, ["serve", "-h"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert "--housekeeping" in shown.output or "--http-role" in shown.output
    assert "…" not in shown.output
