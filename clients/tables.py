"""Rings and logs of a facility as SQLAlchemy tables, for reading.

    from ringlog.clients.tables import engine, tables

    machine = engine("postgresql://display@dbserver:5433/ringlog")
    facility = tables(machine)                  # or tables("facility.toml")
    log = facility.tables["log.sr_vac"]
    with machine.connect() as connection:
        rows = connection.execute(select(log.c.time, log.c.pressure_1).where(log.c.time > since)).all()

Each column's `info` has its signal, unit, description and limits.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ringlog.clients.address import Address, AddressError
from ringlog.clients.connection import connect
from ringlog.clients.password import find_password
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.registry import logged_table, signal
from ringlog.schema.relations.tables import facility_tables


def engine(
    url: str | Address, password: str | None = None, *, password_file: str | Path | None = None
) -> sa.Engine:
    """An engine whose connections are those of `ringlog.connect`: `postgresql://…`, or `tds://…` by pymssql.

    Raises AddressError and PasswordError.
    """
    address = Address.parse(url) if isinstance(url, str) else url
    dialects = {"psycopg": "postgresql+psycopg", "pymssql": "mssql+pymssql"}
    if address.driver not in dialects:
        raise AddressError(f"SQLAlchemy has no dialect for {address.driver}: use tds: or postgresql:")
    secret = find_password(address, password_file) if password is None else password
    return sa.create_engine(
        f"{dialects[address.driver]}://", creator=lambda: connect(address, secret, autocommit=False)
    )


def tables(source: str | Path | Facility | sa.Engine) -> sa.MetaData:
    """The tables `online.<table>` and `log.<table>` of a facility file, or of the registry of an engine's
    database.

    Raises FacilityError for a file, the driver's errors for a database.
    """
    if isinstance(source, sa.Engine):
        described = _registered(source)
    else:
        described = (source if isinstance(source, Facility) else load_facility(source)).tables
    metadata = facility_tables(described)
    for table in described:
        for schema in ("online", "log"):
            made = metadata.tables[f"{schema}.{table.name}"]
            made.comment = table.description or None
            for column in table.columns:
                made.c[column.name].comment = column.description or None
                made.c[column.name].info |= {
                    "signal": column.signal,
                    "unit": column.unit,
                    "description": column.description,
                    "limits": column.limits,
                }
    return metadata


def _registered(source: sa.Engine) -> tuple[Table, ...]:
    """The current contents of the registry, columns in the order of their names."""
    with source.connect() as connection:
        known = connection.execute(
            sa.select(
                logged_table.c.table_name,
                logged_table.c.rows,
                logged_table.c.cycle,
                logged_table.c.description,
            ).order_by(logged_table.c.table_name)
        ).all()
        signals = connection.execute(
            sa.select(
                signal.c.table_name,
                signal.c.column_name,
                signal.c.signal,
                signal.c.type,
                signal.c.unit,
                signal.c.description,
                signal.c.limit_low,
                signal.c.limit_high,
            )
            .where(signal.c.valid_to.is_(None))
            .order_by(signal.c.table_name, signal.c.column_name)
        ).all()
    columns = {name: _columns(rows) for name, rows in groupby(signals, lambda row: str(row.table_name))}
    return tuple(
        Table(row.table_name, row.rows, row.cycle, columns.get(row.table_name, ()), row.description)
        for row in known
    )


def _columns(rows: Iterable[Any]) -> tuple[Column, ...]:
    return tuple(
        Column(
            row.column_name,
            row.signal,
            row.type,
            row.unit,
            row.description,
            None if row.limit_low is None else (row.limit_low, row.limit_high),
        )
        for row in rows
    )
