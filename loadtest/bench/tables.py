"""The tables of a report: rows of text, for terminal and Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as Grid


@dataclass(frozen=True)
class Table:
    """A table with a heading for each column; all but the first are figures, to the right."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [
            f"## {self.title}\n",
            "| " + " | ".join(self.headings) + " |",
            "|---|" + "---:|" * (len(self.headings) - 1),
            *("| " + " | ".join(row) + " |" for row in self.rows),
        ]
        return "\n".join(lines) + "\n"

    def grid(self) -> Grid:
        grid = Grid(title=self.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, heading in enumerate(self.headings):
            grid.add_column(heading, justify="right" if number else "left", header_style="dim")
        for row in self.rows:
            grid.add_row(*row)
        return grid
