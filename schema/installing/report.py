"""The list of objects that an installation has created and changed, or would."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_FEW = 10
_NAMED = 3


@dataclass(frozen=True)
class InstallReport:
    """Objects, each with its kind and, after a colon, its differences: "table sr_rf: cycle 1 s → 2 s".

    False when there was nothing to change.
    """

    created: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.created or self.changed)

    def __add__(self, other: "InstallReport") -> "InstallReport":
        return InstallReport((*self.created, *other.created), (*self.changed, *other.changed))

    def __str__(self) -> str:
        """A line for each, or their number where they are many."""
        return self.text("created", "changed") or "nothing to do"

    def text(self, created: str, changed: str, *, whole: bool = False) -> str:
        """The same with other verbs. `whole`: only lines with the same change are replaced by their
        number."""
        lines = []
        for verb, things in ((created, self.created), (changed, self.changed)):
            of_kind: dict[str, list[str]] = {}
            for thing in things:
                of_kind.setdefault(thing.split()[0], []).append(thing)
            for kind, these in of_kind.items():
                found = these if len(these) <= _FEW else [*_together(kind, these)]
                if len(found) > _FEW and not whole:
                    found = [_number(kind, these)]
                lines += [f"{verb} {line}" for line in found]
        return "\n".join(lines)


def _together(kind: str, things: Sequence[str]) -> Iterator[str]:
    """One line for all things with the same change."""
    alike: dict[str, list[str]] = {}
    for thing in things:
        alike.setdefault(thing.partition(": ")[2], []).append(thing)
    for what, these in alike.items():
        if len(these) == 1:
            yield these[0]
        elif not what:
            yield _number(kind, these)
        else:
            names = [thing.partition(": ")[0].removeprefix(f"{kind} ") for thing in these[:_NAMED]]
            more = [f"{len(these) - _NAMED} more"] if len(these) > _NAMED else []
            yield f"{_number(kind, these)} ({', '.join([*names, *more])}): {what}"


def _number(kind: str, things: Sequence[str]) -> str:
    return f"{len(things)} {kind}" if kind.endswith("s") else f"{len(things)} {kind}s"


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The differences, as "cycle 1 s → 2 s, unit V → mV"."""
    return ", ".join(
        f"{name} {before.get(name, 'none')} → {value}"
        for name, value in now.items()
        if before.get(name) != value
    )


def limits(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"{low:g} to {high:g}"


def quoted(text: str) -> str:
    return f'"{text}"' if text else "none"
