-- The texts of procedures, views and triggers.
create function sys.object_definition(id integer) returns text
language plpgsql stable
as $$
declare
  source text;
begin
  if exists (select from sys.every_numbered_procedure as procedures where procedures.oid = id::oid)
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
    select pg_catalog.obj_description(id::oid, 'pg_proc') from sys.every_bindable as bindable where bindable.oid = id::oid
    union all
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
where objects.type in ('P', 'FN', 'IF', 'TF', 'V', 'TR', 'R') or objects.type = 'D' and objects.parent_object_id = 0;

comment on view sys.sql_modules is 'SQL Server: Catalog Views, sys.sql_modules';

create view sys.numbered_procedures as
select
  first.oid::integer as object_id,
  procedures.number as procedure_number,
  sys.object_definition(procedures.oid::integer) as definition
from sys.every_numbered_procedure as procedures
join sys.every_procedure as first on first.schema = procedures.schema and first.stored = procedures.stored
where procedures.number > 1 and procedures.namespace = any (array(select schemas.oid from sys.every_schema as schemas));

comment on view sys.numbered_procedures is 'SQL Server: Catalog Views, sys.numbered_procedures: those of a group but the first';

create view sys.all_sql_modules as
select * from sys.sql_modules;

create view sys.system_sql_modules as
select * from sys.sql_modules where false;

comment on view sys.system_sql_modules is 'SQL Server: Catalog Views, sys.system_sql_modules: system procedures have no text';

create view sys.syscomments as
select
  modules.id,
  modules.group_number as number,
  chunks.number::smallint as colid,
  0::smallint as status,
  null::bytea as ctext,
  0::smallint as texttype,
  0::smallint as language,
  false as encrypted,
  false as compressed,
  pg_catalog.substr(modules.text, 1 + 255 * (chunks.number - 1), 255)::sys.line as text
from (
  select
    objects.object_id as id,
    (objects.type = 'P')::integer::smallint as group_number,
    sys.object_definition(objects.object_id) as text
  from sys.objects as objects
  where objects.type in ('P', 'FN', 'IF', 'TF', 'V', 'TR', 'D', 'C', 'R')
  union all
  select object_id, procedure_number, definition from sys.numbered_procedures
) as modules
cross join lateral generate_series(1, (pg_catalog.length(modules.text) + 254) / 255) as chunks (number);

comment on view sys.syscomments is
'SQL Server: System Compatibility Views, sys.syscomments; in pieces of 255 characters as in syscomments of ASE';
