"""Finds the password of a login. A password is never in an argument vector or in a message."""

import getpass
import os
import stat
import sys
from pathlib import Path

from ringlog.clients.address import Address

ENVIRONMENT = "RINGLOG_PASSWORD"
PERSONAL_FILE = Path("~/.ringlogpass")


class PasswordError(Exception):
    """No password, or an unusable file of passwords."""


def find_password(address: Address, file: str | Path | None = None) -> str:
    """The password for `address`: from `file` (its first line), the URL, the environment variable
    RINGLOG_PASSWORD, ~/.ringlogpass, or a prompt at the terminal, in this order.

    ~/.ringlogpass has lines of `host:port:database:user:password` as PostgreSQL's .pgpass; `*` matches
    anything, `\\` keeps a following `:` or `\\`, `#` begins a comment line, the first match counts.

    Raises PasswordError when there is none, or when a file may be read by others than its owner.
    """
    if file is not None:
        return only_line(Path(file))
    if address.password is not None:
        return address.password
    if (password := os.environ.get(ENVIRONMENT)) is not None:
        return password
    personal = PERSONAL_FILE.expanduser()
    if personal.exists():
        for fields in _lines(personal):
            login = (address.host, str(address.port), address.database, address.user)
            if all(field in ("*", part) for field, part in zip(fields, login, strict=False)):
                return fields[4]
    if sys.stdin is not None and sys.stdin.isatty():
        return getpass.getpass(f"Password for {address}: ")
    raise PasswordError(
        f"no password for {address}: give --password-file, set {ENVIRONMENT} or add a line to {PERSONAL_FILE}"
    )


def only_line(file: Path) -> str:
    """The first line of a file that only its owner may read. Raises PasswordError."""
    lines = _read(file).splitlines()
    if not lines or not lines[0]:
        raise PasswordError(f"password file {file}: its first line is empty")
    return lines[0]


def _lines(file: Path) -> list[list[str]]:
    found = []
    for number, line in enumerate(_read(file).splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        fields = [""]
        characters = iter(line)
        for character in characters:
            if character == "\\":
                fields[-1] += next(characters, "")
            elif character == ":" and len(fields) < 5:
                fields.append("")
            else:
                fields[-1] += character
        if len(fields) != 5:
            raise PasswordError(f"password file {file}, line {number}: not host:port:database:user:password")
        found.append(fields)
    return found


def _read(file: Path) -> str:
    try:
        status = file.stat()
        if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise PasswordError(f"password file {file} may be read by others: run chmod 600 {file}")
        return file.read_text("utf-8")
    except OSError as error:
        raise PasswordError(f"password file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PasswordError(f"password file {file} is not UTF-8 text") from None
