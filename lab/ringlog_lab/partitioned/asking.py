"""Queries by each kind of client."""

import re
from collections.abc import Sequence
from typing import Any

import duckdb
import psycopg
import pymssql

from ringlog_lab.partitioned.checks import Ask, Refused, Rows


def by_tds(connection: Any) -> Ask:
    """All queries in one batch of T-SQL."""

    def ask(queries: Sequence[str]) -> list[Rows]:
        answers: list[Rows] = []
        try:
            with connection.cursor() as cursor:
                cursor.execute("\n".join(queries))
                while True:
                    if cursor.description:
                        answers.append(cursor.fetchall())
                    if not cursor.nextset():
                        break
        except pymssql.Error as error:
            number, text = error.args if len(error.args) == 2 else (0, str(error))
            raise Refused(cause(number, text.decode() if isinstance(text, bytes) else text)) from error
        if len(answers) != len(queries):
            raise AssertionError(f"{len(answers)} results of {queries}")
        return answers

    return ask


def by_postgres(connection: psycopg.Connection) -> Ask:
    def ask(queries: Sequence[str]) -> list[Rows]:
        try:
            return [connection.execute(query.encode()).fetchall() for query in queries]
        except psycopg.Error as error:
            raise Refused(cause(error.sqlstate, str(error))) from error

    return ask


def by_duckdb(connection: duckdb.DuckDBPyConnection, names: Sequence[str], otherwise: Ask) -> Ask:
    """Queries that have one of these names go to DuckDB, the others do not."""

    def ask(queries: Sequence[str]) -> list[Rows]:
        try:
            return [
                connection.execute(query).fetchall()
                if any(name in query for name in names)
                else otherwise([query])[0]
                for query in queries
            ]
        except duckdb.Error as error:
            raise Refused(cause("DuckDB", str(error))) from error

    return ask


def cause(number: object, text: str) -> str:
    """An error's number and text, without the names and numbers in it."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", text.partition("DB-Lib error")[0].splitlines()[0])
    return f"{number}: {re.sub(r'[0-9]+', 'n', text)[:120]}"
