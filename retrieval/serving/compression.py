"""Compresses answers as the client accepts: zstd, which is cheap, or gzip for text."""

import zlib
from collections.abc import Iterator

import pyarrow as pa

from ringlog.retrieval.serving.parts import Part, Sink

_GZIP = 31  # zlib's wbits of a gzip member
_TEXT = ("application/json", "text/")


def coding(accepted: str, media_type: str) -> str | None:
    """The coding for an answer, by the request's Accept-Encoding (RFC 9110, 12.5.3); None: not compressed."""
    weights = {}
    for each in accepted.lower().split(","):
        name, _, weight = each.partition(";")
        weights[name.strip()] = weight.replace(" ", "")
    refused = {name for name, weight in weights.items() if weight.rstrip("0.") == "q="}
    known = weights.keys() - refused
    if "parquet" in media_type:  # has its own
        return None
    if "zstd" in known:
        return "zstd"
    # for binary answers it saves little and takes longer than a network
    return "gzip" if "gzip" in known and media_type.startswith(_TEXT) else None


def compressed(coding: str, parts: Iterator[Part]) -> Iterator[Part]:
    if coding == "zstd":
        return _zstd(parts)
    return _gzip(parts)


def _gzip(parts: Iterator[Part]) -> Iterator[bytes]:
    stream = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=_GZIP)
    for part in parts:
        yield stream.compress(part)
    yield stream.flush()


def _zstd(parts: Iterator[Part]) -> Iterator[Part]:
    sink = Sink(bytes)
    with pa.CompressedOutputStream(pa.PythonFile(sink, "w"), "zstd") as stream:
        for part in parts:
            stream.write(part)
            yield from sink.drained()
    yield from sink.drained()
