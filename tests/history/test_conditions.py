"""The times of a condition equal those that numpy finds in all rows."""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray
from psycopg import errors

from ringlog.history.closing import close
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, SampleSignal, SampleTable, Table

from .conftest import Databases, template

BEGIN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SUMMARISED, END = BEGIN + timedelta(days=4), BEGIN + timedelta(days=6)
SIGNALS = ("SR:CURRENT", "SR:MODE", "SR:STATE", "SR:SHUTTER", "SR:VACUUM")
STATES = {"off": 0, "user": 3}
CASES = 1000
SEED = 20260304

COMPARE = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

Moments = NDArray[np.int64]
Truth = NDArray[np.int8]
"""1 holds, -1 fails, 0 unknown"""


def fill(_: sa.Engine, connection: psycopg.Connection) -> None:
    """Rows about every 40 s with pauses; two days are not summarised, and late ones are among the others."""
    chance = random.Random(SEED)
    moment = current = state = 0.0
    mode = "user"
    rows, samples = [], []
    while moment < 6 * 86_400:
        quiet = chance.random() < 0.997
        moment += chance.uniform(1, 80) if quiet else chance.uniform(600, 40_000)
        current = current + chance.gauss(0, 0.2) if quiet else chance.uniform(-15, 15)
        mode = mode if chance.random() < 0.99 else chance.choice(["user", "study", "it's"])
        state = state if chance.random() < 0.99 else chance.choice([0, 1, 3])
        values = (current, mode, int(state), int(state) % 2 == 1)
        absent = chance.random()
        given = [None if absent < 0.001 else value for value in values]
        if 0.001 <= absent < 0.002:
            given[0] = math.nan
        rows.append((BEGIN + timedelta(seconds=round(moment, 6)), *given))
        if chance.random() < 0.1:
            value = chance.choice([None, math.nan]) if chance.random() < 0.02 else float(round(current))
            samples.append(
                (int((BEGIN.timestamp() + round(moment)) * 10**9) + chance.randrange(10**9), value)
            )
    late = {chance.randrange(len(rows) // 2) for _ in range(40)}

    def put(chosen: list[tuple[object, ...]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                "select ringlog.put_ring(row (1, %s, %s, %s, %s, %s, null)::online.ring)", chosen
            )

    def put_samples(chosen: list[tuple[int, float | None]]) -> None:
        (number,) = connection.execute("select number from ringlog.sample_signal").fetchone() or ()
        connection.execute(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s::float8[], null)",
            [[number] * len(chosen), [time for time, _ in chosen], [value for _, value in chosen]],
        )

    with connection.transaction():
        put([row for index, row in enumerate(rows) if index not in late])
        put_samples(samples[:500] + samples[510:])
    summarise(connection.info.dsn, SUMMARISED, enough=1)
    close(connection.info.dsn, pauses=0)
    with connection.transaction():
        put([row for index, row in enumerate(rows) if index in late])
        put_samples(samples[500:510])


@pytest.fixture(scope="module")
def filled(prepared_databases: Databases) -> Iterator[str]:
    columns = (
        Column("current", SIGNALS[0], "double"),
        Column("mode", SIGNALS[1], "varchar(8)"),
        Column("state", SIGNALS[2], "int", states=tuple((number, name) for name, number in STATES.items())),
        Column("shutter", SIGNALS[3], "bit"),
        Column("spare", "SR:SPARE", "double"),
    )
    samples = SampleTable("vac", ColumnType.of("double"), signals=(SampleSignal(SIGNALS[4]),))
    facility = Facility(
        "test",
        "UTC",
        (Table("ring", 10, 40.0, columns, summaries=(60, 600, 3600, 86_400)),),
        sample_tables=(samples,),
    )
    with template(prepared_databases, facility, fill) as name:
        yield name


@pytest.fixture
def site(filled: str, conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        yield connection


def micro(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class Oracle:
    """All rows of the signals, and conditions over them by numpy."""

    def __init__(self, site: psycopg.Connection) -> None:
        self.rows: dict[str, tuple[Moments, NDArray[np.object_]]] = {}
        for signal, column in zip(SIGNALS, ("current", "mode", "state", "shutter::integer"), strict=False):
            found = site.execute(
                f"select time, {column} from weeks.ring order by time, seq_no".encode()
            ).fetchall()
            self.rows[signal] = self._of(found)
        self.rows[SIGNALS[4]] = self._of(
            site.execute("select time, value from ringlog.get_vac('SR:VACUUM')").fetchall()
        )

    @staticmethod
    def _of(rows: list[tuple[object, ...]]) -> tuple[Moments, NDArray[np.object_]]:
        times = np.array([micro(time) for time, _ in rows if isinstance(time, datetime)], np.int64)
        return times, np.array([value for _, value in rows], object)

    def borders(self, gap: int | None) -> Moments:
        """Every moment at which some condition may begin or end."""
        times = [times for times, _ in self.rows.values()]
        return np.unique(np.concatenate([*times, *([] if gap is None else [each + gap for each in times])]))

    def compared(self, signal: str, operator: str, value: object, at: Moments, gap: int | None) -> Truth:
        times, values = self.rows[signal]
        wanted = STATES[str(value)] if signal == "SR:STATE" and isinstance(value, str) else value
        index = np.searchsorted(times, at, side="right") - 1
        of_row = np.array([0 if each is None or each != each else -1 for each in values], np.int8)
        known = of_row != 0
        of_row[known] = np.where(COMPARE[operator](values[known], wanted).astype(bool), 1, -1)
        truth = np.where(index >= 0, of_row[index], 0)
        if gap is not None:
            truth = np.where(at - times[index] < gap, truth, 0)
        return truth.astype(np.int8)


def comparison(chance: random.Random) -> tuple[str, str, object, str]:
    signal = chance.choice(SIGNALS)
    operator = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    value: object = round(chance.uniform(-6, 6), 1)
    if signal == "SR:MODE" or (signal == "SR:STATE" and chance.random() < 0.5):
        operator = chance.choice(["=", "<>"])
        value = chance.choice(["user", "study", "it's"] if signal == "SR:MODE" else [*STATES])
    elif signal != "SR:CURRENT":
        value = chance.choice([0, 1, 3])
    text = f"{signal} {operator} " + (
        "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
    )
    return signal, operator, value, text


def condition(
    chance: random.Random, oracle: Oracle, at: Moments, gap: int | None, depth: int = 0
) -> tuple[str, Truth]:
    """A random condition, and where it holds."""
    kind = chance.random()
    if depth == 3 or kind < 0.4:
        signal, operator, value, text = comparison(chance)
        return text, oracle.compared(signal, operator, value, at, gap)
    one, truth = condition(chance, oracle, at, gap, depth + 1)
    if kind < 0.55:
        return f"not ({one})", (-truth).astype(np.int8)
    other, second = condition(chance, oracle, at, gap, depth + 1)
    if kind < 0.8:
        return f"({one}) AND ({other})", np.minimum(truth, second)
    return f"({one}) or ({other})", np.maximum(truth, second)


def spans(
    site: psycopg.Connection, text: str, start: int, end: int, gap: int | None
) -> list[tuple[int, int]]:
    query = (
        "select (extract(epoch from begins) * 1000000)::bigint, (extract(epoch from ends) * 1000000)::bigint"
        " from ringlog.get_spans(%s, 'epoch'::timestamptz + %s * interval '1 us',"
        " 'epoch'::timestamptz + %s * interval '1 us', %s)"
    )
    return site.execute(query, [text, start, end, None if gap is None else gap / 1e6]).fetchall()


@pytest.mark.parametrize("cases", [40, pytest.param(CASES, marks=pytest.mark.long)])
def test_random_conditions(reading: psycopg.Connection, cases: int) -> None:
    oracle = Oracle(reading)
    chance = random.Random(SEED)
    found_spans = 0
    for case in range(cases):
        gap = chance.choice([None, None, 30, 90, 600, 3600, 7200, 20_000])
        gap = None if gap is None else gap * 1_000_000
        start = micro(BEGIN) + chance.randrange(-4 * 3_600_000_000, 6 * 86_400_000_000)
        end = start + chance.choice([1, 60_000_000, 7_200_000_000, chance.randrange(1, 6 * 86_400_000_000)])
        if chance.random() < 0.3:
            start, end = (each // 3_600_000_000 * 3_600_000_000 for each in (start, end + 3_600_000_000))
        borders = oracle.borders(gap)
        at = np.unique(np.concatenate([[start], borders[(borders > start) & (borders < end)]]))
        text, truth = condition(chance, oracle, at, gap)
        found = spans(reading, text, start, end, gap)
        change = np.diff(np.concatenate([[0], (truth == 1).astype(np.int8), [0]]))
        until = np.append(at, end)
        wanted = [*zip(until[change == 1].tolist(), until[change == -1].tolist(), strict=True)]
        assert found == wanted, (case, text, start, end, gap)
        found_spans += len(found)
    assert found_spans > 10 * cases


@pytest.mark.parametrize("cases", [20, pytest.param(CASES // 5, marks=pytest.mark.long)])
def test_statistics_of_random_conditions(reading: psycopg.Connection, cases: int) -> None:
    """Figures of the rows in the spans, and the mean weighted by the time for which each is held."""
    oracle = Oracle(reading)
    chance = random.Random(SEED + 1)
    weighed = 0
    for case in range(cases):
        gap = chance.choice([None, 90_000_000, 7_200_000_000])
        start = micro(BEGIN) + chance.randrange(5 * 86_400_000_000)
        end = start + chance.randrange(1, 2 * 86_400_000_000)
        signal = chance.choice([SIGNALS[0], SIGNALS[2], SIGNALS[4]])
        borders = oracle.borders(gap)
        at = np.unique(np.concatenate([[start], borders[(borders > start) & (borders < end)]]))
        text, truth = condition(chance, oracle, at, gap)
        times, values = oracle.rows[signal]
        numbers = values.astype(float)
        inside = (times >= start) & (times < end)
        inside[inside] = truth[np.searchsorted(at, times[inside], side="right") - 1] == 1
        nulls = np.array([value is None for value in values])
        good = numbers[inside & ~np.isnan(numbers)]
        index = np.searchsorted(times, at, side="right") - 1
        held = np.where(index >= 0, numbers[index], np.nan)
        if gap is not None:
            held = np.where(at - times[index] < gap, held, np.nan)
        seconds = np.diff(np.append(at, end)) / 1e6
        of_mean = (truth == 1) & ~np.isnan(held)
        moment = "'epoch'::timestamptz + %s * interval '1 us'"
        (found,) = reading.execute(
            "select n, min, max, mean, std, nans, nulls, seconds, time_mean"
            f" from ringlog.get_statistics_while(%s, %s, {moment}, {moment}, %s, true)".encode(),
            [signal, text, start, end, None if gap is None else gap / 1e6],
        ).fetchall()
        figures = [good.min(), good.max(), good.mean(), good.std()] if len(good) else [None] * 4
        nans = int((np.isnan(numbers) & ~nulls & inside).sum())
        whole = seconds[truth == 1].sum() if (truth == 1).any() else None
        weights = seconds[of_mean]
        mean = (held[of_mean] * weights).sum() / weights.sum() if len(weights) else None
        wanted = [len(good), *figures, nans, int((nulls & inside).sum()), whole, mean]
        near = [each if each is None else pytest.approx(each, rel=1e-9, abs=1e-9) for each in wanted]
        assert [*found] == near, (case, text, signal, start, end, gap)
        weighed += mean is not None
    assert weighed > cases // 4


SYNTAX = errors.SyntaxError


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "SR:CURRENT > ",
            SYNTAX,
            "character 14: a number, or a text in single quotes is expected, not the end",
        ),
        ("SR:CURRENT 10", SYNTAX, "character 12: one of = <> < <= > >= is expected, not '10'"),
        ("(SR:CURRENT > 10", SYNTAX, r"character 17: \) is expected, not the end"),
        ("SR:CURRENT > 10) or", SYNTAX, r"character 16: and, or, or the end is expected, not '\)'"),
        ("SR:CURRENT > 10 SR:STATE = 1", SYNTAX, r"character 17: and, or, \) or the end"),
        ("SR:CURRENT > 10 and", SYNTAX, "character 20: the name of a signal is expected"),
        ("and SR:CURRENT > 10", SYNTAX, "character 1: the name of a signal is expected, not 'and'"),
        ("SR:MODE < 'user'", SYNTAX, "character 9: = or <> before a text is expected, not '<'"),
        ("SR:MODE = 'user", SYNTAX, "character 11: '''user' is not understood"),
        ("SR:CURRENT > SR:VACUUM", SYNTAX, "character 14: a number, or a text in single quotes"),
        ("", SYNTAX, "character 1: the name of a signal is expected, not the end"),
        (
            "SR:CURRENT > 10 or SR:NOBODY = 1",
            errors.UndefinedObject,
            "character 20: there is no signal 'SR:NOBODY'",
        ),
        ("SR:MODE = 1", errors.DatatypeMismatch, "character 1: signal 'SR:MODE' is a text"),
        (
            "SR:STATE = 'usr'",
            errors.InvalidParameterValue,
            "character 1: signal 'SR:STATE' has no state 'usr'",
        ),
        ("SR:CURRENT = 'user'", errors.InvalidParameterValue, "signal 'SR:CURRENT' has no state 'user'"),
    ],
)
def test_what_is_not_understood(
    reading: psycopg.Connection, text: str, error: type[psycopg.Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        reading.execute("select * from ringlog.get_spans(%s)", [text])


def test_brackets_and_precedence(reading: psycopg.Connection) -> None:
    """`not` before `and` before `or`; names in quotes, operators without blanks, capital letters."""
    start, end = micro(BEGIN), micro(END)

    def of(text: str) -> list[tuple[int, int]]:
        return spans(reading, text, start, end, None)

    high, user, on = "SR:CURRENT > 1", "SR:STATE = 'user'", "SR:SHUTTER = 1"
    assert (
        of(f"{high} or {user} and {on}")
        == of(f"{high} or ({user} and {on})")
        != of(f"({high} or {user}) and {on}")
    )
    assert of(f"not {high} and {user}") == of(f"(not {high}) and {user}") != of(f"not ({high} and {user})")
    assert of('NOT "SR:CURRENT">1.0e0 AnD SR:STATE!=0') == of("SR:CURRENT <= +1 and not SR:STATE = 0")


def test_a_signal_that_moved_and_one_that_ended(site: psycopg.Connection) -> None:
    """From a time on the current is in another column; the shutter is retired then."""
    oracle, chance = Oracle(site), random.Random(SEED)
    moved = BEGIN + timedelta(days=2, seconds=1234)
    site.execute("update weeks.ring set spare = -current")
    site.execute("update ringlog.summarised set until = %s where table_name = 'ring'", [BEGIN])
    site.execute("update ringlog.signal set valid_from = '2026-01-01'")
    close_one = "update ringlog.signal set valid_to = %s where signal = any(%s)"
    site.execute(close_one, [moved, ["SR:CURRENT", "SR:SPARE", "SR:SHUTTER"]])
    site.execute(
        "insert into ringlog.signal (signal, table_name, column_name, type, unit, description, valid_from)"
        " select 'SR:CURRENT', table_name, column_name, type, unit, description, %s"
        " from ringlog.signal where signal = 'SR:SPARE'",
        [moved],
    )
    times, values = oracle.rows["SR:CURRENT"]
    later = times >= micro(moved)
    values[later] = [None if value is None else -value for value in values[later]]
    for gap in (None, 90_000_000, 7_200_000_000):
        start, end = micro(BEGIN) + chance.randrange(10**11), micro(END)
        borders = np.append(oracle.borders(gap), micro(moved))
        at = np.unique(np.concatenate([[start], borders[(borders > start) & (borders < end)]]))
        for signal, operator, value in (
            ("SR:CURRENT", ">", 1),
            ("SR:CURRENT", "<>", 0.0),
            ("SR:SHUTTER", "=", 1),
        ):
            truth = oracle.compared(signal, operator, value, at, gap) == 1
            truth &= (signal == "SR:CURRENT") | (at < micro(moved))
            change = np.diff(np.concatenate([[0], truth.astype(np.int8), [0]]))
            until = np.append(at, end)
            wanted = [*zip(until[change == 1].tolist(), until[change == -1].tolist(), strict=True)]
            assert spans(site, f"{signal} {operator} {value}", start, end, gap) == wanted != []
