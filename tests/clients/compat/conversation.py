"""A conversation with a client program: requests to it, and its library's answers.

A program gets host, port and user as arguments, the password as its first line of input, and logs in. Every
further line is a request; its fields are separated by tabs (\\t, \\n and \\\\ stand for tab, newline and
backslash in them):

    rpc NAME                          begins a call
    execute TEXT                      begins a statement with parameters, ? for each
    param TYPE NAME DIRECTION [VALUE] adds a parameter; NAME may be empty, DIRECTION is in or out, no
                                      VALUE is NULL
    go                                sends the call or the statement
    language TEXT                     sends text
    begin, commit, rollback           a transaction, by the library's own means
    again                             gives the connection back to the library's pool and takes it again
    abandon TEXT                      sends text, reads one row, leaves the rest
    cancel SECONDS TEXT               sends text, cancels it while it runs
    timeout SECONDS TEXT              sends text that may take so long

An answer is lines, each a JSON object with one member, the last of them {"end": …}. They are what ct_client.c
of the gateway's tests reports, and `error`: class, number and text of the exception that the library raised.
"""

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from tds_clients import Message, Param
from waiting import PATIENCE

Row = list[Any]


class Failure(NamedTuple):
    """An error as the client's library reports it."""

    type: str
    """the exception's class, or its substitute in libraries without exceptions"""
    number: int | None
    """the server's number; None when the library keeps it, or the error is its own"""
    text: str


@dataclass
class Answer:
    """The results of one request in the client's library. Times are texts, to the microsecond."""

    columns: list[str] = field(default_factory=list)
    """of the last result set"""
    rows: list[Row] = field(default_factory=list)
    status: int | None = None
    outputs: Row = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """the server's messages; errors too if the library has callbacks instead of exceptions"""
    failure: Failure | None = None

    @property
    def number(self) -> int | None:
        assert self.failure is not None, f"no error: {self}"
        return self.failure.number

    def good(self) -> Self:
        """Asserts that there was no error, and returns this."""
        assert self.failure is None, self.failure
        return self


class Session:
    """A running client program."""

    def __init__(
        self, command: Sequence[str | Path], password: str, environment: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        self.broken = False
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                env=os.environ | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            )
        self.login = self._ask(password)

    def call(self, name: str, *params: Param) -> Answer:
        """A call of a procedure, in the library's usual way."""
        return self._ask(_line("rpc", name), *map(_param, params), "go")

    def execute(self, text: str, *params: Param) -> Answer:
        """A statement with parameters, in the library's usual way."""
        return self._ask(_line("execute", text), *map(_param, params), "go")

    def query(self, text: str) -> Answer:
        return self._ask(_line("language", text))

    def begin(self) -> Answer:
        return self._ask("begin")

    def commit(self) -> Answer:
        return self._ask("commit")

    def rollback(self) -> Answer:
        return self._ask("rollback")

    def again(self) -> Answer:
        """Returns the connection to the pool and takes it again."""
        return self._ask("again")

    def abandon(self, text: str) -> Answer:
        """Only the first row is read."""
        return self._ask(_line("abandon", text))

    def cancel(self, text: str, after: float) -> Answer:
        return self._ask(_line("cancel", str(after), text))

    def timeout(self, text: str, seconds: int) -> Answer:
        return self._ask(_line("timeout", str(seconds), text))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, *lines: str) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # a library that waits forever fails only this one test
        patience = threading.Timer(PATIENCE, self._process.kill)
        patience.start()
        try:
            with suppress(BrokenPipeError):
                self._process.stdin.write("\n".join(lines) + "\n")
                self._process.stdin.flush()
            return self._answer(self._process.stdout)
        finally:
            patience.cancel()

    def _answer(self, lines: Iterable[str]) -> Answer:
        answer = Answer()
        for line in lines:
            ((kind, value),) = json.loads(line, strict=False).items()
            match kind:
                case "row_columns":
                    answer.columns = value
                case "row":
                    answer.rows.append(value)
                case "status":
                    answer.status = value
                case "output":
                    answer.outputs = value
                case "message":
                    answer.messages.append(Message(*value))
                case "error":
                    answer.failure = Failure(*value)
                case "end":
                    return answer
                case _:
                    raise AssertionError(f"{self._process.args}: {line}")
        self.broken = True
        raise AssertionError(
            f"{self._process.args} ended with {self._process.wait()}: {self._log.read_text()}"
        )


def _param(param: Param) -> str:
    value = () if param.value is None else (param.value,)
    return _line("param", param.type, param.name, "out" if param.out else "in", *value)


def _line(*fields: str) -> str:
    return "\t".join(text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for text in fields)
