"""The order in which objects are created: each after those that its text uses."""

import re
from collections.abc import Iterator, Sequence

from ringlog.adoption.objects import Module


def ordered(modules: Sequence[Module]) -> list[Module]:
    """Those that are named by others come first; where two name each other, as they were."""
    by_name = {module.name.lower(): module for module in modules}
    done: dict[str, Module] = {}
    # beginning with what is left to be made, each followed by what it needs
    for module in modules:
        waiting = [(module, _named(module, by_name))]
        begun = {module.name.lower()}
        while waiting:
            of, needed = waiting[-1]
            other = next(needed, None)
            if other is None:
                waiting.pop()
                done.setdefault(of.name.lower(), of)
            elif other.name.lower() not in begun and other.name.lower() not in done:
                begun.add(other.name.lower())
                waiting.append((other, _named(other, by_name)))
    return list(done.values())


def _named(module: Module, by_name: dict[str, Module]) -> Iterator[Module]:
    text = re.sub(r"(?s)/\*.*?\*/|--[^\n]*", " ", module.text.lower())
    words = set(re.findall(r"[\w$#@]+", text))
    for name, other in by_name.items():
        if other is not module and (name in words if name.isidentifier() else name in text):
            yield other
