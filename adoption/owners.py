"""Names with an owner in the texts of an old server.

In ringlog names have no owner: the first part of `a.b` is a database. In `db.a.b` the owner is ignored.
"""

import re
from collections.abc import Collection, Mapping

_PLAIN = frozenset({"dbo", "sys", "information_schema"})


def without_owners(text: str, names: Mapping[str, Collection[str]]) -> str:
    """The text with `name` in place of `owner.name`, for the names of each owner, both in small letters.

    Literals and comments stay as they are, and so do names of three parts.
    """
    owners = {owner: those for owner, those in names.items() if owner not in _PLAIN and those}
    if not owners:
        return text
    listed = "|".join(sorted(map(re.escape, owners), key=len, reverse=True))
    part = r"\[[^\]\n]+\]|\"[^\"\n]+\"|[\w$#@]+"
    pattern = re.compile(
        r"(?is)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
        # a name in quotation marks, or else a whole text in them
        rf"|(?<![\w$#@.\]\"])(?P<owner>\[(?:{listed})\]|\"(?:{listed})\"|(?:{listed}))\s*\.\s*(?P<name>{part})"
        r"|\"(?:[^\"]|\"\")*\""
    )

    def shortened(found: re.Match[str]) -> str:
        if found["owner"] is None:
            return found[0]
        owner, name = (found[each].strip('[]"').lower() for each in ("owner", "name"))
        return found["name"] if name in owners[owner] else found[0]

    return pattern.sub(shortened, text)
