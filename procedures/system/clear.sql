-- Drops the objects of an earlier version: views, functions, types, each kind in one statement, because they may depend
-- on one another. PostgreSQL refuses if another object depends on them, and names it.
do $$
declare
  system constant regnamespace[] := array['sys', 'sybsystemprocs', 'tsql_information_schema']::regnamespace[];
  is_made_of_functions constant boolean := exists (
    select from pg_class where relnamespace = any (system) and relname like 'every\_row\_of\_%'
  );
  step text;
  listed text;
begin
  -- each view returns its function's rows: see elsewhere.sql
  foreach step in array case when is_made_of_functions then '{views,rows,definitions}' else '{rows,views}' end::text[]
  loop
    if step = 'rows' then
      select string_agg(procedures.oid::regprocedure::text, ', ') into listed
      from pg_proc as procedures
      join pg_type as types on types.oid = procedures.prorettype
      join pg_class as returned on returned.oid = types.typrelid
      where procedures.pronamespace = any (system) and returned.relnamespace = any (system);
      if listed is not null then
        execute 'drop function ' || listed;
      end if;
    else
      select string_agg(format('%I.%I', relnamespace::regnamespace, relname), ', ') into listed
      from pg_class
      where relnamespace = any (system) and relkind = 'v'
        and (not is_made_of_functions or (step = 'definitions') = (relname like 'every\_%'));
      if listed is not null then
        execute 'drop view ' || listed;
      end if;
    end if;
  end loop;
  select string_agg(oid::regoperator::text, ', ') into listed
  from pg_operator
  where oprcode in (select oid from pg_proc where pronamespace = any (system));
  if listed is not null then
    execute 'drop operator ' || listed;
  end if;
  select string_agg(oid::regprocedure::text, ', ') into listed
  from pg_proc
  where pronamespace = any (system);
  if listed is not null then
    execute 'drop routine ' || listed;
  end if;
  select string_agg(oid::regtype::text, ', ') into listed
  from pg_type
  where typnamespace = any (system) and typtype = 'd';
  if listed is not null then
    execute 'drop domain ' || listed;
  end if;
end
$$;
