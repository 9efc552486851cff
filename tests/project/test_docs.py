"""The commands, options, modules and targets in README and docs/ exist."""

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from ringlog.cli import app
from ringlog.schema.facility_files import policy_entries

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab" / "ringlog_lab" / "measured").glob("*.md")),
]
GENERATED = run_path(str(ROOT / "docs" / "site.py"))["GENERATED"]
# what may stand before a command in a line of a shell, and where the next command begins
_BEFORE = re.compile(r"^(\$ |sudo |nohup |time |[A-Z_]+=\S+ )+")
_BETWEEN = {"|", "||", "&&", ";", "&", "<", ">"}
_COMMANDS = ("ringlog ", "python -m ringlog", "python tests/", "make ")


def shown(page: Path) -> Iterator[str]:
    """Lines of shell blocks, and code inside the text, which may continue in the next line."""
    text = page.read_text()
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if language in ("sh", "ini", "cron"):
            for line in block.replace("\\\n", " ").splitlines():
                yield line.removeprefix("ExecStart=/opt/ringlog/bin/").removeprefix(
                    "ExecReload=/opt/ringlog/bin/"
                )
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for code in re.findall(r"`([^`]+)`", text):
        yield " ".join(code.split())


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ringlog's that a page shows, up to the next command of its line."""
    for line in shown(page):
        for part in [*re.findall(r"\$\((ringlog [^)]*)\)", line), line]:
            part = _BEFORE.sub("", part.strip())
            if not part.startswith(_COMMANDS):
                continue
            lexer = shlex.shlex(part, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            lexer.quotes = '"'
            words: list[str] = []
            for word in lexer:
                if word in _BETWEEN:
                    if words:
                        yield words
                    words = []
                else:
                    words.append(word)
            if words and words[0] in ("ringlog", "python", "make"):
                yield words


@pytest.mark.parametrize(
    "named",
    sorted({named for page in PAGES for named in re.findall(r"`(tests/[\w/]+\.py::\w+)`", page.read_text())}),
)
def test_a_test_named_by_a_page_exists(named: str) -> None:
    file, _, function = named.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text()


FOUND = [(page.name, words) for page in PAGES for words in commands(page)]


def named(value: tuple[str, list[str]]) -> str:
    return f"{value[0]}: {' '.join(value[1])}"


@pytest.mark.parametrize("found", [each for each in FOUND if each[1][0] == "ringlog"], ids=named)
def test_a_command_has_the_options_that_are_shown(found: tuple[str, list[str]]) -> None:
    _, (_, *words) = found
    if "--" in words:
        # a command that a service runs
        words = words[words.index("--") + 1 :]
    command: Any = get_command(app)
    while isinstance(command, TyperGroup) and words and re.fullmatch(r"[a-z][a-z0-9-]*", words[0]):
        name, *words = words
        command = command.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None, f"there is no command {name}"
    if command.context_settings.get("ignore_unknown_options"):
        return  # locust's own
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for word in words:
        if re.match(r"--?[a-z]", word):
            assert word.partition("=")[0] in known | {"--help"}, f"{command.name} has no option {word}"


@pytest.mark.parametrize("found", [each for each in FOUND if each[1][0] == "python"], ids=named)
def test_a_module_has_the_options_that_are_shown(found: tuple[str, list[str]]) -> None:
    _, (_, *words) = found
    if words[0] == "-m":
        spec = find_spec(words[1])
        assert spec is not None
        assert spec.origin is not None
        file = Path(spec.origin)
        file = file.with_name("__main__.py") if file.name == "__init__.py" else file
    else:
        file = ROOT / words[0]
    source = file.read_text()
    for word in words[1:]:
        if word.startswith("--"):
            assert f'"{word}"' in source, f"{file.name} has no option {word}"


@pytest.mark.parametrize("found", [each for each in FOUND if each[1][0] == "make"], ids=named)
def test_a_target_exists(found: tuple[str, list[str]]) -> None:
    _, (_, *words) = found
    if words[0] == "-C":
        assert (ROOT / words[1] / "Makefile").exists()
        return
    (target, *_) = words
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.M)


_READ = re.compile(r"\.(?:take|demand|text|flag|entries)\(\s*\"(\w+)\"")
_READERS = ("facility_file", "column_entries", "policy_entries", "node_entries", "parameters")


def test_every_key_of_a_facility_file_is_documented() -> None:
    keys = {*policy_entries.HISTORY, *policy_entries.SAMPLE}
    for module in _READERS:
        keys.update(_READ.findall((ROOT / "schema" / "facility_files" / f"{module}.py").read_text()))
    assert {"byte_order", "nanoseconds", "deadband", "dsn", "keep_replaced"} <= keys
    # a parameter table's own keys are on its page
    names = ("reference/facility-file.md", "how-to/parameters.md")
    pages = ((ROOT / "docs" / name).read_text() for name in names)
    code = " ".join(re.findall(r"`[^`]+`", "\n".join(re.findall(r"^\|.*", "\n".join(pages), re.M))))
    assert {key for key in keys if not re.search(rf"\b{key}\b", code)} == set()


