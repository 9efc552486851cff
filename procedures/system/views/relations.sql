-- Tables and views of the current database on which the caller has any right: their names, comments and descriptions.
create function sys.may_see(relation oid) returns boolean
language sql stable
as $$
  select pg_catalog.has_table_privilege(relation, 'select, insert, update, delete, truncate, references, trigger')
    or pg_catalog.has_any_column_privilege(relation, 'select, insert, update, references')
$$;

create function sys.shown_name(id oid, catalogue name, name name) returns text
language sql stable
as $$
  select coalesce(declaration.shown, name::text) from sys.declaration(pg_catalog.obj_description(id, catalogue)) as declaration
$$;

-- The name that the T-SQL of a view, procedure or function gives it. PostgreSQL's name of it has a digest at its end.
create function sys.named_by_text(stored name, source text) returns text
language plpgsql immutable
as $$
declare
  blank constant text := '(?:\s|--[^\n]*\n|/\*(?:[^*]|\*+[^*/])*\*+/)';
  given text := (regexp_match(
    source,
    concat('^(?:T-SQL view of PostgreSQL [^\n]*\n)?', blank, '*(?:create', blank, '+(?:or\s+(?:alter|replace)\s+)?|alter', blank, '+)(?:proc|procedure|function|view)', blank,
      '+(?:(?:\[[^\]]*\]|"[^"]*"|[^\s."(\[]*)\.)*(\[(?:[^\]]|\]\])+\]|"(?:[^"]|"")+"|[^\s."(\[]+)'),
    'i'))[1];
begin
  given := case left(given, 1)
    when '[' then replace(btrim(given, '[]'), ']]', ']')
    when '"' then replace(btrim(given, '"'), '""', '"')
    else given
  end;
  return case when tsql.stored_name(given) = stored::text then given else stored::text end;
end
$$;

create function sys.shown_column(relation oid, number integer, name name) returns text
language sql stable
as $$
  select coalesce(declaration.shown, name::text)
  from sys.declaration(pg_catalog.col_description(relation, number)) as declaration
$$;

-- An index of a key has the constraint's name. One of `create index` has its table's name in front, because in PostgreSQL
-- indexes and tables share a namespace; a long one is in its comment.
create function sys.shown_index(index_id oid, constraint_id oid, constraint_name name, index_name name, table_name name)
returns text
language sql stable
as $$
  select case
    when constraint_id is not null then sys.shown_name(constraint_id, 'pg_constraint', constraint_name)
    else coalesce(declaration.shown, case
      when starts_with(index_name::text, table_name || '.') then substr(index_name::text, length(table_name) + 2)
      else index_name::text end)
  end
  from sys.declaration(pg_catalog.obj_description(index_id, 'pg_class')) as declaration
$$;

create function sys.is_global(relation oid) returns boolean
language plpgsql stable
as $$
begin
  return pg_catalog.to_regprocedure('tsql.is_global(oid)') is not null and tsql.is_global(relation);
end
$$;
comment on function sys.is_global(oid) is
'Whether a table of schema tsql_global is a global temporary table (##t) of an open session.';

-- A log is a view of its table, in which it is stored, and of its archived weeks. T-SQL shows a table.
create function sys.stored_in(relation oid) returns oid
language sql stable
as $$
  select coalesce(
    (
      select weeks.oid
      from pg_catalog.pg_class as log
      join pg_catalog.pg_class as weeks
        on weeks.relname = log.relname and weeks.relnamespace = 'weeks'::regnamespace
      where log.oid = relation and log.relnamespace = 'log'::regnamespace and log.relkind = 'v'
    ),
    relation
  )
$$;
comment on function sys.stored_in(oid) is 'The table that has the rows of a log in PostgreSQL; another relation itself.';

-- tempdb has the session's temporary tables and the global ones. The former have SQL Server's names there: padded with
-- underscores to 116 characters, then a number of twelve.
-- A name is shown in the case in which T-SQL declared it.
create view sys.every_named_relation as
select
  classes.oid,
  coalesce(weeks.oid, classes.oid) as stored,
  coalesce(schemas.name, 'dbo') as schema,
  coalesce(schemas.number, 1) as schema_id,
  (
    case when classes.relpersistence = 't' then
      pg_catalog.rpad(coalesce(declaration.shown, classes.relname::text), 116, '_')
        || pg_catalog.lpad(upper(pg_catalog.to_hex(classes.oid::bigint)), 12, '0')
    else coalesce(
      declaration.shown,
      case when classes.relname ~ '~[0-9a-f]{16}$' then sys.named_by_text(classes.relname, comments.description) end,
      classes.relname::text)
    end
  ) collate "C" as name,
  case when classes.relkind in ('v', 'm') and weeks.oid is null then 'V' else 'U' end as type,
  case when weeks.oid is not null then 'p' else classes.relkind end as kind,
  classes.reltuples as tuples
