"""Converts waveforms, which TDS returns as packed binary, to numpy arrays."""

import importlib
from typing import Any

from ringlog.clients.procedure import Answer, Connection, Driver
from ringlog.schema.column_type import ColumnType

_OF_A_SIGNAL = ("get_waveform", "get_waveforms")
_DOUBLE = {"value": "double[]"}


def with_arrays(driver: Driver, connection: Connection, procedure: str, answer: Answer) -> Answer:
    """The answer of a reading procedure with its packed waveforms as numpy arrays; unchanged if numpy is not
    installed, or for other procedures than ringlog's for reading. The server is queried for the types of
    binary columns and the facility's byte order.
    """
    if not any(isinstance(value, bytes) for row in answer.rows for value in row):
        return answer
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError:
        return answer
    name = procedure.rpartition(".")[2].lower()
    if name in _OF_A_SIGNAL:
        types = _DOUBLE
    else:
        described = driver.call(connection, "waveform_columns", (name,), {})
        types = {str(column): str(kind) for column, kind in described.rows}
    (order,) = driver.call(connection, "byte_order", (), {}).rows[0]
    dtypes = [
        numpy.dtype(ColumnType.of(types[column]).numpy).newbyteorder("<" if order == "little" else ">")
        if column in types
        else None
        for column in answer.columns
    ]

    def unpacked(value: Any, dtype: Any) -> Any:
        if dtype is None or not isinstance(value, bytes):
            return value
        return numpy.frombuffer(value, dtype).astype(dtype.newbyteorder("="))

    rows = [
        tuple(unpacked(value, dtype) for value, dtype in zip(row, dtypes, strict=True)) for row in answer.rows
    ]
    return type(answer)(answer.status, answer.outputs, answer.columns, rows)
