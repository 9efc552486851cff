"""Trends of samples: `python -m ringlog_lab.sample_trends DSN [DAYS]`, in an empty database of a superuser.

One signal with a sample each second, merged by hour: the time of get_trend by day, and of get_statistics of
all, from the samples and from their summaries, and the time and space that the summaries take.
"""

import sys
import time
from datetime import UTC, datetime, timedelta

import psycopg

from ringlog.history.summaries.summarising import summarise
from ringlog.schema import session
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Facility, SampleSignal, SampleTable
from ringlog.schema.install import install

BEGIN = datetime(2025, 1, 6, tzinfo=UTC)
_HOUR = """
insert into weeks.vac (signal, n, "time", begins, times, samples)
select
  number, 3600, ringlog.moment(max(ns)), ringlog.moment(min(ns)), array_agg(ns order by ns),
  array_agg(value order by ns)
from ringlog.sample_signal, generate_series(%s, %s - 1) as hour
cross join lateral (
  select (%s + hour * 3600::bigint + second) * 1000000000 + (random() * 1e5)::bigint as ns, random() as value
  from generate_series(0, 3599) as second
) as sample
group by number, hour
"""


def main(dsn: str, days: int = 365) -> None:
    """Prints the figures."""
    end = BEGIN + timedelta(days=days)
    tables = (SampleTable("vac", ColumnType.of("double"), signals=(SampleSignal("gauge"),)),)
    install(session.engine(dsn), Facility("trends", "UTC", (), sample_tables=tables))
    with session.connect(dsn, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        for week in range(0, days, 7):
            connection.execute("select ringlog.make_week('vac', %s)", [BEGIN + timedelta(days=week)])
            hours = 24 * week, 24 * min(week + 7, days)
            connection.execute(_HOUR, [*hours, int(BEGIN.timestamp())])
        connection.execute("vacuum analyze weeks.vac")
        trend = "select n, min, max, mean from ringlog.get_trend('gauge', %s, %s, %s)"
        statistics = "select n, mean, std from ringlog.get_statistics('gauge', %s, %s)"
        queries: dict[str, tuple[str, list[object]]] = {
            "get_trend by day": (trend, [BEGIN, end, days + 1]),
            "get_statistics": (statistics, [BEGIN + timedelta(minutes=7), end - timedelta(minutes=7)]),
        }
        before = {name: _timed(connection, *query) for name, query in queries.items()}
        begun = time.monotonic()
        samples = summarise(dsn, end + timedelta(hours=2), enough=1)["vac"]
        seconds = time.monotonic() - begun
        (size,) = connection.execute("select pg_total_relation_size('summary.vac')").fetchone() or (0,)
        print(
            f"{samples} samples are summarised in {seconds:.1f} s; their summaries have {size / 1e6:.2f} MB"
        )
        for name, query in queries.items():
            found, rows = _timed(connection, *query)
            earlier, others = before[name]
            assert [row[0] for row in rows] == [row[0] for row in others]
            print(
                f"{name}, {len(rows)} rows: {earlier * 1000:.0f} ms of samples,"
                f" {found * 1000:.1f} of summaries"
            )


def _timed(
    connection: psycopg.Connection, query: str, values: list[object]
) -> tuple[float, list[tuple[object, ...]]]:
    """Seconds of the fastest of three, and the rows."""
    seconds = []
    for _ in range(3):
        begun = time.monotonic()
        rows = connection.execute(query.encode(), values).fetchall()
        seconds.append(time.monotonic() - begun)
    return min(seconds), rows


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
