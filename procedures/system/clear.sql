-- Drops the objects of an earlier version: views and functions of their rows, operators, other functions, types. PostgreSQL refuses
-- if another object depends on them, and names it.
do $$
declare
  system constant regnamespace[] := array['sys', 'sybsystemprocs', 'tsql_information_schema']::regnamespace[];
  free text;
  listed text;
begin
  -- some views return the rows of a function, some functions those of a view: those first on which no other depends
  loop
    select string_agg(procedures.oid::regprocedure::text, ', ') into listed
    from pg_proc as procedures
    join pg_type as types on types.oid = procedures.prorettype
    join pg_class as returned on returned.oid = types.typrelid
    where procedures.pronamespace = any (system) and returned.relnamespace = any (system) and not exists (
      select from pg_depend
      where refclassid = 'pg_proc'::regclass and refobjid = procedures.oid and classid = 'pg_rewrite'::regclass
    );
    if listed is not null then
      execute 'drop function ' || listed;
    end if;
    select
      string_agg(views.name, ', ') filter (where not exists (
        select from pg_depend
        join pg_rewrite on pg_rewrite.oid = objid
        where refclassid = 'pg_class'::regclass and refobjid = views.oid and classid = 'pg_rewrite'::regclass and ev_class <> views.oid
      ) and not exists (select from pg_proc where prorettype = views.reltype)),
      string_agg(views.name, ', ')
    into free, listed
    from (
      select oid, reltype, format('%I.%I', relnamespace::regnamespace, relname) as name
      from pg_class where relnamespace = any (system) and relkind = 'v'
    ) as views;
    exit when listed is null;
    execute 'drop view ' || coalesce(free, listed);
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
