"""ctds: DB-API over FreeTDS's db-library, with a pool of its own."""

from typing import Any

import ctds
import ctds.pool
from answering import DbApi, Param, converse, report, report_rows

# it has no datetime of its own: a date is enough to hold the returned time
SQL_TYPES = {"int": ctds.SqlInt, "char": ctds.SqlVarChar, "datetime": ctds.SqlDate}


class Client(DbApi):
    def __init__(self, host: str, port: int, user: str, password: str, version: str) -> None:
        self.address: dict[str, Any] = {
            "server": host,
            "port": port,
            "user": user,
            "password": password,
            "tds_version": version,
            "autocommit": True,
            # its default is 5 s, as is that of a request
            "login_timeout": 60,
        }
        self.pool = ctds.pool.ConnectionPool(ctds, self.address | {"timeout": 60})
        self.connection = self.pool.acquire()

    def rpc(self, name: str, params: list[Param]) -> None:
        values = {param.name: self._value(param) for param in params}
        with self.connection.cursor() as cursor:
            if "" in values:
                found = list(cursor.callproc(name, tuple(self._value(param) for param in params)))
            else:
                named = cursor.callproc(name, values)
                found = [named[param.name] for param in params]
            outputs = [value for param, value in zip(params, found, strict=True) if param.out]
            report_rows(cursor)
            report("output", outputs)
        self._tell_messages()

    def _tell_messages(self) -> None:
        for message in self.connection.messages:
            report("message", [message["number"], message["severity"], message["description"]])

    def _value(self, param: Param) -> Any:
        return ctds.Parameter(SQL_TYPES[param.type](None), output=True) if param.out else param.value

    def execute(self, text: str, params: list[Param]) -> None:
        for index in range(len(params)):
            text = text.replace("?", f":{index}", 1)
        with self.connection.cursor() as cursor:
            cursor.execute(text, tuple(param.value for param in params))
            report_rows(cursor)

    def again(self) -> None:
        self.pool.release(self.connection)
        self.connection = self.pool.acquire()

    def abandon(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            report("row", list(cursor.fetchone()))

    def timeout(self, seconds: float, text: str) -> None:
        with ctds.connect(**self.address, timeout=int(seconds)) as connection, connection.cursor() as cursor:
            cursor.execute(text)


def number(error: Any) -> int | None:
    return error.last_message["number"] if getattr(error, "last_message", None) else None


if __name__ == "__main__":
    converse(Client, ctds.Error, number)
