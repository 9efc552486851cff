"""The error that stops a benchmark."""


class BenchError(Exception):
    """The benchmark cannot be run, or has come upon something wrong; the text says what."""


class BenchUsageError(BenchError):
    """The request itself was wrong; nothing was run."""
