"""pyodbc, with the driver of the connection string that is its last argument."""

import re
import threading
from typing import Any

import pyodbc
from answering import DbApi, Param, converse, report, report_rows


class Client(DbApi):
    def __init__(self, host: str, port: int, user: str, password: str, words: str) -> None:
        self.connection = pyodbc.connect(words, user=user, password=password, autocommit=True)

    def rpc(self, name: str, params: list[Param]) -> None:
        if any(param.name for param in params):
            words = f"exec {name} " + ", ".join(f"{param.name} = ?" for param in params)
        else:
            words = f"{{call {name}({', '.join('?' * len(params))})}}" if params else f"{{call {name}}}"
        self.execute(words, params)

    def language(self, text: str) -> None:
        self.execute(text, [])

    def execute(self, text: str, params: list[Param]) -> None:
        # not `with`, which would commit at its end
        cursor = self.connection.cursor()
        cursor.execute(text, [param.value for param in params])
        for _, message in cursor.messages or ():
            report("message", [None, 0, message])
        report_rows(cursor)
        cursor.close()

    def abandon(self, text: str) -> None:
        cursor = self.connection.cursor()
        cursor.execute(text)
        report("row", list(cursor.fetchone()))
        cursor.close()

    def cancel(self, seconds: float, text: str) -> None:
        cursor = self.connection.cursor()
        timer = threading.Timer(seconds, cursor.cancel)
        timer.start()
        try:
            cursor.execute(text)
            report_rows(cursor)
        finally:
            timer.join()

    def timeout(self, seconds: float, text: str) -> None:
        self.connection.timeout = int(seconds)
        try:
            self.language(text)
        finally:
            self.connection.timeout = 0


def number(error: Any) -> int | None:
    """The server's number is in parentheses after the text; the SQLSTATE precedes it."""
    found = re.search(r"\((\d+)\) \(SQL\w+\)", str(error))
    return int(found[1]) if found else None


if __name__ == "__main__":
    converse(Client, pyodbc.Error, number)
