-- Drops what an earlier version made. Functions that return a view's rows, views, other functions, types: each kind in
-- one statement, as they may depend on one another. What somebody else has built on them makes PostgreSQL refuse, with
-- its name.
do $$
declare
  system constant regnamespace[] := array['sys', 'sybsystemprocs', 'tsql_information_schema']::regnamespace[];
  views text;
  functions text;
  types text;
begin
  select string_agg(procedures.oid::regprocedure::text, ', ') into functions
  from pg_proc as procedures
  join pg_type as types on types.oid = procedures.prorettype
  join pg_class as returned on returned.oid = types.typrelid
  where procedures.pronamespace = any (system) and returned.relnamespace = any (system);
  if functions is not null then
    execute 'drop function ' || functions;
  end if;
  select string_agg(format('%I.%I', relnamespace::regnamespace, relname), ', ') into views
  from pg_class
  where relnamespace = any (system) and relkind = 'v';
  if views is not null then
    execute 'drop view ' || views;
  end if;
  select string_agg(oid::regprocedure::text, ', ') into functions
  from pg_proc
  where pronamespace = any (system);
  if functions is not null then
    execute 'drop function ' || functions;
  end if;
  select string_agg(oid::regtype::text, ', ') into types
  from pg_type
  where typnamespace = any (system) and typtype = 'd';
  if types is not null then
    execute 'drop domain ' || types;
  end if;
end
$$;
