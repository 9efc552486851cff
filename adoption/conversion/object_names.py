"""The name that each object of an old database has here, where names have no owner.

A unique name is kept. Of several owners' objects with one name dbo's keeps it, and the others get their
owner's name in front: `ops.t` is `ops_t`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ringlog.adoption.server.objects import Reference


class ObjectNames:
    """The names here of tables and modules, which are given as kind, owner and name."""

    def __init__(self, objects: Iterable[tuple[str, str, str]]) -> None:
        self._here: dict[tuple[str, str], str] = {}
        self.reported: list[str] = []
        """objects with another name here, or none"""
        kinds = {(owner, name): kind for kind, owner, name in objects}
        first: dict[str, tuple[str, str]] = {}
        for owner, name in sorted(kinds, key=lambda each: each[0].lower() != "dbo"):
            if first.setdefault(name.lower(), (owner, name)) == (owner, name):
                self._here[owner, name] = name
        taken = set(first)
        for owner, name in kinds.keys() - self._here.keys():
            of_first, first_name = first[name.lower()]
            what = f"{kinds[owner, name]} {owner}.{name}"
            here = f"{owner}_{name}"
            if of_first == owner or here.lower() in taken:
                there = first_name if of_first == owner else here
                self.reported.append(
                    f"{what} is not migrated: here it would have the same name as {there}, because names "
                    "have no owner and do not differ by case"
                )
                continue
            taken.add(here.lower())
            self._here[owner, name] = here
            self.reported.append(
                f"{what} is {here} here, because names have no owner and {of_first} has one of this name: "
                f"write {here} instead of {owner}.{name}, and of {name} in texts of the user {owner}"
            )
        self.reported.sort()

    def new_name(self, owner: str, name: str) -> str | None:
        """Its name here; None where it has none."""
        return self._here.get((owner, name))

    def by_owner(self) -> Mapping[str, Mapping[str, str]]:
        """Owners and names in small letters, with the names here."""
        found: dict[str, dict[str, str]] = {}
        for (owner, name), here in self._here.items():
            found.setdefault(owner.lower(), {})[name.lower()] = here
        return found

    def referred(self, table: str, references: Iterable[Reference]) -> Iterator[tuple[Reference, str]]:
        """Foreign keys of a table, each with the name here of what it refers to."""
        for each in references:
            here = self.new_name(each.owner, each.table) if each.owner else each.table
            if here is not None:
                yield each, here
            else:
                self.reported.append(
                    f"foreign key {each.name} of {table} is not migrated: "
                    f"it refers to {each.owner}.{each.table}"
                )

    def without_owner(self) -> Iterator[str]:
        """A line for each owner whose name is no part of names here."""
        counts = Counter(owner for owner, _ in self._here if owner.lower() != "dbo")
        for owner, count in counts.items():
            yield (
                f"{count} objects of {owner} have names without {owner} here: texts that clients send must "
                f"not say {owner}.name"
            )
