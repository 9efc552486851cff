"""Links in README and docs/, and names of files in comments, have a target."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
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


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def anchors(page: Path) -> Iterator[str]:
    """Those of its headings, as GitHub makes them."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*)$", prose(page), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        yield f"{anchor}-{count}" if count else anchor


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of)
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`([\w.-]+/[\w./-]+\.\w+)`", page.read_text())
    ours = [name for name in named if name.partition("/")[0] in FOLDERS]
    assert [name for name in ours if not any(file.endswith(name) for file in FILES)] == []


def test_a_file_that_a_comment_names_is_there() -> None:
    """Names that begin with one of our folders."""
    broken = []
    for source in SOURCES:
        for name in re.findall(
            r"(?<![\w/.{}-])((?:[\w-]+/)+[\w-]+\.(?:py|sql|rs|toml))(?![\w-])", (ROOT / source).read_text()
        ):
            if name.partition("/")[0] in FOLDERS and not any(file.endswith(name) for file in FILES):
                broken.append((source, name))
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_of_code_end(page: Path) -> None:
    assert "```" not in prose(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_empty_line_divides_a_table(page: Path) -> None:
    assert re.findall(r"^\|.*\n\n\|.*\n(?!\|[-:| ]+\|$)", prose(page), re.M) == []
