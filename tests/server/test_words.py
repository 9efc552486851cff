"""Docs and comments are plain English: clauses of the kind "what is …" are rare (see CONTRIBUTING.md)."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True)
FILES = LISTED.stdout.split()

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


def counts() -> dict[str, tuple[int, int]]:
    """Lines and clauses of each folder."""
    lines: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for name in FILES:
        if name == "CHANGELOG.md" or not (ROOT / name).is_file():
            continue
        if text := prose(name):
            lines[folder(name)] += text.count("\n") + 1
            found[folder(name)] += clauses(text)
    return {each: (lines[each], found[each]) for each in sorted(lines)}


COUNTS = counts()


@pytest.mark.parametrize("part", COUNTS)
def test_clauses_are_rare(part: str) -> None:
    lines, found = COUNTS[part]
    assert found <= max(1, GOAL * lines / 1000), f"{found} clauses in {lines} lines of {part}; limit {GOAL}"