from pg_catalog.pg_class as classes
left join sys.every_schema as schemas on schemas.oid = classes.relnamespace
-- functions (shown_name, stored_in) would be called for each row
left join pg_catalog.pg_class as weeks
  on classes.relkind = 'v' and classes.relnamespace = 'log'::regnamespace
  and weeks.relname = classes.relname and weeks.relnamespace = 'weeks'::regnamespace
left join pg_catalog.pg_description as comments
  on comments.objoid = classes.oid and comments.classoid = 'pg_catalog.pg_class'::regclass and comments.objsubid = 0
cross join lateral sys.declaration(comments.description) as declaration
where (
    classes.relnamespace = any (array(select here.oid from sys.every_schema as here))
    -- tempdb has those of all sessions; it has no schema while the session has no temporary table
    or classes.relnamespace = 'tsql_global'::regnamespace
    and (pg_catalog.current_schema() is null or pg_catalog.current_schema() like 'pg\_temp\_%')
    and sys.is_global(classes.oid)
  )
  and classes.relkind in ('r', 'p', 'v', 'm', 'f')
  and not classes.relispartition
  -- except those of table variables
  and (classes.relpersistence <> 't' or classes.relname like '#%' and classes.relname not like '#@%');

create view sys.every_relation as
select * from sys.every_named_relation
where sys.may_see(oid);

create function sys.shown_relations(database text) returns table (
  oid oid, object_id integer, stored oid, schema sys.sysname, schema_id integer, name sys.sysname, type text,
  database_name sys.sysname, collation_name text, namespaces oid[]
)
language plpgsql stable rows 1000
as $$
#variable_conflict use_column
declare
  before constant text := sys.enter(database);
  of_database constant sys.sysname := sys.db_name();
  its_collation constant text := sys.collation_of_database(current_schema());
  its_namespaces constant oid[] := array(select schemas.oid from sys.every_schema as schemas);
begin
  return query
  select
    relations.oid, relations.oid::integer, relations.stored, relations.schema::sys.sysname, relations.schema_id,
    relations.name::sys.sysname, relations.type, of_database, its_collation, its_namespaces
  from sys.every_relation as relations;
  perform sys.leave(before);
end
$$;
comment on function sys.shown_relations(text) is
$$The tables and views of a database (null: the current one), and its name, collation and schemas in each row. The views of
columns join it with PostgreSQL's catalogue: see elsewhere.sql.$$;

-- Comments of relations (number 0) and of their columns. Tables of the facility file are described by the registry, from
-- which schema/relations/comments.py makes comments for clients of PostgreSQL.
create view sys.every_comment as
select
  objoid as relation,
  objsubid as number,
  described.description
from pg_catalog.pg_description
cross join lateral (
  select coalesce(
    sys.comment_properties(pg_description.description) ->> 'MS_Description',
    case when pg_description.description not like 'T-SQL %' then nullif(sys.comment_base(pg_description.description), '') end
  ) as description
) as described
where classoid = 'pg_catalog.pg_class'::regclass
  -- most are declarations
  and (pg_description.description not like 'T-SQL %' or pg_description.description like E'%\n-- extended properties: {%')
  and described.description is not null
  and not exists (
    select from pg_catalog.pg_class
    join ringlog.logged_table on table_name = relname
    where pg_class.oid = objoid and relnamespace in ('online'::regnamespace, 'log'::regnamespace, 'weeks'::regnamespace)
  );

-- Descriptions of tables (number 0) and of their columns, from COMMENT ON or the facility file.
create view sys.every_table_description as
select relation, description
from sys.every_comment
where number = 0
union all
select relations.oid, logged.description
from ringlog.logged_table as logged
join pg_catalog.pg_class as relations on relations.relname = logged.table_name
where relations.relnamespace in ('online'::regnamespace, 'log'::regnamespace, 'weeks'::regnamespace) and logged.description <> '';

create view sys.every_description as
select relation, 0 as number, description
from sys.every_table_description
union all
select *
from sys.every_comment
where number <> 0
union all
select
  relations.oid, columns.attnum,
  concat_ws(', ', signals.signal, nullif(signals.unit, ''), nullif(signals.description, ''))
from pg_catalog.pg_class as relations
-- table by table: without statistics of thousands of new signals PostgreSQL would read all for one table
cross join lateral (
  select * from ringlog.signal as here
  where here.table_name = relations.relname::text collate "default" and here.valid_to is null
  offset 0
) as signals
join pg_catalog.pg_attribute as columns
  on columns.attrelid = relations.oid and columns.attname = signals.column_name
where relations.relnamespace in ('online'::regnamespace, 'log'::regnamespace, 'weeks'::regnamespace);
