-- The texts of procedures, views and triggers.
create function sys.object_definition(id integer)
returns text
language plpgsql
stable
as $$
declare
  source text;
begin
  if exists (select from sys.every_procedure as procedures where procedures.oid = id::oid)
    or exists (select from sys.every_trigger as triggers where triggers.oid = id::oid)
  then
    -- the original text of a procedure written in T-SQL
    if pg_catalog.to_regprocedure('tsql.source(oid)') is not null then
      execute 'select tsql.source($1)' into source using id::oid;
    end if;
    return coalesce(source, pg_catalog.pg_get_functiondef(id::oid));
  end if;
  if exists (select from sys.every_relation as relations where relations.oid = id::oid and relations.type = 'V') then
    if pg_catalog.to_regprocedure('tsql.view_source(oid)') is not null then
      execute 'select tsql.view_source($1)' into source using id::oid;
    end if;
    return source;
  end if;
  return (
    select defaults.definition from sys.every_default as defaults where defaults.oid = id::oid
    union all
    select sys.shown_expression(pg_catalog.pg_get_constraintdef(constraints.oid))
    from sys.every_constraint as constraints
    where constraints.oid = id::oid and constraints.type = 'C'
    limit 1
  );
end
$$;

comment on function sys.object_definition(integer) is
'SQL Server: OBJECT_DEFINITION, the text of a procedure, view, trigger, default or check; null for anything else, and for a view '
'that was not made in T-SQL';

create view sys.sql_modules as
select
  objects.object_id,
  sys.object_definition(objects.object_id) as definition,
  true as uses_ansi_nulls,
  true as uses_quoted_identifier,
  false as is_schema_bound,
  false as uses_database_collation,
  false as is_recompiled,
  false as null_on_null_input,
  null::integer as execute_as_principal_id
from sys.objects as objects
where objects.type in ('P', 'FN', 'IF', 'TF', 'V', 'TR');

comment on view sys.sql_modules is 'SQL Server: Catalog Views, sys.sql_modules';

create view sys.all_sql_modules as
select * from sys.sql_modules;

create view sys.syscomments as
select
  objects.object_id as id,
  0::smallint as number,
  chunks.number::smallint as colid,
  0::smallint as status,
  null::bytea as ctext,
  0::smallint as texttype,
  0::smallint as language,
  false as encrypted,
  false as compressed,
  pg_catalog.substr(definitions.text, 1 + 255 * (chunks.number - 1), 255)::sys.line as text
from sys.objects as objects
cross join lateral (select sys.object_definition(objects.object_id) as text) as definitions
cross join lateral generate_series(1, (pg_catalog.length(definitions.text) + 254) / 255) as chunks (number)
where objects.type in ('P', 'FN', 'IF', 'TF', 'V', 'TR', 'D', 'C');

comment on view sys.syscomments is
'SQL Server: System Compatibility Views, sys.syscomments; in pieces of 255 characters as in syscomments of ASE';
