"""python-tds: the protocol in Python throughout."""

from typing import Any

import pytds
from answering import TYPES, DbApi, Param, converse, report, report_rows


class Client(DbApi):
    def __init__(self, host: str, port: int, user: str, password: str, *cafile: str) -> None:
        self.address: dict[str, Any] = {
            "server": host,
            "port": port,
            "user": user,
            "password": password,
            "autocommit": True,
            "cafile": cafile[0] if cafile else None,
            # for the host's name it needs an older pyOpenSSL; the certificate is checked
            "validate_host": False,
            "login_timeout": 60,
        }
        self.connection = pytds.connect(**self.address, pooling=True)

    def rpc(self, name: str, params: list[Param]) -> None:
        values: Any = [pytds.output(p.value, TYPES[p.type]) if p.out else _given(p.value) for p in params]
        if any(param.name for param in params):
            values = {param.name: value for param, value in zip(params, values, strict=True)}
        with self.connection.cursor() as cursor:
            found = cursor.callproc(name, values)
            report_rows(cursor)
            report("status", cursor.get_proc_return_status())
            report("output", [value for param, value in zip(params, found, strict=True) if param.out])
            for _, message in cursor.messages or ():
                report("message", [message.number, message.severity, message.text])

    def again(self) -> None:
        self.connection.close()
        self.connection = pytds.connect(**self.address, pooling=True)

    def abandon(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            report("row", list(cursor.fetchone()))
            cursor.cancel()

    def timeout(self, seconds: float, text: str) -> None:
        with pytds.connect(**self.address, timeout=seconds) as connection, connection.cursor() as cursor:
            cursor.execute(text)


def _given(value: Any) -> Any:
    return pytds.Binary(value) if isinstance(value, bytes) else value


def number(error: Any) -> int | None:
    return getattr(error, "number", None)


if __name__ == "__main__":
    converse(Client, (pytds.Error, pytds.TimeoutError), number)
