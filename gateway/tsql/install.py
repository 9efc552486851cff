"""Installs schema `tsql` into a database."""

from hashlib import sha256
from importlib.resources import files


def sources() -> list[str]:
    """The SQL of schema `tsql`, in the order in which it is run. It can be run again."""
    folder = files(__name__).joinpath("sql")
    return [file.read_text() for file in sorted(folder.iterdir(), key=lambda file: file.name)]


def digest() -> str:
    """Changes with any of the sources."""
    return sha256("".join(sources()).encode()).hexdigest()
