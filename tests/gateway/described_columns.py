"""The columns of a result as COLMETADATA describes them at TDS 7.4 (MS-TDS 2.2.7.4, 2.2.5.4)."""

import struct

from raw_client import RawClient

FIXED = {0x26: "int", 0x68: "bit", 0x6D: "float", 0x6E: "money", 0x6F: "datetime", 0x24: "uniqueidentifier"}
SIZED = {0xA7: "varchar", 0xAF: "char", 0xE7: "nvarchar", 0xEF: "nchar", 0xA5: "varbinary", 0xAD: "binary"}
SCALED = {0x29: "time", 0x2A: "datetime2", 0x2B: "datetimeoffset"}
DIGITS = {0x6A: "decimal", 0x6C: "numeric"}
NULLABLE = 1
COLMETADATA, ERROR, DONE, DONE_BYTES = 0x81, 0xAA, 0xFD, 13


def described(client: RawClient, text: str) -> list[str]:
    """The columns of the first result, as `varchar(3) not null`: fixed types with their bytes in brackets."""
    raw = client.batch(text)
    while raw[0] == DONE:
        raw = raw[DONE_BYTES:]
    assert raw[0] == COLMETADATA, raw
    (count,) = struct.unpack_from("<H", raw, 1)
    at, found = 3, []
    for _ in range(count):
        flags, token = struct.unpack_from("<HB", raw, at + 4)
        at += 7
        if token in SIZED:
            (size,) = struct.unpack_from("<H", raw, at)
            at += 2 if "binary" in SIZED[token] else 7
            length = "max" if size == 0xFFFF else str(size // (2 if SIZED[token][0] == "n" else 1))
            name = f"{SIZED[token]}({length})"
        elif token in DIGITS:
            name = f"{DIGITS[token]}({raw[at + 1]},{raw[at + 2]})"
            at += 3
        elif token in SCALED:
            name = f"{SCALED[token]}({raw[at]})"
            at += 1
        elif token == 0x28:
            name = "date"
        else:
            name = f"{FIXED[token]}[{raw[at]}]"
            at += 1
        found.append(name + ("" if flags & NULLABLE else " not null"))
        at += 1 + 2 * raw[at]
    return found
