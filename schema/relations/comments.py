"""Comments in PostgreSQL's catalogue: those of schemas, relations and columns of a facility.

`\\d+` and clients such as DBeaver show them. Those of signals have unit, description and name.
"""

import json

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.change import run
from ringlog.schema.layout import (
    ARCHIVE,
    ARCHIVE_FILES,
    CLOSED,
    ICEBERG,
    LOG,
    LOG_TABLES,
    RECENT,
    SCHEMA_OF_LEVEL,
    SCHEMAS,
    SET_ASIDE,
    SUMMARIES,
)

_SPANS = {level: name.replace("_", " ") for level, name in SCHEMA_OF_LEVEL.items()}
_OF_SCHEMAS = {
    "online": "the rings: the latest rows of each table, by seq_no",
    LOG: "the logs: every row of each table that its log keeps, here and in the archive",
    LOG_TABLES: "the tables of the logs, whose partitions by week are in schema log",
    "ring": "stored part of rings whose waveforms are in the log; read the views of schema online",
    "ringlog": "ringlog's own tables and procedures: registry, put, get, losses, maintenance",
    "parameter": "parameter tables as they are now",
    "parameter_history": "every version of each row of the parameter tables",
    "parameter_rows": "storage of the parameter tables",
    RECENT: "the latest weeks of each log, as views that queries of new rows plan fast",
    SET_ASIDE: "weeks past retention that are dropped later",
    CLOSED: "rows of closed hours again, as columns, for fast reading",
    ARCHIVE: "the archived weeks of each log, as views: the archive server reads the files",
    ARCHIVE_FILES: "foreign tables of the archive server",
    ICEBERG: "the catalogue of the archive's Iceberg tables (pyiceberg's SqlCatalog)",
    SUMMARIES: "summaries of the logs, in blocks; read the views of ten_seconds, minute, …, day",
    **{name: f"summaries of the logs by {_SPANS[level]}" for level, name in SCHEMA_OF_LEVEL.items()},
    "sybsystemprocs": "system procedures in the form that clients of TDS 5.0 need",
    "tsql_information_schema": "INFORMATION_SCHEMA of T-SQL",
    "tsql_global": "global temporary tables of T-SQL",
}
"""Schemas sys and tsql have comments of their own."""

# of relations by schema; %s is the description of the facility file, or the name
_OF_RELATIONS = {
    "online": "%s: the ring of its latest rows",
    LOG: "%s: the log, with the rows of archived weeks",
    LOG_TABLES: "%s: the log without the rows of archived weeks, which ringlog.cold_week lists",
    "ring": "%s: the ring without its waveforms, which online has from the log",
    SUMMARIES: "%s: summaries of the log, in blocks; read the views of minute, hour, day",
    **{name: f"%s: summaries of the log by {_SPANS[level]}" for level, name in SCHEMA_OF_LEVEL.items()},
}
_KEYS = {"seq_no": "place in the ring, from 1", "time": "time of the row"}
_OF_SUMMARIES = {
    "level": "seconds of a span",
    "column_name": "summarised column; of waveforms with .min, .max, .mean, .rms or .length; number of a"
    " signal of samples, or with .severity its severities",
    "time": "begin of the span",
    "begins": "begin of the block's first span",
    "n": "number of readings",
    "min": "least reading",
    "max": "greatest reading",
    "mean": "mean of the readings",
    "first": "first reading",
    "last": "last reading",
    "std": "standard deviation of the readings",
    "squares": "sum of squared distances from the mean",
    "nans": "number of readings that are NaN",
    "nulls": "number of rows without a reading",
    "block": "begin of the block that has the span",
}
# of ringlog's own tables and of parameter tables, for columns whose definition gives none
_BY_NAME = {
    "alarm_high": "greatest value of the wider limits, in the unit",
    "alarm_low": "least value of the wider limits, in the unit",
    "applied": "when",
    "began": "since when",
    "begins": "first time of the week",
    "begun": "when its writing began",
    "block_begins": "time of the first sample of the block that has this one",
    "block_ends": "time of the last sample of the block that has this one",
    "bytes": "size of the file",
    "called": "when",
    "change": "number of the change",
    "column_name": "the column",
    "comment": "reason, as the login gave it",
    "decimals": "digits behind the point, as the source shows values",
    "description": "as in the facility file",
    "ends": "end of the week, exclusive",
    "error": "number of the error",
    "field_id": "the field's id in Iceberg",
    "folder": "folder of the copies",
    "former": "name before",
    "group_name": "group of tables in the facility file",
    "held": "whether each value holds until the next",
    "is_key": "whether it is the key",
    "late": "rows that arrived after later ones",
    "limit_high": "greatest value allowed, in the unit",
    "limit_low": "least value allowed, in the unit",
    "login": "PostgreSQL role",
    "machine": "host of the client",
    "name": "its name",
    "nanoseconds": "of the time, below a microsecond",
    "next_transaction": "PostgreSQL's transaction id then",
    "node": "server that has it; null: the first",
    "number": "of the signal; never changes",
    "one": "true: there is one row",
    "procedure": "the procedure",
    "program": "program of the client",
    "reconnected": "connections made again",
    "refused": "rows that the server refused",
    "renamed": "when",
    "repeated": "calls sent again because no answer arrived",
    "rows": "number of rows",
    "seq_no": "place in the ring",
    "severity": "of the alarm, with EPICS's numbers",
    "sha256": "digest of the file",
    "signal": "name of the signal",
    "since": "since when",
    "spool": "of the writer",
    "state": "of the writer",
    "states": "names of whole numbers, as a JSON object",
    "status": "of the alarm, with EPICS's numbers",
    "table_name": "the table",
    "time": "when",
    "title": "of the migration",
    "transaction": "PostgreSQL's transaction id",
    "type": "as in the facility file",
    "unit": "as in the facility file",
    "valid_from": "begin of its validity",
    "valid_to": "end of its validity; null: still valid",
    "value": "null: no reading",
    "version": "number of the migration",
    "message": "what happened",
    "written": "when",
}

