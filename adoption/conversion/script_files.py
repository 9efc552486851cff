"""Scripts of T-SQL, compiled without a server: which batches run, and why others are refused."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringlog.adoption.assessment import BY_GATEWAY
from ringlog.adoption.errors import AdoptionError
from ringlog.gateway import TsqlError, decode_text, translate

NO_SUCH_TYPE = 2715
_GO = re.compile(r"\s*go(\s+\d+)?\s*;?\s*(--.*)?", re.I)
_QUOTED = re.compile(r"\bset\s+quoted_identifier\s+(on|off)\b", re.I)
_MAKES_TYPE = re.compile(r"\b(?:sp_addtype\s+|create\s+type\s+)(?:\[?\w+\]?\.)?['\"\[]?(\w+)", re.I)


@dataclass(frozen=True)
class Batch:
    """A batch of a file. `line`: that of its first line, from 1."""

    file: Path
    line: int
    text: str
    quoted: bool
    """"x" is a quoted name."""


@dataclass(frozen=True)
class Verdict:
    """The outcome for a batch: reason, error number, and line in the file of a refusal."""

    batch: Batch
    number: int | None = None
    line: int = 0
    why: str = ""

    @property
    def is_refused(self) -> bool:
        return self.number is not None


def files(paths: Iterable[Path]) -> list[Path]:
    """The files, and those of the folders that end in .sql, by name. Raises AdoptionError without any."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() == ".sql")
        found += inside if path.is_dir() else [path]
    if not found:
        raise AdoptionError("there is no file that ends in .sql")
    return found


def text_of(file: Path, charset: str) -> str:
    """The text of a file: UTF-16 or UTF-8 with a byte order mark, otherwise in the character set."""
    data = file.read_bytes()
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    text = decode_text(charset, data)
    if text is None:
        raise AdoptionError(f"{file} is not text in {charset}: name its character set by --charset")
    return text


def batches(file: Path, text: str, sybase: bool) -> Iterator[Batch]:
    """The batches between the lines `go`, without empty ones."""
    quoted = not sybase
    lines: list[str] = []
    start = 1
    for number, line in enumerate([*text.splitlines(), "go"], 1):
        if not _GO.fullmatch(line):
            lines.append(line)
            continue
        batch = "\n".join(lines)
        if batch.strip():
            yield Batch(file, start, batch, quoted)
        for setting in _QUOTED.findall(batch):
            quoted = setting.lower() == "on"
        lines, start = [], number + 1


def assess(found: Sequence[Batch], sybase: bool) -> list[Verdict]:
    """Compiles every batch. Tables are not known: errors that depend on them show when a batch runs."""
    types = {name.lower() for batch in found for name in _MAKES_TYPE.findall(batch.text)}
    return [_verdict(batch, sybase, types) for batch in found]


def _verdict(batch: Batch, sybase: bool, types: set[str]) -> Verdict:
    try:
        made = translate(batch.text, database="dbo", sybase=sybase, quoted_identifiers=batch.quoted)
    except TsqlError as error:
        number, line, why = error.args
        of_type = re.match(r"Cannot find data type (\w+)", why) if number == NO_SUCH_TYPE else None
        if of_type and of_type[1].lower() in types:
            return Verdict(batch, why="a type that the scripts create: compiled when it exists")
        return Verdict(batch, number, batch.line + line - 1, why)
    return Verdict(batch, why=BY_GATEWAY if any("tsql.refuse_call(" in each for each in made) else "")


def report(verdicts: Sequence[Verdict], sources: int) -> Iterator[str]:
    """Lines: the counts, then each reason with its locations, the most frequent first."""
    refused = [each for each in verdicts if each.is_refused]
    run = len(verdicts) - len(refused)
    yield f"files: {sources}, batches: {len(verdicts)}, run: {run}, refused: {len(refused)}"
    for heading, chosen in (
        ("run, but", [each for each in verdicts if each.why and not each.is_refused]),
        ("refused", refused),
    ):
        by_reason: defaultdict[str, list[Verdict]] = defaultdict(list)
        for each in chosen:
            by_reason[each.why].append(each)
        for why, those in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
            number = f" ({those[0].number})" if those[0].is_refused else ""
            yield f"{heading}: {len(those)}: {why}{number}"
            yield from (f"  {each.batch.file}:{each.line or each.batch.line}" for each in those)
