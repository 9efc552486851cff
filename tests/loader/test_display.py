"""The display of running writers."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from ringlog.clients.figures import State
from ringlog.loader.display import Board
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Table
from ringlog.schema.facility_files.facility_file import load_facility

FACILITY = Path(__file__).with_name("facility.toml")


def shown(board: Board, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(board.grid(board.rates(), height))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_table_shows_each_writer_in_eighty_columns() -> None:
    tables = load_facility(FACILITY).tables[:3]
    statistics = {table.name: Statistics(state=State.RUNNING) for table in tables}
    board = Board(tables, statistics)
    board.rates()
    statistics["beam"].seq_no = 17
    statistics["beam"].answered(0.00123)
    statistics["magnet"].refused = 2
    statistics["magnet"].message = "error 8152: value too long for type character varying(12)"
    lines = shown(board, 80, 24)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("3 of 3 writers running")
    # those with problems come first
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["magnet", "running"],
        ["beam", "running"],
        ["every_type", "running"],
    ]
    assert "2 refused, error 8152" in lines[-3]
    assert "17/40" in lines[-2]
    assert "1.23 ms" in lines[-2]


def test_the_rate_of_the_data_is_that_of_the_stored_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringlog.loader.display.time.monotonic", iter([0.0, 10.0, 20.0]).__next__)
    wave = Table("wave", 10, 1.0, (Column("c", "t/c", "real[]", points=1000),))
    statistics = {"wave": Statistics(state=State.RUNNING)}
    board = Board([wave], statistics)
    board.rates()
    statistics["wave"].acknowledged, statistics["wave"].bytes = 20, 80_000
    assert "2.0 rows/s, 8.0 kB/s" in board.summary(board.rates())


def test_many_writers_stay_within_the_terminal() -> None:
    column = Column("c", "t/c", "real")
    tables = [Table(f"table_{number:02}", rows=10, cycle=1.0, columns=(column,)) for number in range(60)]
    statistics = {table.name: Statistics(state=State.RUNNING) for table in tables}
    statistics["table_59"].state = State.RECONNECTING
    lines = shown(Board(tables, statistics), 100, 24)
    assert len(lines) <= 24
    assert any(line.startswith("table_59") for line in lines)
    assert lines[-1] == "and 42 more"