_STATEMENT = """
do language plpgsql $comments$
declare
  statement text;
begin
  for statement in
    with relation as materialized (
      select class.oid, nspname::text as schema, relname::text as name,
        case relkind when 'v' then 'view' when 'f' then 'foreign table' else 'table' end as kind
      from pg_catalog.pg_class as class
      join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
      where nspname = any ({schemas}) and relkind in ('r', 'p', 'v', 'f') and not relispartition
        and pg_has_role(relowner, 'usage')
    ), signal as materialized (
      select distinct on (table_name, column_name) table_name, column_name,
        concat_ws(': ', nullif(unit, ''), nullif(description, '')) as text, signal
      from ringlog.signal
      order by table_name, column_name, valid_to desc nulls first, valid_from desc
    ), wanted (command, text, present) as (
      select format('schema %I', nspname), {of_schemas}::jsonb ->> nspname::text,
        obj_description(oid, 'pg_namespace')
      from pg_catalog.pg_namespace
      where {of_schemas}::jsonb ? nspname::text and pg_has_role(nspowner, 'usage')
      union all
      select format('%s %I.%I', kind, schema, name),
        case
          when {of_relations}::jsonb ? schema and table_name is not null
          then format({of_relations}::jsonb ->> schema, coalesce(nullif(description, ''), name))
          else coalesce(obj_description(oid, 'pg_class'), format('of table %s', name))
        end,
        obj_description(oid, 'pg_class')
      from relation
      left join ringlog.logged_table on table_name = name
      union all
      select format('column %I.%I.%I', schema, name, attname),
        case
          when schema = any ({summaries}) then {of_summaries}::jsonb ->> attname::text
          when schema = any ({rows}) and {keys}::jsonb ? attname::text then {keys}::jsonb ->> attname::text
          when schema = any ({rows}) and signal.signal is not null
          then case when signal.text = '' then format('signal %s', signal.signal)
            else format('%s (signal %s)', signal.text, signal.signal) end
          when starts_with(schema, 'parameter') and parameter.column_name is not null
          then coalesce(
            nullif(concat_ws(': ', nullif(parameter.unit, ''), nullif(parameter.description, '')), ''),
            'parameter'
          )
          else coalesce(
            col_description(relation.oid, attnum), {by_name}::jsonb ->> attname::text
          )
        end,
        col_description(relation.oid, attnum)
      from relation
      join pg_catalog.pg_attribute on attrelid = relation.oid and attnum > 0 and not attisdropped
      left join signal on signal.table_name = name and signal.column_name = attname
      left join ringlog.parameter_column as parameter
        on parameter.table_name = name and parameter.column_name = attname
    )
    select format('comment on %s is %L', command, text)
    from wanted
    where text is distinct from present and text is not null
  loop
    execute statement;
  end loop;
end
$comments$
"""


def bring_up_to_date(connection: sa.Connection) -> None:
    """Makes the comments that are missing or of an earlier facility file, as ringlog_owner."""
    # the names of weeks and closed rows come and go by themselves
    schemas = [schema for schema in SCHEMAS if schema not in (SET_ASIDE, CLOSED, ICEBERG)]
    values = {
        "schemas": schemas,
        "rows": ["online", LOG, LOG_TABLES, "ring", RECENT, ARCHIVE, ARCHIVE_FILES],
        "summaries": [SUMMARIES, *SCHEMA_OF_LEVEL.values()],
    }
    objects = {
        "of_schemas": _OF_SCHEMAS,
        "of_relations": _OF_RELATIONS,
        "of_summaries": _OF_SUMMARIES,
        "keys": _KEYS,
        "by_name": _BY_NAME,
    }
    literals = {name: sql.Literal(value) for name, value in values.items()}
    literals |= {name: sql.Literal(json.dumps(value)) for name, value in objects.items()}
    run(connection, sql.SQL(_STATEMENT).format(**literals))
