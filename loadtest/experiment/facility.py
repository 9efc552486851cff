"""The facilities of measurements: tables of `real` columns, in the number and width that a part needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# papers/004: 60 tables; rings of 2,000 to 4,000 rows
RING = 3000
COLUMN = "current_"


@dataclass(frozen=True)
class Tables:
    """`count` tables <prefix>0, <prefix>1, … with so many data columns current_1, current_2, …"""

    prefix: str
    count: int
    columns: int
    rows: int = RING
    type: str = "real"
    cycle: float = 1.0
    """seconds"""

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in range(self.count)]

    @property
    def column_names(self) -> list[str]:
        return [f"{COLUMN}{number}" for number in range(1, self.columns + 1)]


def main_tables(columns: int) -> Tables:
    """The 60 tables that most parts call."""
    return Tables("ps_", 60, columns)


def history(columns: int) -> Tables:
    """The one table whose log is read."""
    return Tables("history_", 1, columns)


def ten_years() -> Tables:
    """The table with a log and summaries of ten years."""
    return Tables("decade_", 1, 10)


def half() -> Tables:
    """HALF's 2,000 channels at 10 Hz (papers/002)."""
    return Tables("half_", 20, 100, 100, type="double", cycle=0.1)


def old_week() -> Tables:
    """The table whose old week is archived; its name is the first of all."""
    return Tables("archived_", 1, 200, 10)


def archived_years() -> Tables:
    """The table with ten years of archived weeks."""
    return Tables("files_", 1, 200, 10)


def archived_signal() -> Tables:
    """The table with a year of archived weeks of one signal."""
    return Tables("signal_", 1, 1, 10)


def small_table() -> Tables:
    """A table of a server that has other tables later; its ring is short, because its rows do not matter."""
    return Tables("many_", 1, 100, 10)


def write_facility(file: Path, tables: Iterable[Tables]) -> None:
    """Writes a facility file with these tables; every row is logged."""
    file.write_text("".join(_text(tables)))


def _text(tables: Iterable[Tables]) -> Iterator[str]:
    yield 'timezone = "UTC"\n'
    for some in tables:
        for name in some.names:
            yield f'\n[[table]]\nname = "{name}"\nrows = {some.rows}\ncycle = {some.cycle}\n'
            yield f'[[table.column]]\nname = "{COLUMN}{{n}}"\ncount = {some.columns}\n'
            yield f'type = "{some.type}"\n'
