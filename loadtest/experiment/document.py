"""A report as blocks of text, tables and pictures, in two forms: Markdown, and HTML in one file."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ringlog.loadtest.experiment.text_table import TextTable


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Verdict:
    """The result in one sentence."""

    good: bool
    text: str


@dataclass(frozen=True)
class Items:
    texts: Sequence[str]


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Facts:
    """A list with a text for each of several subjects."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A PNG file in the report's folder."""

    file: str
    caption: str


Block: TypeAlias = Heading | Paragraph | Verdict | Items | Code | TextTable | Facts | Picture


def markdown(blocks: Sequence[Block]) -> str:
    """The report for terminals and repositories; pictures are files beside it."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Verdict(_, text):
            return f"**{text}**"
        case Items(texts):
            return "\n".join(f"* {text}" for text in texts)
        case Code(text):
            return f"```sh\n{text}\n```"
        case TextTable():
            return f"*{block.caption}*\n\n{block.markdown()}" if block.caption else block.markdown()
        case Facts(rows):
            return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)])
        case Picture(file, caption):
            return f"![{caption}]({file})\n\n*{caption}*"


def html(blocks: Sequence[Block], folder: Path) -> str:
    """The report as one HTML page that contains all pictures."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ringlog.loadtest.experiment", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    title = next(block.text for block in blocks if isinstance(block, Heading))

    def kind(block: Block) -> str:
        return type(block).__name__

    def picture(block: Picture) -> str:
        return base64.b64encode((folder / block.file).read_bytes()).decode()

    page = environment.get_template("report.html.jinja")
    return page.render(title=title, blocks=blocks, kind=kind, picture=picture)
