"""pymssql: DB-API, and its lower layer _mssql for named parameters, which DB-API lacks."""

from datetime import date, datetime, time
from typing import Any

import pymssql
from answering import TYPES, DbApi, Param, converse, report, report_rows
from pymssql import _mssql

SQL_TYPES = {
    "bit": _mssql.SQLBITN,
    "smallint": _mssql.SQLINT2,
    "int": _mssql.SQLINT4,
    "bigint": _mssql.SQLINT8,
    "real": _mssql.SQLREAL,
    "float": _mssql.SQLFLT8,
    "char": _mssql.SQLVARCHAR,
    "datetime": _mssql.SQLDATETIME,
}


class Client(DbApi):
    def __init__(self, host: str, port: int, user: str, password: str, version: str, encryption: str) -> None:
        self.address: dict[str, Any] = {
            "server": host,
            "port": str(port),
            "user": user,
            "password": password,
            "tds_version": version,
            "encryption": encryption,
        }
        self.connection = pymssql.connect(**self.address, autocommit=True)
        self.connection._conn.set_msghandler(on_message)

    def rpc(self, name: str, params: list[Param]) -> None:
        if any(param.name for param in params):
            self._rpc_by_name(name, params)
            return
        with self.connection.cursor() as cursor:
            given = [pymssql.output(TYPES[p.type], p.value) if p.out else _given(p.value) for p in params]
            found = cursor.callproc(name, given)
            report_rows(cursor)
            report("status", cursor.returnvalue)
            report("output", [value for param, value in zip(params, found, strict=True) if param.out])

    def _rpc_by_name(self, name: str, params: list[Param]) -> None:
        procedure = self.connection._conn.init_procedure(name)
        for param in params:
            type, null = SQL_TYPES[param.type], param.value is None
            procedure.bind(param.value, type, param.name, output=param.out, null=null)
        status = procedure.execute()
        report("status", status)
        report("output", [procedure.parameters[param.name] for param in params if param.out])

    def begin(self) -> None:
        self.connection.autocommit(False)

    def commit(self) -> None:
        self.connection.commit()
        self.connection.autocommit(True)

    def rollback(self) -> None:
        self.connection.rollback()
        self.connection.autocommit(True)

    def abandon(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            report("row", list(cursor.fetchone()))
            self.connection._conn.cancel()

    def timeout(self, seconds: float, text: str) -> None:
        with pymssql.connect(**self.address, timeout=int(seconds)) as connection:
            connection.cursor().execute(text)


def _given(value: Any) -> Any:
    """pymssql does not accept dates without a time."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time()) if is_day else value


def on_message(state: int, severity: int, server: bytes, procedure: bytes, line: int, text: bytes) -> None:
    report("message", [None, severity, text.decode()])


def number(error: Any) -> int | None:
    """A failed login nests number and text once more."""
    inner = error.args[0] if isinstance(error.args[0], tuple) else error.args
    return inner[0] if isinstance(inner[0], int) else None


def text(error: Any) -> str:
    inner = error.args[0] if isinstance(error.args[0], tuple) else error.args
    return inner[-1].decode() if isinstance(inner[-1], bytes) else str(inner[-1])


if __name__ == "__main__":
    converse(Client, (pymssql.Error, _mssql.MSSQLException), number, text)
