"""Runs programs of T-SQL straight on PostgreSQL: the compiler is tried without the gateway."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import psycopg
from psycopg import sql as psql
from psycopg.rows import tuple_row

from ringlog.gateway.tsql import compile_batch

Outcome: TypeAlias = dict[str, Any]
"""{"rows", "columns"} · {"count"} · {"message"} · {"error", "text", "line"} · {"status"}"""

_NUMBERS = {
    "23505": 2601,
    "23503": 547,
    "23514": 547,
    "23502": 515,
    "42501": 229,
    "42P01": 208,
    "42703": 207,
    "42883": 2812,
    "42601": 102,
    "42P07": 2714,
    "22001": 8152,
    "22003": 8115,
    "22012": 8134,
    "42804": 257,
    "42846": 257,
}
"""As gateway/src/postgres/error.rs has them."""

_GO_ON = (515, 547, 2601, 8152, 3621)
_DEEPEST = 32


class Failed(Exception):
    """An error of T-SQL's; `number`, `severity`, `state`, `text`, `line`."""

    def __init__(self, number: int, text: str, line: int = 0, severity: int = 16, state: int = 1) -> None:
        super().__init__(f"{number}: {text}")
        self.number, self.text, self.line, self.severity, self.state = number, text, line, severity, state


class _Leave(Exception):
    def __init__(self, how: str, status: int = 0) -> None:
        super().__init__(how)
        self.how, self.status = how, status


@dataclass
class Session:
    """A session of a client: its connection, settings and what it has been told."""

    connection: psycopg.Connection[Any]
    sybase: bool = False
    quoted_identifiers: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    row_count: int = 0
    error: int = 0
    caught: list[Failed] = field(default_factory=list)

    def run(self, text: str) -> list[Outcome]:
        """What a batch gives, in order."""
        self.outcomes = []
        try:
            self._batch(text, 0)
        except Failed as failed:
            self._tell(failed)
        except _Leave as leave:
            if leave.how != "return":
                raise
            self.outcomes.append({"status": leave.status})
        return self.outcomes

    def compiled(self, text: str) -> dict[str, Any]:
        """The program of a batch."""
        settings = {
            "database": "online",
            "quoted_identifiers": self.quoted_identifiers,
            "sybase": self.sybase,
        }
        program: dict[str, Any] = json.loads(compile_batch(text, json.dumps(settings)))
        return program

    def _batch(self, text: str, depth: int) -> None:
        program = self.compiled(text)
        if "error" in program:
            wrong = program["error"]
            raise Failed(wrong["number"], wrong["text"], wrong["line"], wrong["severity"], wrong["state"])
        _Run(self, depth).steps(program["statements"])

    def _tell(self, failed: Failed) -> None:
        self.outcomes.append({"error": failed.number, "text": failed.text, "line": failed.line})


