"""SQLite's test suite: which records run, and which results are the expected ones."""

from pathlib import Path
from typing import Any

import pytest

from ringlog_lab.sqllogictest.records import Record, is_expected, records_of

FILE = """
hash-threshold 8

# a comment
statement ok
create table t (n integer,
  name text)

onlyif mysql # types of its own
query I nosort
select 1 div 1
----
1

skipif mysql
onlyif mssql
query IT rowsort label-1
select n, name
from t
----
1
a
10
(empty)

skipif mssql
statement error
drop view t

statement error
drop table u

halt

query I nosort
select 1
----
1
"""


def test_records_of_other_servers_and_after_a_halt_do_not_run(tmp_path: Path) -> None:
    file = tmp_path / "t.test"
    file.write_text(FILE)
    assert list(records_of(file)) == [
        Record(4, "create table t (n integer,\n  name text)"),
        Record(15, "select n, name\nfrom t", False, "IT", "rowsort", ("1", "a", "10", "(empty)")),
        Record(30, "drop table u", fails=True),
    ]


# the digest is that of `printf '1\n2\n3\n' | md5sum`
HASHED = "3 values hashing to c0710d6b4f15dfa88f600b0e6b624077"


@pytest.mark.parametrize(
    ("types", "sort", "expected", "rows", "is_equal"),
    [
        ("I", "nosort", ("2", "1"), [(2,), (1,)], True),
        ("I", "nosort", ("1", "2"), [(2,), (1,)], False),
        ("I", "nosort", ("1",), [(1,), (1,)], False),
        ("I", "nosort", (), [], True),
        ("II", "rowsort", ("1", "9", "2", "0"), [(2, 0), (1, 9)], True),
        ("II", "valuesort", ("0", "1", "2", "9"), [(2, 0), (1, 9)], True),
        # texts are sorted, not numbers
        ("I", "rowsort", ("10", "9"), [(9,), (10,)], True),
        ("I", "nosort", ("-2", "NULL", "7", "0"), [(-2.9,), (None,), ("7 m",), ("m",)], True),
        ("R", "nosort", ("1.000", "0.667"), [(1,), (2 / 3,)], True),
        ("T", "nosort", ("(empty)", "a@b", "12"), [("",), ("a\tb",), (12,)], True),
        ("I", "nosort", (HASHED,), [(1,), (2,), (3,)], True),
        ("I", "nosort", (HASHED,), [(1,), (3,), (2,)], False),
    ],
)
def test_a_result_is_compared_as_the_record_says(
    types: str, sort: str, expected: tuple[str, ...], rows: list[tuple[Any, ...]], is_equal: bool
) -> None:
    assert is_expected(Record(1, "", False, types, sort, expected), rows) is is_equal
