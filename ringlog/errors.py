"""Expected errors, which a command reports by one line, without a traceback."""


class ServerError(Exception):
    """The server could not do the requested work; the text has the reason and the next step."""


class UsageError(ServerError):
    """The request itself was wrong; nothing was done."""