def test_every_metric_is_documented() -> None:
    """Those of `ringlog serve`, the gateway and the mirror, and those that alerts and dashboards use."""
    names = set()
    for file in (ROOT / "ringlog" / "monitoring").rglob("*"):
        if file.suffix in (".py", ".yml", ".json"):
            names.update(re.findall(r"\bringlog_[a-z_]+[a-z]\b", file.read_text()))
    for file, prefix in (("metrics.rs", "ringlog_gateway"), ("mirror/record.rs", "ringlog_mirror")):
        source = (ROOT / "gateway" / "src" / file).read_text()
        names.update(
            f"{prefix}_{name}" for name in re.findall(r"register(?:_with_unit)?\(\s*\"(\w+)\"", source)
        )
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text() + "".join(GENERATED["<!-- writers -->"]())
    # the page has the names of samples, with unit and type
    names = {re.sub(r"_(?:bucket|count|sum)$", "", name) for name in names}
    documented = set(re.findall(r"`(ringlog_\w+)`", page))
    assert "ringlog_gateway_call" in names
    assert {name for name in names if not any(each.startswith(name) for each in documented)} == set()


@pytest.mark.parametrize("mark", GENERATED)
def test_a_generated_part_belongs_to_a_page(mark: str) -> None:
    text = "\n".join(GENERATED[mark]())
    assert text.count("\n") > 10
    assert mark == "<!-- routes -->" or not re.search(r"\{\w+\}", text), (
        "the name of a place in a template is left"
    )
    assert len([page for page in PAGES if mark in page.read_text()]) == 1


# --- links in README and docs/, and names of files in comments, have a target ---

LINKING = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab" / "ringlog_lab" / "measured").glob("*.md")),
]
LISTED = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True)
FILES = LISTED.stdout.split()
SOURCES = [name for name in FILES if re.search(r"\.(py|sql|rs|c|h|js|cfg)$|^Makefile$", name)]
FOLDERS = {name.partition("/")[0] for name in FILES if "/" in name}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def outside_of_code(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def anchors(page: Path) -> Iterator[str]:
    """The anchors of its headings, as generated by GitHub."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*)$", outside_of_code(page), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        yield f"{anchor}-{count}" if count else anchor


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_a_link_has_a_target(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", outside_of_code(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in LINKING if page.name != "CHANGELOG.md"], ids=name_of)
def test_a_file_named_by_a_page_exists(page: Path) -> None:
    named = re.findall(r"`([\w.-]+/[\w./-]+\.\w+)`", page.read_text())
    ours = [name for name in named if name.partition("/")[0] in FOLDERS]
    assert [name for name in ours if not any(file.endswith(name) for file in FILES)] == []


def test_a_file_named_by_a_comment_exists() -> None:
    """Names that begin with one of our folders."""
    broken = []
    for source in SOURCES:
        for name in re.findall(
            r"(?<![\w/.{}-])((?:[\w-]+/)+[\w-]+\.(?:py|sql|rs|toml))(?![\w-])", (ROOT / source).read_text()
        ):
            if name.partition("/")[0] in FOLDERS and not any(file.endswith(name) for file in FILES):
                broken.append((source, name))
    assert broken == []


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_blocks_of_code_end(page: Path) -> None:
    assert "```" not in outside_of_code(page)


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_no_empty_line_divides_a_table(page: Path) -> None:
    assert re.findall(r"^\|.*\n\n\|.*\n(?!\|[-:| ]+\|$)", outside_of_code(page), re.M) == []


# --- docs and comments are plain English ---

CLAUSE = re.compile(r"\bwhat (?:\w+ ){0,3}?(?:is|are|was|were|has|have|had)\b", re.I)
SUFFIXES = {".py", ".rs", ".js", ".c", ".h", ".sql", ".md"}
GOAL = 5.0
"""Clauses in 1,000 lines of comments or prose."""


def prose(name: str) -> str:
    """The comments of a source file, or the text of a page without its code."""
    suffix = Path(name).suffix
    source = (ROOT / name).read_text() if suffix in SUFFIXES else ""
    match suffix:
        case ".py":
            return "\n".join(re.findall(r'^\s*#.*|  # .*|"""(?:.|\n)*?"""', source, re.M))
        case ".rs" | ".js" | ".c" | ".h":
            return "\n".join(re.findall(r"^\s*//.*|\s//\s.*|/\*(?:.|\n)*?\*/", source, re.M))
        case ".sql":
            # the second are descriptions of objects: comment on … is $$…$$
            return "\n".join(re.findall(r"--.*|(?<=\bis\n)\$\$[^$]*\$\$|(?<=\bis )'[^;]*';", source))
        case ".md":
            return re.sub(r"^```.*?^```$", "", source, flags=re.M | re.S)
    return ""


def folder(name: str) -> str:
    """The folder that a file counts for: the first one, or the second in the large ones."""
    parts = Path(name).parts
    return "/".join(
        parts[: 2 if parts[0] in ("gateway", "tests", "ringlog", "lab") and len(parts) > 2 else 1]
    )


def clauses(text: str) -> int:
    lines = (re.sub(r"^\s*(?:///?!?|//!|--|#|\*)\s?", "", line) for line in text.splitlines())
    return len(CLAUSE.findall(" ".join(" ".join(lines).split())))


WITH_PROSE = [name for name in FILES if Path(name).suffix in SUFFIXES and name != "CHANGELOG.md"]


@cache
def counts() -> dict[str, tuple[int, int]]:
    """Lines and clauses of each folder."""
    lines: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for name in WITH_PROSE:
        if (ROOT / name).is_file() and (text := prose(name)):
            lines[folder(name)] += text.count("\n") + 1
            found[folder(name)] += clauses(text)
    return {each: (lines[each], found[each]) for each in sorted(lines)}


@pytest.mark.parametrize("part", sorted(set(map(folder, WITH_PROSE))))
def test_clauses_are_rare(part: str) -> None:
    lines, found = counts()[part]
    assert found <= max(1, GOAL * lines / 1000), f"{found} clauses in {lines} lines of {part}; limit {GOAL}"
