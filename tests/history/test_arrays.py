"""Arrays of numbers as bytes of PostgreSQL, by ringlog's function and by its own."""

import struct
from itertools import pairwise

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from ringlog.history.arrays import HEAD, Unpack, in_memory, in_memory_cut, sent

FORMS = [("ringlog.array_bytes", in_memory), ("pg_catalog.array_send", sent)]
TYPES = {
    "real": "f4",
    "double precision": "f8",
    "smallint": "i2",
    "integer": "i4",
    "bigint": "i8",
    "boolean": "u1",
}
VALUES: list[list[int | None]] = [
    [],
    [1],
    [None],
    [None, 1],
    [0, 1, None],
    [*range(2)] * 40,
    [None, *[1, 0, None] * 30, None],
]


@pytest.mark.parametrize(("function", "unpack"), FORMS)
@pytest.mark.parametrize("kind", TYPES)
def test_values_and_nulls(every_type: psycopg.Connection, function: str, unpack: Unpack, kind: str) -> None:
    for expected in VALUES:
        values, there = unpack(
            packed(every_type, function, f"%s::integer[]::{kind}[]", expected), TYPES[kind]
        )
        assert values.dtype == np.dtype(TYPES[kind])
        is_there = [value is not None for value in expected]
        assert ([True] * len(values) if there is None else there.tolist()) == is_there
        assert [value if ok else None for value, ok in zip(values, is_there, strict=True)] == expected


@pytest.mark.parametrize(("function", "unpack"), FORMS)
def test_values_are_exact(every_type: psycopg.Connection, function: str, unpack: Unpack) -> None:
    doubles = [0.1, -1e308, 5e-324, float("inf"), float("-inf")]
    content = packed(every_type, function, "%s::double precision[]", doubles)
    assert unpack(content, "f8")[0].tolist() == doubles
    assert np.isnan(unpack(packed(every_type, function, "array['nan'::real]"), "f4")[0]).all()
    whole = [-(2**63), 2**63 - 1]
    assert unpack(packed(every_type, function, "%s::bigint[]", whole), "i8")[0].tolist() == whole
    times = packed(every_type, function, "array[timestamptz '2000-01-01 00:00:01.000002+00']")
    assert unpack(times, "i8")[0].tolist() == [1_000_002]


@pytest.mark.parametrize(("function", "unpack"), FORMS)
def test_arrays_of_two_dimensions_are_refused(
    every_type: psycopg.Connection, function: str, unpack: Unpack
) -> None:
    with pytest.raises(ValueError, match="more than one dimension"):
        unpack(packed(every_type, function, "array[[1, 2], [3, 4]]"), "i4")


def test_the_memory_of_a_machine_of_the_other_byte_order() -> None:
    """ArrayType of src/include/utils/array.h: 701 is double precision; the values begin at a multiple of
    8."""
    values, there = in_memory(struct.pack(">iiIii2d", 1, 0, 701, 2, 1, 0.5, -3), "f8")
    assert (values.tolist(), there) == ([0.5, -3], None)
    assert in_memory(struct.pack(">iiI", 0, 0, 701), "f8")[0].tolist() == []
    values, there = in_memory(struct.pack(">iiIiiB7xd", 1, 32, 701, 2, 1, 0b10, -3), "f8")
    assert there is not None
    assert (values[1], there.tolist()) == (-3, [False, True])


@pytest.mark.parametrize("kind", TYPES)
def test_many_arrays_at_once(every_type: psycopg.Connection, kind: str) -> None:
    arrays = [[1, 0, 1], None, [], [0], None, [*range(2)] * 40]
    contents = [
        None
        if array is None
        else packed(every_type, "ringlog.array_bytes", f"%s::integer[]::{kind}[]", array)
        for array in arrays
    ]
    for begin in (0, 1, 4):
        bounds, values = in_memory_cut(*(column[begin:] for column in cut(contents)), TYPES[kind])
        assert values.dtype == np.dtype(TYPES[kind])
        found = [values[at:end].tolist() for at, end in pairwise(bounds)]
        assert found == [array or [] for array in arrays[begin:]]


def test_each_of_many_arrays_is_checked(every_type: psycopg.Connection) -> None:
    good, nulls, plane = (
        packed(every_type, "ringlog.array_bytes", array)
        for array in ("array[1, 2]", "array[1, null]", "array[[1, 2], [3, 4]]")
    )
    with pytest.raises(ValueError, match="nulls"):
        in_memory_cut(*cut([good, nulls]), "i4")
    with pytest.raises(ValueError, match="more than one dimension"):
        in_memory_cut(*cut([good, plane]), "i4")
    with pytest.raises(ValueError, match="length"):
        in_memory_cut(*cut([good, good[:-4]]), "i4")


def test_many_arrays_of_a_machine_of_the_other_byte_order() -> None:
    doubles = struct.pack(">iiIii2d", 1, 0, 701, 2, 1, 0.5, -3)
    bounds, values = in_memory_cut(*cut([doubles, struct.pack(">iiI", 0, 0, 701), doubles]), "f8")
    assert (bounds.tolist(), values.tolist()) == ([0, 2, 2, 4], [0.5, -3, 0.5, -3])


def cut(contents: list[bytes | None]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    heads = [None if content is None else content[:HEAD] for content in contents]
    values = [None if content is None else content[HEAD:] for content in contents]
    return pa.array(heads, pa.binary()), pa.array(values, pa.binary())


def packed(connection: psycopg.Connection, function: str, array: str, *values: object) -> bytes:
    row = connection.execute(f"select {function}({array})".encode(), values).fetchone()
    assert row is not None
    return bytes(row[0])
