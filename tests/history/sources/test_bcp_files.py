"""Files of bcp, with its format files, as sources of old rows."""

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from ringlog.history.incoming import Description, Incoming, IncomingError
from ringlog.history.sources import bcp_files
from ringlog.history.sources.bcp_files import BcpFiles

from .test_migration import NOW, PLAIN, plain, shaped, table


def native(rows: pa.Table, *, sybase: bool) -> bytes:
    """Rows as bcp writes them natively: seq_no without a prefix, times as datetime, others with a length."""
    null = b"\0" if sybase else b"\xff"
    formats = {"a_real": "<f", "a_double": "<d", "an_int": "<i", "a_smallint": "<h", "a_bigint": "<q"}
    made = []
    for row in rows.to_pylist():
        since = row["time"].replace(tzinfo=None) - datetime(1900, 1, 1)
        made.append(struct.pack("<iBii", row["seq_no"], 8, since.days, since.seconds * 300))
        for name, form in formats.items():
            value = null if row[name] is None else struct.pack("<B", struct.calcsize(form))
            made.append(value if row[name] is None else value + struct.pack(form, row[name]))
        made.append(bytes([1, row["a_bit"]]))
        text = row.get("a_varchar")
        if "a_varchar" in rows.schema.names:
            none = b"\0\0" if sybase else b"\xff\xff"
            made.append(none if text is None else struct.pack("<H", len(text)) + text.encode("latin-1"))
    return b"".join(made)


def format_file(rows: pa.Table, *, sybase: bool) -> str:
    kinds = {
        "seq_no": ("INT4", 0, 4) if sybase else ("INT", 0, 4),
        "time": ("DATETIME", 1, 8),
        "a_real": ("REAL", 1, 4) if sybase else ("FLT4", 1, 4),
        "a_double": ("FLT8", 1, 8),
        "an_int": ("INT4" if sybase else "INT", 1, 4),
        "a_smallint": ("INT2" if sybase else "SMALLINT", 1, 2),
        "a_bigint": ("INT8" if sybase else "BIGINT", 1, 8),
        "a_bit": ("BIT", 1, 1),
        "a_varchar": ("CHAR", 2, 40),
    }
    lines = ["14.0", str(len(rows.schema))]
    for number, name in enumerate(rows.schema.names, 1):
        kind, prefix, length = kinds[name]
        host = f"{'SYB' if sybase else 'SQL'}{kind}"
        lines.append(f'{number}\t{host}\t{prefix}\t{length}\t""\t{number}\t{name}\t""')
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("sybase", [False, True])
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("batch", [1, 1 << 22])
def test_native_files_of_bcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sybase: bool, texts: bool, batch: int
) -> None:
    monkeypatch.setattr(bcp_files, "_BATCH_BYTES", batch)
    rows = table() if texts else table().drop_columns("a_varchar")
    (tmp_path / "old.bcp").write_bytes(native(rows, sybase=sybase))
    (tmp_path / "old.fmt").write_text(format_file(rows, sybase=sybase))
    source = BcpFiles(tmp_path, PLAIN, "latin1")
    found = pa.Table.from_batches(shaped(source, rows.schema))
    assert plain(found) == plain(rows)
    assert source.fraction() == 1
    (tmp_path / "old.bcp").write_bytes(native(rows, sybase=sybase)[:-1])
    with pytest.raises(IncomingError, match="ends in the middle of a row"):
        shaped(source, rows.schema)


def test_character_files_of_bcp(tmp_path: Path) -> None:
    """SQL Server's datetime2 has seven digits."""
    rows = table(300).select(["seq_no", "time", "a_real", "an_int", "a_bit", "a_varchar"])
    lines = []
    for row in rows.to_pylist():
        row["time"] = f"{row['time']:%Y-%m-%d %H:%M:%S}.0000000"
        row["a_bit"] = int(row["a_bit"])
        lines.append("\t".join("" if value is None else str(value) for value in row.values()))
    (tmp_path / "old.dat").write_text("\r\n".join(lines) + "\r\n")
    ends = [*['"\\t"'] * 5, '"\\r\\n"']
    fields = [
        f'{number} SQLCHAR 0 40 {end} {number} {name} ""'
        for number, (name, end) in enumerate(zip(rows.schema.names, ends, strict=True), 1)
    ]
    (tmp_path / "old.fmt").write_text("\n".join(["14.0", "6", *fields]))
    found = pa.Table.from_batches(shaped(BcpFiles(tmp_path / "old.dat", PLAIN), rows.schema))
    assert plain(found) == plain(rows)


