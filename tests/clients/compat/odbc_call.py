"""Calls through the driver manager itself, for output parameters and the status, which pyodbc lacks."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int32, c_ssize_t, c_uint32, c_void_p
from typing import Any, Self

# the values of sql.h and sqlext.h
ENVIRONMENT, CONNECTION, STATEMENT = 1, 2, 3
INPUT, OUTPUT = 1, 4
INTEGER = 4
"""both SQL_INTEGER and SQL_C_LONG"""
CLOSE = 0
SUCCEEDED = (0, 1)
NO_DATA = 100


class Statement:
    """A statement of a connection of its own; parameters are integers, the first is the status."""

    def __init__(self, library: ctypes.CDLL, handle: c_void_p, values: list[int]) -> None:
        self._library, self._handle = library, handle
        self._values = [c_int32(-1), *map(c_int32, values)]
        self._lengths = [c_ssize_t(ctypes.sizeof(c_int32)) for _ in self._values]

    def bind(self, outputs: int) -> Self:
        """The last `outputs` of the parameters are outputs."""
        last_input = len(self._values) - outputs
        for number, (value, length) in enumerate(zip(self._values, self._lengths, strict=True), 1):
            kind = OUTPUT if number == 1 or number > last_input else INPUT
            bound = self._library.SQLBindParameter(
                self._handle, number, kind, INTEGER, INTEGER, 10, 0, byref(value), c_ssize_t(4), byref(length)
            )
            assert bound in SUCCEEDED, _diagnostics(self._library, STATEMENT, self._handle)
        return self

    def run(self, text: str) -> None:
        """Runs a text without parameters."""
        ran = self._library.SQLExecDirect(self._handle, text.encode(), len(text))
        assert ran in (*SUCCEEDED, NO_DATA), _diagnostics(self._library, STATEMENT, self._handle)
        self._library.SQLFreeStmt(self._handle, CLOSE)

    def prepare(self, text: str) -> Self:
        prepared = self._library.SQLPrepare(self._handle, text.encode(), len(text))
        assert prepared in SUCCEEDED, _diagnostics(self._library, STATEMENT, self._handle)
        return self

    def execute(self, *inputs: int) -> list[int]:
        """Status and outputs, after all results."""
        for value, given in zip(self._values[1:], inputs, strict=False):
            value.value = given
        ran = self._library.SQLExecute(self._handle)
        assert ran in (*SUCCEEDED, NO_DATA), _diagnostics(self._library, STATEMENT, self._handle)
        while self._library.SQLMoreResults(self._handle) in SUCCEEDED:
            pass
        return [value.value for value in (self._values[0], *self._values[1 + len(inputs) :])]


@contextmanager
def statement(words: str, values: list[int]) -> Iterator[Statement]:
    """A statement on a new connection of this connection string."""
    library = ctypes.CDLL("libodbc.so.2")
    environment, connection, handle = c_void_p(), c_void_p(), c_void_p()

    def ran(code: int, kind: int, of: c_void_p) -> None:
        assert code in SUCCEEDED, _diagnostics(library, kind, of)

    ran(library.SQLAllocHandle(ENVIRONMENT, None, byref(environment)), ENVIRONMENT, environment)
    ran(library.SQLSetEnvAttr(environment, 200, c_void_p(3), 0), ENVIRONMENT, environment)
    ran(library.SQLAllocHandle(CONNECTION, environment, byref(connection)), ENVIRONMENT, environment)
    raw = words.encode()
    ran(library.SQLDriverConnect(connection, None, raw, len(raw), None, 0, None, 0), CONNECTION, connection)
    try:
        ran(library.SQLAllocHandle(STATEMENT, connection, byref(handle)), CONNECTION, connection)
        yield Statement(library, handle, values)
    finally:
        if handle:
            library.SQLFreeHandle(STATEMENT, handle)
        library.SQLDisconnect(connection)
        library.SQLFreeHandle(CONNECTION, connection)
        library.SQLFreeHandle(ENVIRONMENT, environment)


def _diagnostics(library: ctypes.CDLL, kind: int, handle: c_void_p) -> str:
    state, text = ctypes.create_string_buffer(6), ctypes.create_string_buffer(1000)
    number: Any = c_int32()
    library.SQLGetDiagRec(kind, handle, 1, state, byref(number), text, 1000, byref(c_uint32()))
    return f"{state.value.decode()} ({number.value}) {text.value.decode(errors='replace')}"
