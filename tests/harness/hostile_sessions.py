"""Sessions that use as much memory as possible, next to a writer whose puts are timed."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psutil
import pymssql

from servers import Login, RunningServer

ERRORS = (pymssql.Error, pymssql._mssql.MSSQLException)

BIG = "replicate(cast('x' as varchar(max)), {})"
LOOPS = (
    # one variable, many of them, a value at once
    f"declare @a varchar(max) = {BIG.format(1000)} while 1 = 1 set @a = @a + @a",
    "declare "
    + ", ".join(f"@v{index} varchar(max)" for index in range(200))
    + "".join(f" set @v{index} = {BIG.format(1_000_000)}" for index in range(200)),
    f"declare @a varchar(max) set @a = {BIG.format(600_000_000)}",
    f"select {BIG.format(300_000_000)}",
    f"select len({BIG.format(900_000_000)})",
    # a variable in each level of dynamic text
    f"declare @a varchar(max) = {BIG.format(20_000_000)} "
    "exec sp_executesql N'declare @b varchar(max) set @b = @p "
    "exec sp_executesql N''declare @c varchar(max) set @c = @p set @c = @c + @c'', "
    "N''@p varchar(max)'', @p = @b', N'@p varchar(max)', @p = @a",
    # one variable many times
    f"declare @a varchar(max) = {BIG.format(30_000_000)} select " + ", ".join(["@a"] * 40),
    f"declare @a varchar(max) = {BIG.format(10_000_000)} exec sp_executesql N'select 1', N'"
    + ", ".join(f"@p{number} varchar(max)" for number in range(40))
    + "'"
    + ", @a" * 40,
    # messages, tables, rows that are kept
    "declare @i int = 0 while @i < 10000 begin print 'a message' set @i = @i + 1 end",
    "declare @t table (a varchar(max)) declare @i int = 0 "
    f"while @i < 100 begin insert @t values ({BIG.format(100_000)}) set @i = @i + 1 end",
    "create table #t (a varchar(max)) insert #t exec sp_executesql N'"
    + " union all ".join(f"select {BIG.format(8_000_000 + more)}" for more in range(3)).replace("'", "''")
    + "'",
)


@dataclass
class Seen:
    """The result of the attack."""

    numbers: Counter[int] = field(default_factory=Counter)
    """of the errors that the hostile sessions got; 0: a batch ended without"""
    most_of_gateway: int = 0
    """bytes of memory, of all threads of `ringlog serve`"""
    most_of_a_backend: int = 0
    """bytes of memory that a process of PostgreSQL has for itself"""
    latencies: list[float] = field(default_factory=list)
    """seconds of each put"""
    failed: list[str] = field(default_factory=list)
    """puts that were refused"""


def attack(
    server: RunningServer, sessions: int, seconds: float, put: Callable[[pymssql.Cursor, int], None]
) -> Seen:
    """`sessions` of a reader's login run LOOPS for so long, each a different one in turn, while a writer
    writes."""
    seen, stop = Seen(), threading.Event()
    threads = [
        threading.Thread(target=_loop, args=(server, server.reader, index, seen, stop))
        for index in range(sessions)
    ]
    threads += [threading.Thread(target=_put, args=(server, put, seen, stop))]
    for thread in threads:
        thread.start()
    process = psutil.Process(server.process.pid)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            seen.most_of_gateway = max(seen.most_of_gateway, process.memory_info().rss)
            for child in process.children(recursive=True):
                with suppress(psutil.Error):
                    if child.name() == "postgres":
                        own = child.memory_info()
                        seen.most_of_a_backend = max(seen.most_of_a_backend, own.rss - own.shared)
            time.sleep(0.2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return seen


def _loop(server: RunningServer, login: Login, index: int, seen: Seen, stop: threading.Event) -> None:
    while not stop.is_set():
        with suppress(*ERRORS), server.connect(login.user, login.password, timeout=15) as connection:
            while not stop.is_set():
                index += 1
                try:
                    cursor = connection.cursor()
                    cursor.execute(LOOPS[index % len(LOOPS)])
                    while cursor.nextset():
                        pass
                    seen.numbers[0] += 1
                except ERRORS as error:
                    number = error.args[0]
                    seen.numbers[number[0] if isinstance(number, tuple) else number] += 1
                    if not connection._conn.connected:
                        break


def _put(
    server: RunningServer, put: Callable[[pymssql.Cursor, int], None], seen: Seen, stop: threading.Event
) -> None:
    with server.connect(server.writer.user, server.writer.password, timeout=60) as connection:
        cursor = connection.cursor()
        for number in range(10**9):
            if stop.is_set():
                return
            began = time.monotonic()
            try:
                put(cursor, number)
            except ERRORS as error:
                seen.failed.append(str(error.args))
                return
            seen.latencies.append(time.monotonic() - began)
            time.sleep(0.02)


def put_row(cursor: pymssql.Cursor, number: int) -> None:
    """Of the facility of the tests."""
    at = datetime(2034, 1, 1) + timedelta(seconds=number)
    cursor.callproc("put_sr_rf", (1 + number % 10, at, number / 4, number))