def test_character_files_with_any_terminators(tmp_path: Path) -> None:
    """Texts have other fields' terminators and ends of lines; a zero byte is an empty text."""
    schema = table(20).select(["seq_no", "time", "a_real", "a_bit", "a_varchar"]).schema
    ends = ['"|"', '"\\t\\t"', '"\\t"', '"||"', '"\\n--\\n"']
    fields = [
        f'{number} SQLCHAR 0 40 {end} {number} {name} ""'
        for number, (name, end) in enumerate(zip(schema.names, ends, strict=True), 1)
    ]
    (tmp_path / "old.fmt").write_text("\n".join(["14.0", "5", *fields]))
    moment = "2026-03-02 00:00:0"
    rows = (
        f"1|{moment}0\t\t 0.1\t1||größe|\t\n-\n--\n2|{moment}1\t\t\t0||\0\n--\n3|{moment}2\t\t-inf\t||\n--\n"
    )
    (tmp_path / "old.dat").write_bytes(rows.encode("latin-1"))
    found = pa.Table.from_batches(shaped(BcpFiles(tmp_path, PLAIN, "latin1"), schema))
    assert found["a_real"].to_pylist() == [pa.scalar(0.1, pa.float32()).as_py(), None, float("-inf")]
    assert found["a_bit"].to_pylist() == [True, False, None]
    assert found["a_varchar"].to_pylist() == ["größe|\t\n-", "", None]
    with pytest.raises(IncomingError, match=r"old.dat: row 1, column a_varchar: .* not utf8"):
        shaped(BcpFiles(tmp_path, PLAIN), schema)
    # reals have no such numbers
    for wrong in ("1e39", "0,1", "x"):
        (tmp_path / "old.dat").write_text(rows.replace("0.1", wrong))
        with pytest.raises(IncomingError, match=r"row 1, column a_real: "):
            shaped(BcpFiles(tmp_path, PLAIN), schema)


def test_a_wrong_format_file_is_an_error(tmp_path: Path) -> None:
    rows = table(20).drop_columns("a_varchar")
    (tmp_path / "old.bcp").write_bytes(native(rows, sybase=False))
    with pytest.raises(IncomingError, match=r"old.bcp has no format file old.fmt"):
        shaped(BcpFiles(tmp_path, PLAIN), rows.schema)
    (tmp_path / "old.fmt").write_text("<?xml version='1.0'?>")
    with pytest.raises(IncomingError, match="no format file of bcp"):
        shaped(BcpFiles(tmp_path, PLAIN), rows.schema)
    right = format_file(rows, sybase=False)
    (tmp_path / "old.fmt").write_text(right.replace("SQLFLT8\t1\t8", "SQLFLT4\t1\t4"))
    with pytest.raises(IncomingError, match="row 1, column a_double has a length of 8 bytes, not 4"):
        shaped(BcpFiles(tmp_path, PLAIN), rows.schema)
    (tmp_path / "old.fmt").write_text(right.replace("SQLBIT", "SQLUDT"))
    with pytest.raises(IncomingError, match='"a_bit" has the type UDT, which is not read'):
        shaped(BcpFiles(tmp_path, PLAIN), rows.schema)


def test_datetime2_of_native_files(tmp_path: Path) -> None:
    """10^-scale s of the day in 3 to 5 bytes, days since the year 1 in 3, as in TDS (MS-TDS 2.2.5.5.1.8)."""
    schema = table(1).select(["seq_no", "time", "an_int"]).schema
    days = (datetime(2026, 3, 2) - datetime(1, 1, 1)).days.to_bytes(3, "little")
    for scale, size, units in ((7, 5, 1_234_567), (3, 4, 123), (0, 3, 1)):
        value = units.to_bytes(size, "little") + days
        row = struct.pack("<iB", 1, size + 3) + value + struct.pack("<i", 7)
        (tmp_path / "old.bcp").write_bytes(row)
        lines = ["SQLINT 0 4 '' 1 seq_no", f"SQLDATETIME2 1 {size + 3} '' 2 time", "SQLINT 0 4 '' 3 an_int"]
        fields = [f"{number} {line}".replace("'", '"') for number, line in enumerate(lines, 1)]
        (tmp_path / "old.fmt").write_text("\n".join(["14.0", "3", *fields]))
        described = Description(digits="round", scale=scale)
        came = BcpFiles(tmp_path, described).batches(schema, None, NOW)
        (batch,) = Incoming(schema, {}, 10, described).batches(came, None, NOW)
        (moment,) = batch["time"].to_pylist()
        assert moment - datetime(2026, 3, 2, tzinfo=UTC) == timedelta(seconds=round(units / 10**scale, 6))
    with pytest.raises(IncomingError, match="row 1, column time has a length of 6 bytes, not 8"):
        [*BcpFiles(tmp_path, PLAIN).batches(schema, None, NOW)]
