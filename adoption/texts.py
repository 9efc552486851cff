"""Texts of an old server in its own code page, which are read as bytes and decoded here, without loss.

A driver puts a question mark where it cannot read a character. Here such a text is reported, and its row is
not copied.
"""

import codecs
from dataclasses import dataclass

from ringlog.adoption.names import quoted
from ringlog.adoption.objects import Old, OldColumn
from ringlog.errors import UsageError

# names of ASE's character sets (System Administration Guide: Character Sets), where Python has another
_CODECS = {
    "ascii_7": "ascii",
    "iso_1": "latin-1",
    "iso15": "iso8859-15",
    "iso88592": "iso8859-2",
    "iso88595": "iso8859-5",
    "iso88596": "iso8859-6",
    "iso88597": "iso8859-7",
    "iso88598": "iso8859-8",
    "iso88599": "iso8859-9",
    "roman8": "hp-roman8",
    "mac": "mac-roman",
    "eucjis": "euc_jp",
    "sjis": "shift_jis",
    "eucksc": "euc_kr",
    "eucgb": "gb2312",
    "koi8": "koi8-r",
    "tis620": "tis-620",
    "utf8": "utf-8",
    "65001": "utf-8",
}
_PLAIN = ("char", "varchar")


class Unreadable(ValueError):
    """A text that is none in the code page it should be in."""


@dataclass(frozen=True)
class Reading:
    """The expression by which a column is selected, and the code page of its bytes (None: it returns
    texts)."""

    expression: str
    codec: str | None = None

    def text(self, value: object) -> object:
        """The value as it is to be stored. Raises Unreadable."""
        if isinstance(value, bytes) and self.codec is not None:
            try:
                value = value.decode(self.codec)
            except UnicodeDecodeError as error:
                raise Unreadable(f"{value!r} is no text in {self.codec}: {error.reason}") from None
        if isinstance(value, str) and "\0" in value:
            raise Unreadable(f"{value!r} holds a zero byte, which no text of PostgreSQL may")
        return value


def codec(name: str) -> str:
    """Python's name of a character set of ASE, or of a code page by its number. Raises UsageError."""
    plain = name.strip().lower()
    found = _CODECS.get(plain, f"cp{plain}" if plain.isdigit() else plain)
    try:
        return codecs.lookup(found).name
    except LookupError:
        raise UsageError(f"the character set {name!r} is not known: name it by --charset") from None


def reading(column: OldColumn, charset: str, is_ase: bool) -> Reading:
    """`charset`: what the server's char and varchar are in; a column may have its own."""
    name = charset or column.code_page
    here = codec(name) if name else ""
    plain = quoted(column.name)
    if here in ("", "utf-8"):
        return Reading(plain)
    if column.type in _PLAIN:
        length = "max" if column.length < 0 else column.length
        return Reading(f"convert(varbinary({length}), {plain})", here)
    if column.type == "text" and not is_ase:
        return Reading(f"convert(varbinary(max), convert(varchar(max), {plain}))", here)
    return Reading(plain)


def doubts(old: Old, charset: str) -> list[str]:
    """Lines on texts that may be read wrongly, for the assessment."""
    columns = [column for table in old.tables for column in table.columns]
    name = charset or old.charset
    if not name and any(column.type in _PLAIN and not column.code_page for column in columns):
        return [
            "the old server does not report its character set: texts are taken as the driver reads them; "
            "name it by --charset"
        ]
    if old.is_ase and name and codec(name) != "utf-8" and any(column.type == "text" for column in columns):
        return ["columns of type text are taken as the driver reads them: ASE gives no bytes of them"]
    return []
