"""The errors that stop a load test."""


class LoadTestError(Exception):
    """The load test cannot run; the text has the reason and the remedy."""


class LoadTestUsageError(LoadTestError):
    """The request itself was wrong; nothing was run."""
