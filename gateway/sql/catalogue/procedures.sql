-- Lookup of procedures, and the texts of those compiled from T-SQL.

create or replace function tsql.database_of(schema text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('sys.every_inner_schema') is null then
    return null;
  end if;
  return (select schemas.database from sys.every_inner_schema as schemas where schemas.name = schema);
end
$$;
comment on function tsql.database_of(text) is 'The database that has the schema in it; null for a schema that is a database.';

create or replace view tsql.every_callable as
select
  p.oid,
  p.proname as name,
  case when n.oid = pg_catalog.pg_my_temp_schema() then 'pg_temp' else lower(n.nspname) end as schema
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where p.prokind in ('f', 'p')
  and p.provariadic = 0
  and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
  and n.nspname not in ('pg_catalog', 'information_schema', 'tsql', 'tsql_global', 'sys', 'sybsystemprocs');
comment on view tsql.every_callable is 'What EXECUTE may call, with the name of the schema in small letters.';
grant select on tsql.every_callable to public;

create or replace function tsql.procedures_named(database text, schema text, procedure text) returns table (oid oid)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  stored constant name := tsql.stored_name(procedure);
  -- the first has precedence
  schemas constant text[] := case
    when procedure like '#%' then '{pg_temp}'
    when schema = '' then array[lower(database), lower(tsql.database_of(database)), 'ringlog', 'public']
    else array[lower(schema), 'ringlog']
  end;
  named oid[] := array(
    select called.oid from tsql.every_callable as called
    where called.name = any (array[procedure, stored]::name[]) and called.schema = any (schemas)
  );
begin
  if named = '{}' then
    -- a name with capitals of PostgreSQL's, for which there is no index
    named := array(
      select called.oid from tsql.every_callable as called where lower(called.name) = stored and called.schema = any (schemas)
    );
  end if;
  return query
  select ranked.oid
  from (
    select called.oid, rank() over (order by array_position(schemas, called.schema), called.name = procedure desc) as rank
    from tsql.every_callable as called
    where called.oid = any (named)
  ) as ranked
  where ranked.rank = 1;
end
$$;
comment on function tsql.procedures_named(text, text, text) is
$$The procedures with a name in a database: those of the named schema ('' for the current one and its database), otherwise ringlog's.
Other databases are not searched. #p is a procedure of the session.$$;

create or replace function tsql.source(procedure oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$ select sys.source_in(p.prosrc, obj_description(p.oid, 'pg_proc')) from pg_proc p where p.oid = procedure $$;
comment on function tsql.source(oid) is
$$The T-SQL of a compiled procedure, from its comment; null for other procedures, and if the procedure or its comment was
changed since.$$;

create or replace function tsql.text_to_run(procedure oid, out source text, out tables oid[])
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  called pg_proc := (select p from pg_proc p where p.oid = procedure);
begin
  if called.oid is null then
    raise exception using errcode = 'undefined_function', message = 'the procedure is not there any more';
  end if;
  if not has_schema_privilege(called.pronamespace, 'usage') then
    raise exception using errcode = 'insufficient_privilege',
      message = format('permission denied for schema %s', called.pronamespace::regnamespace);
  end if;
  if not has_function_privilege(procedure, 'execute') then
    raise exception using errcode = 'insufficient_privilege',
      message = format('permission denied for procedure %s', called.proname);
  end if;
  source := tsql.source(procedure);
  if source is null then
    perform tsql.raise(2812, 16, 1, format(
      'The text of ''%s'' is not the one that it was made of: make it anew.', called.proname));
  end if;
  tables := tsql.temporary_tables();
end
$$;
comment on function tsql.text_to_run(oid) is
$$The T-SQL of a procedure that the gateway will run for the caller, and the temporary tables of the session. Errors: the
caller may not execute it (42501), it does not exist (42883), its comment was changed (2812).$$;

create or replace function tsql.refuse_call(procedure text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.raise(2812, 16, 1, format(
    'Procedure ''%s'' is run by the gateway and not by PostgreSQL: call it by TDS. A procedure of T-SQL that calls it '
    'and was made by an earlier version has to be made anew.', procedure), 0, procedure);
end
$$;
comment on function tsql.refuse_call(text) is
$$The body of a procedure whose T-SQL the gateway runs: raises an error for a call inside PostgreSQL (2812).$$;

create or replace function tsql.procedure_group(procedure oid) returns oid[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select array(
    select member.oid
    from pg_proc first
    -- PostgreSQL has no index of a schema's functions but that of their dependencies on it
    cross join lateral (
      select first.oid
      union
      select inside.objid from pg_depend inside
      where inside.refclassid = 'pg_namespace'::regclass and inside.refobjid = first.pronamespace
        and inside.classid = 'pg_proc'::regclass
    ) as near
    join pg_proc member on member.oid = near.oid and member.pronamespace = first.pronamespace
      and (member.oid = first.oid or member.proname like '%;%' and member.proname ~ ';\d+$'
        and starts_with(lower(member.proname), lower(first.proname) || ';'))
    where first.oid = procedure and member.prokind in ('f', 'p')
    order by length(member.proname), member.proname
  )
$$;
comment on function tsql.procedure_group(oid) is
$$A procedure and those of its group, by number: p;2 is a procedure of this name, p;1 is p.$$;
