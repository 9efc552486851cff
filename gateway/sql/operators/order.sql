-- Order of values: keys of ORDER BY, MIN and MAX.

-- a key of ORDER BY whose type the compiler does not know; PostgreSQL inlines the bodies, so that an index on a column can
-- be used
create or replace function tsql.ordered(value anyelement) returns anyelement
language sql immutable parallel safe as 'select value';
-- bodies of standard SQL (return …) are parsed when they are created, which makes planning faster
call tsql.make_each('{boolean,smallint,integer,bigint,numeric,real,double precision,text,date,time,timestamp,timestamptz}', $$
create or replace function tsql.ordered(value %1$s) returns %1$s language sql immutable parallel safe return value$$);
create or replace function tsql.ordered(value uuid) returns uuid
language sql immutable parallel safe return tsql.guid_key(value);

create or replace function tsql.lesser(l uuid, r uuid) returns uuid
language sql immutable strict parallel safe return case when tsql.guid_key(r) < tsql.guid_key(l) then r else l end;
create or replace function tsql.greater(l uuid, r uuid) returns uuid
language sql immutable strict parallel safe return case when tsql.guid_key(r) > tsql.guid_key(l) then r else l end;
create or replace aggregate tsql.min(uuid) (sfunc = tsql.lesser, stype = uuid);
create or replace aggregate tsql.max(uuid) (sfunc = tsql.greater, stype = uuid);
-- the same names for all types, for values whose type the compiler does not know; an index on a column can be used too
do $$
declare
  of record;
begin
  for of in
    select aggfnoid, proname, proargtypes[0]::regtype as type, aggtransfn, aggcombinefn, aggsortop
    from pg_aggregate
    join pg_proc on pg_proc.oid = aggfnoid
    join pg_type on pg_type.oid = proargtypes[0]
    where proname in ('min', 'max') and pronamespace = 'pg_catalog'::regnamespace and pronargs = 1
      and typtype <> 'p' and proargtypes[0] <> 'uuid'::regtype
  loop
    execute format('create or replace aggregate tsql.%I(%s) (sfunc = %s, stype = %s, combinefunc = %s,'
      ' sortop = operator(pg_catalog.%s), parallel = safe)', of.proname, of.type, of.aggtransfn, of.type, of.aggcombinefn,
      case of.proname when 'min' then '<' else '>' end);
  end loop;
end
$$;
call tsql.make_each('{money,smallmoney}', $$
create or replace function tsql.as_%1$s(value numeric) returns tsql.%1$s
language sql immutable strict parallel safe return value::tsql.%1$s;
create or replace aggregate tsql.max(tsql.%1$s) (sfunc = numeric_larger, stype = numeric,
  finalfunc = tsql.as_%1$s, combinefunc = numeric_larger, parallel = safe);
create or replace aggregate tsql.min(tsql.%1$s) (sfunc = numeric_smaller, stype = numeric,
  finalfunc = tsql.as_%1$s, combinefunc = numeric_smaller, parallel = safe)$$);
create or replace function tsql.least(variadic guids uuid[]) returns uuid
language sql immutable parallel safe return (select tsql.min(guid) from unnest(guids) as guid);
create or replace function tsql.greatest(variadic guids uuid[]) returns uuid
language sql immutable parallel safe return (select tsql.max(guid) from unnest(guids) as guid);
