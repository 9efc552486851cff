"""Names with an owner in the texts of an old server.

In ringlog names have no owner: the first part of `a.b` is a database, and `db.a.b` is refused but for dbo.
"""

import re
from collections.abc import Collection, Mapping

_PLAIN = frozenset({"dbo", "sys", "information_schema"})


def without_owners(text: str, names: Mapping[str, Collection[str]], database: str) -> str:
    """The text with `name` in place of `owner.name` and `database.owner.name`, for the names of each owner.

    Names, owners and database in small letters. Literals, comments and names of other databases stay as they
    are.
    """
    owners = {owner: those for owner, those in names.items() if owner not in _PLAIN and those}
    if not owners:
        return text

    def of(*names: str) -> str:
        plain = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return rf"\[(?:{plain})\]|\"(?:{plain})\"|(?:{plain})"

    part = r"\[[^\]\n]+\]|\"[^\"\n]+\"|[\w$#@]+"
    pattern = re.compile(
        r"(?is)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
        # a name in quotation marks, or else a whole text in them
        rf"|(?<![\w$#@.\]\"])(?:(?:{of(database)})\s*\.\s*)?(?P<owner>{of(*owners)})\s*\.\s*(?P<name>{part})"
        r"|\"(?:[^\"]|\"\")*\""
    )

    def shortened(found: re.Match[str]) -> str:
        if found["owner"] is None or re.search(r"\.\s*\Z", text[max(found.start() - 9, 0) : found.start()]):
            return found[0]
        owner, name = (found[each].strip('[]"').lower() for each in ("owner", "name"))
        return found["name"] if name in owners[owner] else found[0]

    return pattern.sub(shortened, text)
