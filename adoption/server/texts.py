"""Texts of an old server in its own code page, which are read as bytes and decoded here, without loss.

A text with bytes that are no character of the code page is reported, and its row is not copied.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.rows.composites import DATETIMEOFFSET, SQL_VARIANT, offset, variant, variant_expression
from ringlog.adoption.server.left import listed
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Old, OldColumn
from ringlog.gateway import charset_name, decode_text

_UTF_8 = "utf8"
# code pages that have no name of their own number
_PAGES = {"65001": _UTF_8, "20127": "ascii", "28591": "iso_1"}
_PLAIN = ("char", "varchar")
# ASE's national texts are in its own character set too, with up to so many bytes a character
_NATIONAL, _WIDEST = ("nchar", "nvarchar"), 4
_FINE_TIMES, _MICROSECONDS = ("datetime2", "datetimeoffset", "time"), 6
_CONTROLS = re.compile("[\x80-\x9f]")


class Unreadable(ValueError):
    """Bytes that are not a text in their code page."""


@dataclass(frozen=True)
class Reading:
    """The expression by which a column is selected, and the code page of its bytes (None: it returns
    texts)."""

    expression: str
    codec: str | None = None
    type: str = ""

    @property
    def is_expression(self) -> bool:
        """Whether the server gives something else than the column's value."""
        return self.codec is not None or self.type in (SQL_VARIANT, DATETIMEOFFSET)

    def value(self, value: object) -> object:
        """The value as it is to be stored. Raises Unreadable."""
        if self.type == "uniqueidentifier" and isinstance(value, str):
            return UUID(value)
        if self.type == DATETIMEOFFSET and isinstance(value, str):
            try:
                return offset(value)
            except OverflowError:
                raise Unreadable(f"{value} is before the year 1 or after 9999 in UTC") from None
        if self.type == SQL_VARIANT and isinstance(value, str):
            value = variant(value)
        if isinstance(value, bytes) and self.codec is not None:
            text = decode_text(self.codec, value)
            # a Windows code page has no control characters: bytes without a character are read as such
            if text is None or (self.codec.startswith("cp12") and _CONTROLS.search(text)):
                raise Unreadable(f"{value!r} is no text in {self.codec}")
            value = text
        if isinstance(value, str) and "\0" in value:
            raise Unreadable(f"{value!r} holds a zero byte, which no text of PostgreSQL may")
        return value


def codec(name: str) -> str:
    """The gateway's name of a character set of ASE, or of a code page by its number. Raises AdoptionError."""
    plain = name.strip().lower()
    found = charset_name(_PAGES.get(plain, f"cp{plain}" if plain.isdigit() else plain))
    if found is None:
        raise AdoptionError(f"the character set {name!r} is not known: name it by --charset")
    return found


def reading(column: OldColumn, charset: str, is_ase: bool) -> Reading:
    """`charset` is that of the server's char and varchar; a column may have its own."""
    name = charset or column.code_page
    here = codec(name) if name else ""
    plain = quoted(column.name)
    if column.type == SQL_VARIANT:
        return Reading(variant_expression(plain), type=SQL_VARIANT)
    if column.type == DATETIMEOFFSET:
        return Reading(f"convert(nvarchar(40), {plain}, 121)", type=DATETIMEOFFSET)
    if here in ("", _UTF_8):
        return Reading(plain, type=column.type)
    if is_ase and column.type in _NATIONAL:
        return Reading(f"convert(varbinary({column.length // 2 * _WIDEST}), {plain})", here)
    if column.type in _PLAIN:
        length = "max" if column.length < 0 else column.length
        return Reading(f"convert(varbinary({length}), {plain})", here)
    if column.type == "text" and not is_ase:
        return Reading(f"convert(varbinary(max), convert(varchar(max), {plain}))", here)
    return Reading(plain, type=column.type)


def doubts(old: Old, charset: str) -> list[str]:
    """Lines on texts and times that may lose something, for the assessment."""
    return [*_doubts_of_texts(old, charset), *_of_times(old)]


def _of_times(old: Old) -> Iterator[str]:
    """Times are kept in microseconds here."""
    finer = [
        f"{table.name}.{column.name}"
        for table in old.tables
        for column in table.columns
        if column.type in _FINE_TIMES and column.scale > _MICROSECONDS
    ]
    if finer:
        yield f"{listed(finer)}: times of seven decimal places, of which six are kept here"


def _doubts_of_texts(old: Old, charset: str) -> list[str]:
    columns = [column for table in old.tables for column in table.columns]
    name = charset or old.charset
    if not name and any(column.type in _PLAIN and not column.code_page for column in columns):
        return [
            "the old server does not report its character set: texts are taken as the driver reads them; "
            "name it by --charset"
        ]
    if old.is_ase and name and codec(name) != _UTF_8 and any(column.type == "text" for column in columns):
        return ["columns of type text are taken as the driver reads them: ASE gives no bytes of them"]
    return []
