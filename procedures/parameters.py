"""The procedures of parameter tables, from the files in parameter/."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Formatter

from psycopg import sql

from ringlog.procedures import SCHEMA, Procedure

OF_A_PARAMETER = {
    "store": "store_{}",
    "set": "set_{}",
    "set_rows": "set_{}_rows",
    "remove": "remove_{}",
    "get": "get_{}",
    "get_at": "get_{}_at",
    "history": "history_{}",
    "diff": "diff_{}",
    "revert": "revert_{}",
}
"""The procedures of each parameter table: file and name."""

WRITING = ("set", "set_rows", "remove", "revert")
"""The files of the procedures that are granted by table."""

OVER_ALL_PARAMETERS = tuple(
    sorted(
        file.name.removesuffix(".sql") for file in files(__package__).joinpath("parameter/shared").iterdir()
    )
)
"""Names of procedures and of their files in parameter/shared/."""

ROWS = "parameter_rows"
"""Schema of the stored rows of all times."""
NOW = "parameter"
"""Schema of views of the current rows, and of the row types of arguments."""
HISTORY = "parameter_history"
"""Schema of views of all rows with author and comment."""


def views(table: str, key: Sequence[str], data: Sequence[str]) -> str:
    """The SQL of the two views of a parameter table; columns that come later come last."""
    return _fill("views", table, key, data)


def parameter_procedures(
    table: str,
    key: Mapping[str, str],
    data: Mapping[str, str],
    limits: Mapping[str, tuple[float, float]],
    may_be_nan: Iterable[str],
) -> Iterator[Procedure]:
    """The procedures of a parameter table.

    `key` and `data` are its columns and their SQL types, in the order they are stored in. No value outside
    `limits` is stored, and of `may_be_nan` none that is no number.
    """
    checks = sql.SQL("\n").join(
        [
            *(
                sql.SQL(_read("limits")).format(
                    value=sql.Identifier("wanted", column),
                    value_before=sql.Identifier("before", column),
                    column=sql.Literal(column),
                    low=sql.Literal(low),
                    high=sql.Literal(high),
                )
                for column, (low, high) in limits.items()
            ),
            *(
                sql.SQL(_read("numbers")).format(
                    value=sql.Identifier("wanted", column), column=sql.Literal(column)
                )
                for column in may_be_nan
                if column not in limits
            ),
        ]
    )
    for file, pattern in OF_A_PARAMETER.items():
        name = pattern.format(table)
        yield Procedure(name, _fill(file, table, [*key], [*data], name, {**key, **data}, checks))


def shared_procedures() -> Iterator[Procedure]:
    """The procedures over all parameter tables."""
    for name in OVER_ALL_PARAMETERS:
        yield Procedure(name, _read(f"shared/{name}"))


_OF_KEY = {
    "key_arguments": ("{column} {type}", ", "),
    "optional_key": ("{column} {type} default null", ", "),
    "key_given": ("({this}.{column} is null or stored.{column} = {begin}{this}.{column}{end})", " and "),
    "key_matches_r": ("stored.{column} = {begin}r.{column}{end}", " and "),
    "key_matches_wanted": ("stored.{column} = wanted.{column}", " and "),
    "key_matches_argument": ("stored.{column} = {begin}{this}.{column}{end}", " and "),
    "key_joined": ("earlier.{column} = later.{column}", " and "),
    "key_either": ("coalesce(earlier.{column}, later.{column})", ", "),
    "key_columns": ("{column}", ", "),
    "stored_key": ("stored.{column}", ", "),
    "wanted_key": ("wanted.{column}", ", "),
    "key_of_r": ("wanted.{column} := {begin}r.{column}{end};", "\n  "),
    "key_of_item": ("wanted.{column} := {begin}(item.given ->> {name}){end}::{type};", "\n    "),
    "reverted_key": ("reverted.{column}", ", "),
    "key_matches_reverted": ("stored.{column} = reverted.{column}", " and "),
    "demanded_of_r": (
        "if r.{column} is null then\n    raise exception '%: {column} must be given', {procedure}\n"
        "      using errcode = 'not_null_violation';\n  end if;",
        "\n  ",
    ),
}
"""Parts of the files that repeat a text for each column of the key, and what is between two of them."""

_OF_DATA = {
    "given_of_r": (
        "if {name} = any (cleared) then\n    wanted.{column} := null;\n"
        "  elsif r.{column} is not null then\n    wanted.{column} := r.{column};\n  end if;",
        "\n  ",
    ),
    "given_of_item": (
        "if item.given ? {name} then\n      wanted.{column} := (item.given ->> {name})::{type};\n    end if;",
        "\n    ",
    ),
    "data_names": ("{name}", ", "),
    "wanted_data": ("wanted.{column}", ", "),
    "before_data": ("before.{column}", ", "),
    "assignments": ("{column} = wanted.{column}", ", "),
    "data_columns": ("{column}", ", "),
    "stored_data": ("stored.{column}", ", "),
    "cells": ("({name}, earlier.{column}::text, later.{column}::text)", ",\n      "),
}
"""Those for each other column."""

_OF_PROCEDURE = ("time", "comment", "version", "change", "changed")
"""Arguments that a file names by its procedure, as {this_time}."""


def _fill(
    file: str,
    table: str,
    key: Sequence[str],
    data: Sequence[str],
    name: str = "",
    types: Mapping[str, str] | None = None,
    checks: sql.Composable = sql.SQL(""),  # noqa: B008
) -> str:
    types = types or {}
    texts = {column for column in key if "char" in types.get(column, "").lower()}
    names = {
        column: {
            "column": sql.Identifier(column).as_string(),
            "name": sql.Literal(column).as_string(),
            "type": types.get(column, "text"),
            "this": sql.Identifier(name or "x").as_string(),
            "procedure": sql.Literal(name).as_string(),
            # as T-SQL compares texts: blanks at their ends do not count
            "begin": "rtrim(" if column in texts else "",
            "end": ", ' ')" if column in texts else "",
        }
        for column in (*key, *data)
    }
    parts: dict[str, Callable[[], sql.Composable]] = {
        "procedure": lambda: sql.Identifier("ringlog", name or "x"),
        "name": lambda: sql.Literal(name),
        "table": lambda: sql.Literal(table),
        "stored": lambda: sql.Identifier(ROWS, table),
        "now": lambda: sql.Identifier(NOW, table),
        "history": lambda: sql.Identifier(HISTORY, table),
        "row_type": lambda: sql.Identifier(NOW, f"{table}_row"),
        "store": lambda: sql.Identifier(SCHEMA, OF_A_PARAMETER["store"].format(table)),
        "remove": lambda: sql.Identifier(SCHEMA, OF_A_PARAMETER["remove"].format(table)),
        "this": lambda: sql.Identifier(name or "x"),
        "shown_wanted": lambda: _shown("wanted", key),
        "shown_argument": lambda: _shown(name or "x", key),
        "column_names": lambda: sql.SQL(", ").join(map(sql.Literal, names)),
        "checks": lambda: checks,
    }

    def part(field: str) -> sql.Composable:
        if (own := field.removeprefix("this_")) in _OF_PROCEDURE:
            return sql.Identifier(name or "x", own)
        for table_of, columns in ((_OF_KEY, key), (_OF_DATA, data)):
            if field in table_of:
                pattern, between = table_of[field]
                # quoted once: each time again would be a fifth of the first start's Python
                return sql.SQL(between.join(pattern.format_map(names[column]) for column in columns))
        return parts[field]()

    text = _read(file)
    # each file has some of them, and there may be thousands of procedures
    used = {field for _, field, _, _ in Formatter().parse(text) if field}
    return sql.SQL(text).format(**{field: part(field) for field in used}).as_string()


def _shown(row: str, key: Sequence[str]) -> sql.Composable:
    """An expression that shows a key in a message."""
    values = sql.SQL(", ").join(sql.Identifier(row, column) for column in key)
    return sql.SQL("concat_ws(', ', {})").format(values)


@cache
def _read(file: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath("parameter", f"{file}.sql").read_text()
