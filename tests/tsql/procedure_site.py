"""A schema of procedures in T-SQL, which are compiled, created and called as by the gateway."""

from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql

from ringlog.gateway._core import TsqlError, translate

Row = tuple[Any, ...]


@dataclass
class Called:
    status: int | None = None
    outputs: dict[str, Any] = field(default_factory=dict)
    rows: list[list[Row]] = field(default_factory=list)
    """of each result set"""
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """in order: ("rows", n), ("count", n), ("print", text), ("error" or "message", number, severity, state,
    line, text)"""
    ended: list[str] = field(default_factory=list)
    """"failed" or "" for each statement of which only the end is told."""

    @property
    def prints(self) -> list[str]:
        return [event[1] for event in self.events if event[0] == "print"]


class Refused(Exception):
    """A text that does not compile."""

    def __init__(self, error: TsqlError) -> None:
        super().__init__(error.args[2])
        self.number, self.line, self.text = error.args


class Site:
    """A schema with a site's own tables and procedures, both of the role site_owner, who cannot log in."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection

    def run(self, statement: str) -> None:
        with self.connection.transaction():
            self.connection.execute("set local role site_owner")
            self.connection.execute("set local search_path = site, online, log, ringlog, public")
            self.connection.execute(statement.encode())

    def define(self, text: str, *, sybase: bool = False) -> None:
        """Runs CREATE, ALTER or DROP PROCEDURE, or GRANT."""
        self.run("; ".join(self.compile(text, sybase=sybase)))

    @staticmethod
    def compile(text: str, *, sybase: bool = False) -> list[str]:
        try:
            return translate(text, database="site", sybase=sybase)
        except TsqlError as error:
            raise Refused(error) from None

    def refusal(self, body: str) -> Refused:
        """The reason why a procedure with this body is refused; the body's first line is line 2 of the
        text.
        """
        with pytest.raises(Refused) as refused:
            self.compile(f"create procedure refused_one @n int as\n{body}")
        return refused.value

    def call(self, name: str, *values: Any) -> Called:
        """A call in the gateway's form; the transaction ends with it."""
        called = Called()
        cursors: list[str] = []

        def hear(notice: psycopg.errors.Diagnostic) -> None:
            message = notice.message_primary or ""
            match notice.sqlstate:
                case "01R01":
                    called.events.append(("rows", len(cursors)))
                    cursors.append(message)
                case "01R04" | "01R05":
                    pass  # @@error and @@rowcount after it
                case "01R07":
                    called.ended.append(notice.message_detail or "")
                case "01R02":
                    kinds = {"select": "assigned"} | dict.fromkeys(("", "insert", "delete", "merge"), "count")
                    kind = kinds.get(notice.message_detail or "", "in trigger")
                    called.events.append((kind, int(message)))
                case "01R03" | "01R08":
                    number, severity, state, line, _ = (notice.message_detail or "").split(" ", 4)
                    kind = "error" if int(severity) > 10 else "message"
                    called.events.append((kind, int(number), int(severity), int(state), int(line), message))
                case _:
                    called.events.append(("print", message))

        found = self.connection.execute(
            "select prokind, coalesce(proargnames, '{}'), coalesce(proargmodes::text[], '{}')"
            " from pg_proc where pronamespace = 'site'::regnamespace and proname = %s",
            [name],
        ).fetchone()
        assert found is not None, f"there is no procedure {name}"
        kind, names, modes = found
        arguments = [sql.SQL("%s") for _ in values]
        if kind == "p":
            arguments.insert(0, sql.SQL("null"))
        call = sql.SQL("{}({})").format(sql.Identifier("site", name), sql.SQL(", ").join(arguments))
        outputs = [one for one, mode in zip(names, modes or ["i"] * len(names), strict=True) if mode in "bo"]
        statement = sql.SQL("call {}" if kind == "p" else "select * from {}").format(call)
        self.connection.add_notice_handler(hear)
        try:
            with self.connection.transaction():
                gave = self.connection.execute(statement, values).fetchone()
                assert gave is not None
                if not outputs:
                    (called.status,) = gave
                else:
                    returned = dict(zip(outputs, gave, strict=True))
                    called.status = returned.pop("return_status")
                    called.outputs = {key.removeprefix("@"): value for key, value in returned.items()}
                for cursor in cursors:
                    fetched = self.connection.execute(sql.SQL("fetch all {}").format(sql.Identifier(cursor)))
                    called.rows.append(fetched.fetchall())
        finally:
            self.connection.remove_notice_handler(hear)
        return called

    def rows(self, query: str) -> list[Row]:
        return self.connection.execute(query.encode()).fetchall()
