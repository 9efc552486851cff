"""Random expressions, drawn from a grammar, and reduced to the smallest that still fails."""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

Grammar = Mapping[str, Sequence[str]]
"""The forms of each kind of expression, the simplest first. `{kind}` in a form is a place for a part."""
_SLOT = re.compile(r"\{(\w+)\}")
_KINDS = re.compile(r"^([\w ]*)(?:\((.*)\))?$")


def grammar(text: str, others: Grammar | None = None) -> Grammar:
    """Reads lines `kind: form; form`, which further lines continue after a blank, and adds them to others.

    `kind (a b): form` adds the form once for each of a and b, which then is in the place of `#`; without a
    kind before the bracket it is a form of a and b themselves.
    """
    made = {kind: [*forms] for kind, forms in (others or {}).items()}
    for line in re.sub(r"\n\s+", " ", text).strip().splitlines():
        kinds, _, forms = line.partition(": ")
        found = _KINDS.match(kinds)
        assert found is not None, line
        for each in (found[2] or "#").split():
            kind = found[1].strip() or each
            made.setdefault(kind, []).extend(
                form.strip().replace("#", f"{{{each}}}") for form in forms.split(";")
            )
    return made


@dataclass(frozen=True)
class Tree:
    """An expression; its text is the form with the parts in its places."""

    kind: str
    form: str
    parts: tuple["Tree", ...] = ()

    def __str__(self) -> str:
        parts = iter(self.parts)
        return _SLOT.sub(lambda _: str(next(parts)), self.form)

    def within(self) -> Iterator["Tree"]:
        for part in self.parts:
            yield part
            yield from part.within()


def tree(draw: random.Random, grammar: Grammar, kind: str, depth: int) -> Tree:
    """A random expression of a kind. `depth`: below it, places get forms without places if there are any."""
    forms = grammar[kind]
    leaves = [form for form in forms if not _SLOT.search(form)]
    if leaves and (depth <= 0 or draw.random() < 0.2):
        forms = leaves
    form = draw.choice(forms)
    return Tree(kind, form, tuple(tree(draw, grammar, slot, depth - 1) for slot in _SLOT.findall(form)))


def reduced(failing: Tree, grammar: Grammar, fails: Callable[[Tree], bool], seconds: float = 60) -> Tree:
    """The smallest tree found within a time that still fails."""
    end = time.monotonic() + seconds
    smallest = failing
    while time.monotonic() < end:
        found = next((one for one in _smaller(smallest, grammar) if fails(one)), None)
        if found is None:
            break
        smallest = found
    return smallest


def _smaller(whole: Tree, grammar: Grammar) -> Iterator[Tree]:
    """Trees in which one part is replaced by a simpler one of its kind, the simplest first."""
    simplest = grammar[whole.kind][0]
    others = [] if _SLOT.search(simplest) else [Tree(whole.kind, simplest)]
    others += sorted((one for one in whole.within() if one.kind == whole.kind), key=_size)
    yield from (one for one in others if _size(one) < _size(whole))
    for number, part in enumerate(whole.parts):
        for other in _smaller(part, grammar):
            yield replace(whole, parts=(*whole.parts[:number], other, *whole.parts[number + 1 :]))


def _size(one: Tree) -> tuple[int, int]:
    return len([*one.within()]), len(str(one))
