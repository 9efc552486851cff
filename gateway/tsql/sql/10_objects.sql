-- Objects of the database by their T-SQL names.

create or replace function tsql.name_parts(name text) returns text[]
language sql immutable strict parallel safe
return array(
  select lower(btrim(part, ' []"')) from unnest(string_to_array(name, '.')) with ordinality as parts (part, place)
  where btrim(part, ' []"') <> '' and lower(btrim(part, ' []"')) not in ('dbo', 'tempdb')
  order by place
);

create or replace function tsql.find_object(name text, kind text) returns integer
language plpgsql stable
as $$
declare
  parts text[] := tsql.name_parts(name);
  schema_ text := case when array_length(parts, 1) > 1 then parts[array_length(parts, 1) - 1] end;
  own text := parts[array_length(parts, 1)];
  found oid;
begin
  if own like '#%' then
    schema_ := 'pg_temp';
  end if;
  if kind is null or upper(btrim(kind)) in ('U', 'V', 'S') then
    found := to_regclass(case when schema_ is null then quote_ident(own)
      else quote_ident(schema_) || '.' || quote_ident(own) end);
    if kind is not null and found is not null and not exists (
      select from pg_class where oid = found and (relkind = 'v') = (upper(btrim(kind)) = 'V')
    ) then
      found := null;
    end if;
  end if;
  if found is null and (kind is null or upper(btrim(kind)) in ('P', 'FN', 'TF', 'IF')) then
    select pg_proc.oid into found
    from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
    where proname = own and case when schema_ is null then pg_function_is_visible(pg_proc.oid)
      else nspname = schema_ end
      and nspname not in ('pg_catalog', 'information_schema')
    order by pg_proc.oid limit 1;
  end if;
  return found::bigint::integer;
end
$$;
create or replace function tsql.object_id(name text, kind text default null) returns integer
language sql stable return case when name is not null then tsql.find_object(name, kind) end;
comment on function tsql.object_id(text, text) is 'The number of a table, view or procedure; null when there is none.';

create or replace function tsql.object_name(id integer) returns varchar
language sql stable strict
return coalesce(
  (select relname::varchar from pg_class where oid = id::bigint::oid),
  (select proname::varchar from pg_proc where oid = id::bigint::oid)
);
create or replace function tsql.col_name(id integer, place integer) returns varchar
language sql stable strict
return (select attname::varchar from pg_attribute
  where attrelid = id::bigint::oid and attnum = place and attnum > 0 and not attisdropped);
create or replace function tsql.col_length(name text, column_ text) returns smallint
language sql stable strict
return (
  select case when atttypid in ('varchar'::regtype, 'bpchar'::regtype) then case when atttypmod > 4 then atttypmod - 4
    else -1 end when attlen > 0 then attlen else -1 end::smallint
  from pg_attribute
  where attrelid = tsql.find_object(name, null)::bigint::oid and attname = lower(btrim(column_, '[]"'))
    and attnum > 0 and not attisdropped
);
create or replace function tsql.schema_name(id integer default null) returns varchar
language sql stable
return case when id is null then current_schema()::varchar
  else (select nspname::varchar from pg_namespace where oid = id::bigint::oid) end;
create or replace function tsql.type_name(id integer) returns varchar
language sql stable strict return (select typname::varchar from pg_type where oid = id::bigint::oid);
create or replace function tsql.user_id(name text default null) returns integer
language sql stable
return (select oid::bigint::integer from pg_roles where rolname = coalesce(name, current_user::text));
create or replace function tsql.db_id(name text default null) returns integer
language sql stable
return (select oid::bigint::integer from pg_namespace where nspname = coalesce(lower(name), current_schema()));
