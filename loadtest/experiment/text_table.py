"""A table of text, for reports and terminals."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as Grid


@dataclass(frozen=True)
class TextTable:
    """Rows of text with a heading for each column; all but the first are figures, to the right."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: bool = False
    """the last column is text too"""

    def markdown(self) -> str:
        """The table in Markdown, without its caption."""
        lines = self.headings, ["---", *["---:"] * (len(self.headings) - 1)], *self.rows
        escaped = ([cell.replace("|", r"\|") for cell in row] for row in lines)
        return "\n".join(f"| {' | '.join(row)} |" for row in escaped)

    def grid(self) -> Grid:
        """The table for a terminal, below its caption."""
        grid = Grid(title=self.caption, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, heading in enumerate(self.headings):
            grid.add_column(heading, justify="right" if number else "left", header_style="dim")
        for row in self.rows:
            grid.add_row(*row)
        return grid
