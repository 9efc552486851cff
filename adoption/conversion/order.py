"""The order in which objects are created: each after those that its text uses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ringlog.adoption.conversion.owners import PART, SKIPPED, plain
from ringlog.adoption.server.objects import Module

_Key: TypeAlias = tuple[str, str]
"""a module by its database and name, in small letters"""
_LEFT_OUT = re.compile(rf'(?s){SKIPPED}|(?P<name>"[^"]*")')
_CHAIN = re.compile(rf"(?:{PART})(?:\s*\.(?:\s*\.)?\s*(?:{PART}))*")


def ordered(modules: Sequence[Module]) -> list[Module]:
    """Modules that others name come first; two that name each other stay in their order."""
    by_key = {_key(module): module for module in modules}
    done: dict[_Key, Module] = {}
    # begins with the remaining modules, each followed by those that it needs
    for module in modules:
        waiting = [(module, _named(module, by_key))]
        begun = {_key(module)}
        while waiting:
            of, needed = waiting[-1]
            other = next(needed, None)
            if other is None:
                waiting.pop()
                done.setdefault(_key(of), of)
            elif _key(other) not in begun and _key(other) not in done:
                begun.add(_key(other))
                waiting.append((other, _named(other, by_key)))
    return list(done.values())


def _key(module: Module) -> _Key:
    return module.database, module.name.lower()


def _named(module: Module, by_key: Mapping[_Key, Module]) -> Iterator[Module]:
    """The modules that a text names: `database..name` is of that database, other names are of its own."""
    text = _LEFT_OUT.sub(lambda found: found["name"] or " ", module.text.lower())
    databases = {database for database, _ in by_key}
    named = set()
    for chain in _CHAIN.findall(text):
        first, *rest = map(plain, re.findall(PART, chain))
        database = first if first in databases and chain.count(".") > 1 else module.database
        named |= {(database, name) for name in (first, *rest)}
    for key, other in by_key.items():
        if other is not module and key in named:
            yield other
