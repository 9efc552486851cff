"""Waveforms of sources and programs: packed exactly, kept in the spool, sent whole."""

import math
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlog.clients import Refused, call, connect
from ringlog.clients.readings import Reading, packed, restored, stored
from ringlog.clients.writer import Writer
from ringlog.loader.sources.signals import signal
from ringlog.loader.sources.values import fit
from ringlog.schema.facility import Column
from servers import RunningServer, serving

POINTS = 2000
BEGIN = datetime(2026, 6, 7, 8, 9, 10, 123456, UTC)
CODES = {"bit[]": "?", "smallint[]": "h", "int[]": "i", "bigint[]": "q", "real[]": "f", "double[]": "d"}


def column(type: str, points: int = POINTS) -> Column:
    return Column("trace", "scope/trace", type, points=points)


@pytest.mark.parametrize(
    ("type", "points"),
    [
        ("bit[]", [True, False, 1]),
        ("smallint[]", [-32768, 32767]),
        ("int[]", [-(2**31), 2**31 - 1]),
        ("bigint[]", [-(2**63), 2**63 - 1]),
        ("real[]", [1.5, -math.inf, 3.4e38]),
        ("double[]", [0.1, 1e308, math.inf]),
    ],
)
def test_points_are_packed_little_endian(type: str, points: Sequence[float]) -> None:
    expected = struct.pack(f"<{len(points)}{CODES[type]}", *points)
    assert packed(points, column(type)) == expected
    assert packed(np.array(points), column(type)) == expected
    assert packed(expected, column(type)) == expected


def test_an_image_is_sent_row_by_row() -> None:
    assert fit(np.array([[1, 2], [3, 4]], dtype=np.uint16), column("smallint[]")) == struct.pack(
        "<4h", 1, 2, 3, 4
    )


@pytest.mark.parametrize(
    ("type", "points", "why"),
    [
        ("smallint[]", [1, 40_000], "point 1 is 40000, which is not of type smallint"),
        ("smallint[]", np.array([1, 40_000]), "point 1 is 40000, which is not of type smallint"),
        ("int[]", [1.5], "1.5 is not a whole number"),
        ("int[]", np.array([1.0, 1.5]), "point 1 is 1.5, which is not of type int"),
        ("real[]", [1.0, 1e39], "point 1 is 1e\\+39, which is not of type real"),
        ("real[]", np.array([1.0, 1e39]), "point 1 is 1e\\+39, which is not of type real"),
        ("bit[]", [0, 2], "a point of bit"),
        ("double[]", b"1234567", "7 bytes are not a whole number"),
        ("double[]", [0.0] * (POINTS + 1), "2001 points are more than the 2000"),
        ("double[]", "1,2", "str is not a waveform"),
        ("double[]", 1.0, "float is not a waveform"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_values_that_a_column_cannot_hold_are_refused(type: str, points: Any, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        packed(points, column(type))


READINGS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()


@given(st.lists(READINGS))
def test_a_spool_returns_its_rows_unchanged(readings: list[Reading]) -> None:
    assert restored(stored(readings)) == tuple(readings)


def test_simulated_pulses_fit_their_columns() -> None:
    for type in CODES:
        source = signal(1, column(type))
        for seconds in (0.0, 17.3, 59.9):
            assert (
                len(packed(source(seconds, Random(1)), column(type))) == struct.calcsize(CODES[type]) * POINTS
            )


@pytest.mark.long
def test_frames_written_are_frames_in_the_log(temporary_directory: Path, tmp_path: Path) -> None:
    """Through the spool, a restart of the server and a new writer: every point of every frame, once."""
    facility = tmp_path / "facility.toml"
    facility.write_text(
        f"""
        [[table]]
        name = "scope"
        rows = 100
        cycle = 0.1
        column = [
            {{ name = "gain", type = "real" }},
            {{ name = "trace", type = "double[]", points = {POINTS} }},
        ]
        """
    )
    frames = [np.random.default_rng(number).normal(size=POINTS) for number in range(60)]
    frames[7][3] = math.nan
    moments = [BEGIN + timedelta(seconds=number) for number in range(60)]
    data = temporary_directory / "frames"
    password_file = tmp_path / "password"

    def write(server: RunningServer, numbers: Sequence[int], grace: float) -> None:
        password_file.write_text(server.writer.password)
        password_file.chmod(0o600)
        url = f"tds://{server.writer.user}@{server.host}:{server.port}"
        with Writer.open(url, facility, "scope", tmp_path / "spool", password_file=password_file) as writer:
            for number in numbers:
                writer.put(moments[number], gain=1.0, trace=frames[number])
            assert writer.drain(grace)

    with serving(data, facility=facility) as server:
        port = server.port
        write(server, range(30), 60)
    with serving(data, "--listen", f"127.0.0.1:{port}", facility=facility) as server:
        write(server, range(30, 60), 60)
        by_every_driver(server)
        found = server.sql(
            'select "time", trace from log.scope where gain = 1 order by "time"', login=server.reader
        )
    assert [moment for moment, _ in found] == moments
    for frame, (_, trace) in zip(frames, found, strict=True):
        assert np.array_equal(frame, trace, equal_nan=True)


def by_every_driver(server: RunningServer) -> None:
    """ringlog.call takes packed points and returns numpy arrays, with every driver."""
    trace = np.array([0.1, math.nan, -math.inf, 1e308])
    urls = [
        f"tds://{{}}@{server.host}:{server.port}",
        f"tds+ctds://{{}}@{server.host}:{server.port}",
        f"postgresql://{{}}@{server.host}:{server.postgres_port}/ringlog",
    ]
    for number, url in enumerate(urls):
        moment = BEGIN + timedelta(days=number + 1)
        with connect(url.format(server.writer.user), server.writer.password) as connection:
            row = {"seq_no": number + 1, "time": moment, "gain": 2.0}
            assert call(connection, "put_scope", **row, trace=trace.tobytes()).status == 0
            with pytest.raises(Refused, match="7 bytes are not a whole number"):
                call(connection, "put_scope", **row, trace=b"1234567")
        with connect(url.format(server.reader.user), server.reader.password) as connection:
            for procedure, arguments in (("get_waveform", ("scope/trace",)), ("get_scope", (number + 1,))):
                answer = call(connection, procedure, *arguments)
                (found,) = answer.rows[0][1 if procedure == "get_waveform" else 3 :]
                assert isinstance(found, np.ndarray)
                assert np.array_equal(found, trace, equal_nan=True)
