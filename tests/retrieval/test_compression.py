"""Answers in the coding that a client accepts."""

import gzip

import httpx
import pyarrow as pa
import pytest
from known_rows import BEGIN

from ringlog.retrieval.serving.compression import coding
from ringlog.retrieval.serving.parts import gathered

OF_ALL = {"signal": "every_type/a_double", "from": BEGIN.isoformat(), "to": "2026-12-31"}


def answer(client: httpx.Client, form: str, accepted: str) -> tuple[str | None, bytes]:
    """Coding and content of all rows, as they were sent."""
    request = {"params": OF_ALL | {"format": form}, "headers": {"Accept-Encoding": accepted}}
    with client.stream("GET", "/api/v1/data", **request) as response:
        assert response.status_code == 200
        assert response.headers["vary"] == "Accept-Encoding"
        return response.headers.get("content-encoding"), b"".join(response.iter_raw())


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_the_content_is_the_same(anyone: httpx.Client, form: str) -> None:
    none, plain = answer(anyone, form, "identity")
    assert none is None
    coded, content = answer(anyone, form, "gzip, zstd")
    assert coded == "zstd"
    assert pa.CompressedInputStream(pa.BufferReader(content), "zstd").read() == plain
    coded, content = answer(anyone, form, "gzip")
    assert coded == (None if form == "arrow" else "gzip")
    assert (content if coded is None else gzip.decompress(content)) == plain


def test_an_error_keeps_its_status(anyone: httpx.Client) -> None:
    response = anyone.get("/api/v1/data?signal=none", headers={"Accept-Encoding": "gzip"})
    assert (response.status_code, "content-encoding" in response.headers) == (404, False)


@pytest.mark.parametrize(
    ("accepted", "media_type", "expected"),
    [
        ("", "text/csv", None),
        ("deflate, br", "text/csv", None),
        ("GZIP", "text/csv; charset=utf-8", "gzip"),
        ("gzip;q=0.5, zstd;q=0", "application/json", "gzip"),
        ("gzip; q=0.000", "application/json", None),
        ("gzip, zstd", "application/vnd.apache.parquet", None),
        ("gzip", "application/x-protobuf", None),
        ("zstd", "application/x-protobuf", "zstd"),
    ],
)
def test_the_coding_is_one_that_is_accepted(accepted: str, media_type: str, expected: str | None) -> None:
    assert coding(accepted, media_type) == expected


def test_small_parts_are_joined() -> None:
    large = bytes(1 << 17)
    parts = [b"a", b"b", large, b"", *[b"c"] * (1 << 16), b"d"]
    assert [*gathered(iter(parts))] == [b"ab", large, b"c" * (1 << 16), b"d"]
