"""The commands in README.md work, in their order."""

import re
from pathlib import Path

from servers import Login, ringlog, serving

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    """The code blocks of README.md in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_lines_of_use(temporary_directory: Path, tmp_path: Path) -> None:
    (table,) = blocks("toml")
    (statements,) = blocks("sql")
    put, select, end = statements.strip().split("\n")
    assert end == "go"
    (words,) = re.findall(r"^ringlog (user add \w+ [\w -]+?) +#", "\n".join(blocks("sh")), re.MULTILINE)
    login = Login(words.split()[2], "a password")
    facility = tmp_path / "plant.toml"
    facility.write_text(table)
    with serving(temporary_directory / "readme", facility=facility) as server:
        added = ringlog(*words.split(), "--password-stdin", "--data", server.data, stdin=login.password)
        assert added.returncode == 0, added.stderr
        with server.connect(login.user, login.password) as session, session.cursor(as_dict=True) as cursor:
            cursor.execute(put)
            cursor.execute(select)
            ((row),) = cursor.fetchall()
    assert (row["seq_no"], row["valve_open"]) == (1, True)
    assert abs(row["pressure"] / 1.2e-7 - 1) < 1e-6  # a real has 24 bits


def test_the_commands_exist() -> None:
    """`make` and `ringlog` know every word in the shell blocks."""
    makefile = (ROOT / "Makefile").read_text()
    shell = "\n".join(blocks("sh"))
    for target in re.findall(r"^make (\w+)", shell, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for file in re.findall(r"\]\(([\w/.-]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / file).exists(), file


def test_the_first_table_is_that_of_the_readme() -> None:
    """docs/start/first-table.md has the same table, commands and statements, which the test above runs."""
    page = (ROOT / "docs" / "start" / "first-table.md").read_text()
    (table,) = blocks("toml")
    assert f"```toml\n{table}```" in page
    put, select, _ = blocks("sql")[0].strip().split("\n")
    assert f"1> {put}\n" in page
    assert f"1> {select}\n" in page
    for command in re.findall(
        r"^(ringlog (?:serve|user|load) [^#\n]*?)\s*(?:#.*)?$", "\n".join(blocks("sh")), re.MULTILINE
    ):
        assert command in page, command
