"""Expected errors, which a command reports by one line, without a traceback."""


class ServerError(Exception):
    """The server could not do what was asked; the text says why and what to do next."""


class UsageError(ServerError):
    """The request itself was wrong; nothing was done."""
