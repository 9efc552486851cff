-- Temporary tables of procedures.

create or replace function tsql.drop_temporary(names text[], if_exists boolean) returns void
language plpgsql
as $$
declare
  name text;
begin
  -- those from which result sets were read before
  for name in
    select c.relname from pg_catalog.pg_class c
    where c.relnamespace = pg_catalog.pg_my_temp_schema() and c.relkind = 'r' and c.relname like '#@left %'
  loop
    begin
      execute format('drop table pg_temp.%I', name);
    exception when object_in_use or insufficient_privilege then
      null;
    end;
  end loop;
  foreach name in array names loop
    if to_regclass(format('pg_temp.%I', name)) is null then
      if not if_exists then
        perform tsql.raise(3701, 11, 5, format(
          'Cannot drop the table ''%s'', because it does not exist or you do not have permission.', name));
      end if;
      continue;
    end if;
    begin
      execute format('drop table pg_temp.%I', name);
    exception when object_in_use then
      -- a result set must still be read from it
      execute format('alter table pg_temp.%I rename to %I', name, '#@left ' || gen_random_uuid());
    end;
  end loop;
end
$$;
comment on function tsql.drop_temporary(text[], boolean) is
$$Drops temporary tables of a procedure, at its end or by its DROP TABLE. A table that an open result set still reads is
renamed, and dropped by the next call or with the session. Error: there is none (3701).$$;

create or replace function tsql.temporary_tables() returns oid[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select array(
    select c.oid from pg_class c where c.relnamespace = pg_my_temp_schema() and c.relkind = 'r' order by c.oid
  )
$$;
comment on function tsql.temporary_tables() is $$The temporary tables of the session.$$;

create or replace function tsql.forget_tables(before oid[]) returns void
language sql
as $$
  select tsql.drop_temporary(array_agg(c.relname::text), true)
  from pg_catalog.pg_class c
  where c.relnamespace = pg_catalog.pg_my_temp_schema()
    and c.relkind = 'r'
    and c.relname ~ '^#[^#]'
    and c.relname not like '#@left %'
    and c.oid <> all (before)
  having count(*) > 0
$$;
comment on function tsql.forget_tables(oid[]) is
$$Drops the temporary tables that a procedure or a batch has created and left.$$;
