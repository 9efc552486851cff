-- Checks of the columns that a compiled text expects.

create or replace function tsql.demand_columns(relation oid, names text[]) returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
  found text[] := '{}';
begin
  -- not from pg_attribute: the snapshot may be older than the change that caused this replanning
  for column_number in 1..1600 loop
    name := (pg_identify_object_as_address('pg_class'::regclass, relation, column_number)).object_names[3];
    exit when name is null;
    if name not like '........pg.dropped.%' then
      found := found || name;
    end if;
  end loop;
  if found is distinct from names then
    raise exception 'the columns of % are others now', relation::regclass using errcode = 'RL007';
  end if;
  return true;
end
$$;
comment on function tsql.demand_columns(oid, text[]) is
$$True; an error (RL007) when a table or composite type has other columns than these, or in another order. It is
immutable for PostgreSQL to evaluate it when a statement is planned; since the statement has the relation's oid, it is
planned again when that has changed.$$;

create or replace function tsql.demand_declared(relation regclass, columns jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.is_declared_otherwise(relation, columns) then
    perform tsql.fail(2801, format(
      'The definition of object ''%s'' has changed since it was compiled: ALTER the procedure, function or trigger '
      'that uses it.', (select relname from pg_class where oid = relation)));
  end if;
end
$$;
comment on function tsql.demand_declared(regclass, jsonb) is
$$Error 2801 if a table's columns are declared otherwise than a procedure was compiled with. It is immutable, and its
arguments are constants: PostgreSQL evaluates it when it plans the procedure's first statement, and again after a change
of the table.$$;

create or replace function tsql.is_declared_otherwise(relation oid, columns jsonb) returns boolean
language sql set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from jsonb_each_text(columns) as known (name, declared)
    left join (
      select a.attname, concat(n.nspname || '.', t.typname, ' ', a.atttypmod, ' ', said.found[2]) as declared
      from pg_attribute a
      join pg_type t on t.oid = a.atttypid
      left join pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
      left join lateral regexp_match(
        col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') said (found) on true
      where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
      union all
      select '', count(*)::text from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
    ) as actual on actual.attname = known.name
    where actual.declared is distinct from known.declared
  )
$$;
comment on function tsql.is_declared_otherwise(oid, jsonb) is
$$Whether columns of a table have other types than the given ones, by their names: type, modifier and T-SQL's declaration
as the gateway reads them; null for no such column; the number of all columns has the name "". It is volatile: it sees what has been committed while PostgreSQL
waited for the table.$$;

create or replace function tsql.outdated() returns table (schema text, source text, read_as text, owner text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  one record;
  is_outdated boolean;
  -- PostgreSQL has no index of a schema's functions but that of their dependencies on it
  bound constant oid[] := array(
    select p.oid
    from pg_namespace n
    join pg_depend inside
      on inside.refclassid = 'pg_namespace'::regclass and inside.refobjid = n.oid and inside.classid = 'pg_proc'::regclass
    join pg_proc p on p.oid = inside.objid and p.pronamespace = n.oid
    where n.nspname not in ('pg_catalog', 'information_schema', 'sys', 'tsql')
      -- not ringlog's own
      and (n.nspname <> 'ringlog' or p.proowner <> n.nspowner)
      and strpos(p.prosrc, E'\n-- bound as ') > 0
  );
begin
  for one in
    select p.oid, case when p.pronamespace = pg_my_temp_schema() then '' else n.nspname end as schema,
      substring(p.prosrc from '\n-- bound as ([a-z0-9 ]+): ') as read_as,
      substring(p.prosrc from '\n-- bound as [a-z0-9 ]+: ([^\n]+)\n') as columns, pg_get_userbyid(p.proowner) as owner
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where p.oid = any (bound) and pg_has_role(session_user, p.proowner, 'member')
      -- not of a trigger that went with its table: it would be made on a new one of the name
      and (p.prorettype <> 'trigger'::regtype or exists (select from pg_trigger where tgfoid = p.oid))
      and (not starts_with(n.nspname, 'pg_temp_') or n.oid = pg_my_temp_schema())
  loop
    begin
      is_outdated := exists (
        select from jsonb_each(one.columns::jsonb) as named (name, columns)
        where tsql.is_declared_otherwise(to_regclass(named.name), named.columns) and to_regclass(named.name) is not null
      );
    exception when data_exception or syntax_error_or_access_rule_violation then
      is_outdated := false;
    end;
    if is_outdated then
      schema := one.schema;
      source := tsql.source(one.oid);
      read_as := one.read_as;
      owner := one.owner;
      return next;
    end if;
  end loop;
end
$$;
comment on function tsql.outdated() is
$$The procedures, functions and triggers compiled from T-SQL of which a table has changed since, of the owners that the
session may act as: their schema ('' for the session's own), T-SQL, how it was read, and the owner.$$;