class _Run:
    def __init__(self, session: Session, depth: int) -> None:
        self.session = session
        self.depth = depth
        self.variables: dict[str, Any] = {}
        self.trying = 0

    def steps(self, steps: Sequence[Mapping[str, Any]]) -> None:
        for step in steps:
            try:
                getattr(self, f"do_{step['do']}")(step)
            except Failed as failed:
                failed.line = failed.line or step["line"]
                if self.trying or failed.number not in _GO_ON:
                    raise
                self.session._tell(failed)
                self.session.error = failed.number
            else:
                if step["do"] not in ("if", "while", "try"):
                    self.session.error = 0

    def value(self, name: str) -> Any:
        session = self.session
        caught = session.caught[-1] if session.caught else None
        known = {
            "@@rowcount": session.row_count,
            "@@error": session.error,
            "@@trancount": 0,
            "@@version": "Test 1.0",
            "@@servername": "ringlog",
            "@@spid": 51,
            "@@max_precision": 38,
            "@@langid": 0,
            "@@db_name": "online",
            "@@user_name": "dbo",
            "@@suser_name": "sa",
            "@@error_number": caught and caught.number,
            "@@error_message": caught and caught.text,
            "@@error_severity": caught and caught.severity,
            "@@error_state": caught and caught.state,
            "@@error_line": caught and caught.line,
            "@@error_procedure": None,
        }
        return self.variables[name] if name in self.variables else known[name]

    def execute(self, step: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        sql, names = step["sql"], step.get("variables", ())
        cursor = psycopg.RawCursor(self.session.connection, row_factory=tuple_row)
        types = {name: self.types.get(name) for name in names}
        for place in range(len(names), 0, -1):
            declared = types[names[place - 1]]
            if declared is not None:
                sql = sql.replace(f"${place}", f"${place}::{declared}") if f"${place}::" not in sql else sql
        try:
            return cursor.execute(sql, [self.value(name) for name in names])
        except psycopg.Error as error:
            raise _failed(error) from None

    def row(self, step: Mapping[str, Any]) -> tuple[Any, ...]:
        if "value" in step:
            return (step["value"],)
        row = self.execute(step).fetchone()
        assert row is not None
        return tuple(row)

    @property
    def types(self) -> dict[str, str]:
        return self.__dict__.setdefault("declared", {})

    def do_declare(self, step: Mapping[str, Any]) -> None:
        name = self.session.connection.execute(
            "select format_type(%s::oid, %s)", (step["oid"], step["typmod"])
        ).fetchone()
        assert name is not None
        self.types[step["name"]] = name[0]
        self.variables[step["name"]] = None

    def do_assign(self, step: Mapping[str, Any]) -> None:
        (self.variables[step["name"]],) = self.row(step)

    def do_query(self, step: Mapping[str, Any]) -> None:
        cursor = self.execute(step)
        rows = cursor.fetchall() if cursor.description else []
        self.session.row_count = max(cursor.rowcount, 0)
        if step["assigns"]:
            if rows:
                self.variables.update(zip(step["assigns"], rows[-1], strict=True))
            return
        if cursor.description:
            columns = step["columns"]
            if columns is None:
                columns = ["" if c.name == "?column?" else c.name for c in cursor.description]
            self.session.outcomes.append({"rows": [list(row) for row in rows], "columns": list(columns)})
        elif step["kind"] != "ddl":
            self.session.outcomes.append({"count": cursor.rowcount})

    def do_if(self, step: Mapping[str, Any]) -> None:
        self.steps(step["then"] if self.row(step)[0] else step["else"])

    def do_while(self, step: Mapping[str, Any]) -> None:
        while self.row(step)[0]:
            try:
                self.steps(step["body"])
            except _Leave as leave:
                if leave.how == "break":
                    break
                if leave.how != "continue":
                    raise

    def do_break(self, step: Mapping[str, Any]) -> None:
        raise _Leave("break")

    def do_continue(self, step: Mapping[str, Any]) -> None:
        raise _Leave("continue")

    def do_return(self, step: Mapping[str, Any]) -> None:
        raise _Leave("return", self.row(step)[0] if "sql" in step else 0)

    def do_print(self, step: Mapping[str, Any]) -> None:
        self.session.outcomes.append({"message": self.row(step)[0] or ""})

    def do_raise(self, step: Mapping[str, Any]) -> None:
        number, severity, state, text = self.row(step)
        failed = Failed(number, text, step["line"], severity, state)
        if severity <= 10:
            self.session.outcomes.append({"message": text})
        elif self.trying:
            raise failed
        else:
            self.session._tell(failed)

    def do_throw(self, step: Mapping[str, Any]) -> None:
        if "sql" not in step:
            raise self.session.caught[-1]
        number, text, state = self.row(step)
        raise Failed(number, text, step["line"], 16, state)

    def do_try(self, step: Mapping[str, Any]) -> None:
        self.trying += 1
        try:
            self.steps(step["body"])
        except Failed as failed:
            self.trying -= 1
            self.session.caught.append(failed)
            try:
                self.steps(step["catch"])
            finally:
                self.session.caught.pop()
        else:
            self.trying -= 1

    def do_waitfor(self, step: Mapping[str, Any]) -> None:
        assert self.row(step)[0] >= 0

    def do_execute_text(self, step: Mapping[str, Any]) -> None:
        if self.depth >= _DEEPEST:
            raise Failed(217, "Maximum nesting level exceeded.")
        self.session._batch(self.row(step)[0] or "", self.depth + 1)

    def do_execute(self, step: Mapping[str, Any]) -> None:
        raise Failed(2812, f"Could not find stored procedure '{step['procedure']}'.")

    def do_set(self, step: Mapping[str, Any]) -> None:
        pass

    def do_use(self, step: Mapping[str, Any]) -> None:
        schema = psql.Identifier(step["database"])
        self.session.connection.execute(psql.SQL("set search_path = {}, public").format(schema))


def _failed(error: psycopg.Error) -> Failed:
    state = error.sqlstate or ""
    text = error.diag.message_primary or str(error)
    if state.startswith("S") and state[1:].isdigit():
        return Failed(int(state[1:]), text)
    return Failed(_NUMBERS.get(state, 50000), f"{text} (SQLSTATE {state})")


def shown(value: Any) -> str:
    """A value as the tables of statements write it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(int(value))
        case datetime():
            value = value.replace(tzinfo=None)
            text = value.isoformat(" ", "microseconds" if value.microsecond % 1000 else "milliseconds")
            return text.removesuffix(".000")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat()
        case bytes():
            return f"0x{value.hex().upper()}"
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case UUID():
            return str(value).upper()
    return str(value)
