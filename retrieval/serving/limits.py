"""The limits of a retrieval server: queries at once, their time, rows of an answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that protect the writers and this process from its readers."""

    rows: int = 100_000_000
    """of one answer; more is 413"""
    seconds: float = 300.0
    """that a query may run, including the sending of its result; longer is 504"""
    queries: int = 6
    """that run at once"""
    waiting: int = 256
    """that wait for their turn; one more is 429"""
    patience: float = 60.0
    """seconds that a query waits for its turn; longer is 429"""
    streams: int = 200
    """streams of live values at once; one more is 429"""
    trusted: float = 10.0
    """seconds after which a login must be accepted by PostgreSQL again"""
    signals: int = 500
    """of one request; more is 413"""
    body: int = 1 << 20
    """bytes of a request's body; more is 413"""
