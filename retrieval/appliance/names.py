"""The names of signals in requests: as EPICS writes them, in lists with wildcards, in bodies."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.requests import Request

from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import body, number
from ringlog.retrieval.signals import LONGEST, Signal, describe, matching

_WILD = frozenset("*?")
_PATTERNS = 100
"""names with wildcards in one request: each is a query of all signals"""
_SPECIAL = frozenset(".^$+()[]{}|\\")


def signals_of(servers: Servers, names: Sequence[str]) -> dict[str, Signal]:
    """The signals of these names, by the given names.

    A name may have EPICS's protocol as prefix and the field of the value as suffix, as `ca://power.VAL` (the
    appliance's PVNames: stripPrefixFromName, normalizeChannelName).
    """
    bare = {name: _bare(name) for name in names}
    found = describe(servers, list(dict.fromkeys([*names, *bare.values()])))
    spelled = {name: name if name in found else bare[name] for name in names}
    return {name: found[stored] for name, stored in spelled.items() if stored in found}


def _bare(name: str) -> str:
    for protocol in ("ca://", "pva://"):
        name = name.removeprefix(protocol)
    return name.removesuffix(".VAL")


def checked(names: Sequence[str]) -> list[str]:
    """Names of a request. Raises Refused (400)."""
    if any(not name or len(name) > LONGEST or "\0" in name for name in names):
        raise Refused(400, f"a signal name is empty or longer than {LONGEST} characters")
    return list(names)


async def posted(request: Request) -> list[str]:
    """Names in a body: a JSON list of texts or of objects with `pv`; with `text/plain` a name a line;
    otherwise a form, whose `pv` has commas between names (the appliance's
    PVsMatchingParameter.getPVNamesFromPostBody).

    Raises Refused (400, 413).
    """
    content = await body(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or content.lstrip().startswith(b"["):
        return checked(_of_json(content))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Refused(400, "the body is not UTF-8") from None
    if kind == "text/plain":
        return checked([line.strip() for line in text.splitlines() if line.strip()])
    given = [*parse_qs(text).get("pv", []), *request.query_params.getlist("pv")]
    if not given:
        raise Refused(400, "the body must be a JSON list of signal names, or pv=<names with commas between>")
    return checked(_parts(given[0]))


def _of_json(content: bytes) -> list[str]:
    try:
        given: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    entries = given if isinstance(given, list) else [None]
    names: list[Any] = [entry.get("pv") if isinstance(entry, dict) else entry for entry in entries]
    if not all(isinstance(name, str) for name in names):
        raise Refused(400, "the body must be a JSON list of signal names")
    return names


def _parts(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def expression(request: Request) -> str | None:
    """The regular expression that the parameter `pv`, with * and ?, or `regex` of a request means; None
    without either.

    Raises Refused (400).
    """
    wild, regex = request.query_params.get("pv"), request.query_params.get("regex", "")
    found = _of_glob(wild) if wild is not None else _of_java(regex)
    if found and (len(found) > LONGEST or "\0" in found):
        raise Refused(400, f"the pattern must have at most {LONGEST} characters")
    return found or None


def _of_glob(glob: str) -> str:
    """Every character except * and ? means itself."""
    signs = {"*": ".*", "?": "."}
    return "".join(signs.get(sign, f"\\{sign}" if sign in _SPECIAL else sign) for sign in glob)


def _of_java(regex: str) -> str:
    """Translates a Java regular expression to PostgreSQL's: the escapes that have different meanings in
    both."""
    return re.sub(r"\\(.)", lambda found: {"b": r"\y", "B": r"\Y"}.get(found[1], found[0]), regex)


def most(request: Request, default: int) -> int | None:
    """The requested number of names; None: all. Raises Refused (400)."""
    limit = number(request.query_params.get("limit"), "limit", default)
    return None if limit < 0 else limit


def chosen(servers: Servers, names: Sequence[str], limit: int | None, *, unknown: bool) -> list[str]:
    """Names, and the signals that match names with wildcards, each once; unknown names only if `unknown`.

    Raises Refused (413).
    """
    plain = [name for name in names if not _WILD & set(name)]
    if len(names) - len(plain) > _PATTERNS:
        raise Refused(413, f"more than {_PATTERNS} names have * or ?")
    there = signals_of(servers, plain)
    found: dict[str, None] = {}
    for name in dict.fromkeys(names):
        if _WILD & set(name):
            found |= dict.fromkeys(matching(servers.first, _of_glob(name), limit))
        elif unknown or name in there:
            found[name] = None
    return list(found)[:limit]


def listed(servers: Servers, request: Request, default: int, *, unknown: bool) -> list[str]:
    """The signals of a management request: `pv` has names, also with wildcards, separated by commas; without
    it `regex`; without both all signals (the appliance's PVsMatchingParameter.getMatchingPVs)."""
    limit, given = most(request, default), request.query_params.get("pv")
    if given is not None:
        return chosen(servers, checked(_parts(given)), limit, unknown=unknown)
    return matching(servers.first, expression(request) or ".*", limit)
