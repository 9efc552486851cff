"""The errors that stop a load test."""


class LoadTestError(Exception):
    """The load test cannot be run; the text says why and what to do."""


class LoadTestUsageError(LoadTestError):
    """The request itself was wrong; nothing was run."""
