-- Global temporary tables (`##t`): tables of schema tsql_global, which every login sees, reads and writes, and which
-- end with the session that created them. That session has a temporary table, its marker, which PostgreSQL drops when
-- the session ends for any reason, and which no login can create or keep. A table without its marker has ended: the
-- gateway checks this (tsql.end_globals) before each statement that names such a table.

grant usage, create on schema tsql_global to public;

create table if not exists tsql.global_table (
  relation oid primary key,
  marker oid not null
);

comment on table tsql.global_table is
'Which session made a global temporary table: the oid of its marker, a temporary table.';

create or replace function tsql.marks_globals(marker oid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_class
    where oid = marker and relname = 'tsql_global_marker' and relpersistence = 't'
      and relowner = (select nspowner from pg_namespace where nspname = 'tsql')
  )
$$;

comment on function tsql.marks_globals(oid) is 'Whether this is the marker of a session that has not ended.';


-- a login may note only its own tables, in its session's name
alter table tsql.global_table enable row level security;
drop policy if exists read on tsql.global_table;
create policy read on tsql.global_table for select using (true);
drop policy if exists own on tsql.global_table;
create policy own on tsql.global_table for insert with check (
  exists (
    select from pg_catalog.pg_class as made
    where made.oid = relation and made.relkind = 'r' and made.relnamespace = 'tsql_global'::regnamespace
      and pg_catalog.pg_has_role(current_user, made.relowner, 'usage')
  )
  and tsql.marks_globals(marker)
  and exists (
    select from pg_catalog.pg_class as marking
    where marking.oid = marker and marking.relnamespace = pg_catalog.pg_my_temp_schema()
  )
);
grant select, insert on tsql.global_table to public;

create or replace function tsql.is_global(relation oid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from tsql.global_table as made where made.relation = is_global.relation and tsql.marks_globals(made.marker)
  )
$$;

comment on function tsql.is_global(oid) is 'Whether a table is a global temporary one whose session has not ended.';


create or replace function tsql.own_marker()
returns oid
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select oid from pg_class where relnamespace = pg_my_temp_schema() and tsql.marks_globals(oid)
$$;

comment on function tsql.own_marker() is 'The marker of this session; null before its first global temporary table.';


create or replace function tsql.mark_globals()
returns oid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.own_marker() is null then
    create temporary table tsql_global_marker ();
  end if;
  return tsql.own_marker();
end
$$;

comment on function tsql.mark_globals() is 'The marker of this session, created if there is none.';


create or replace function tsql.keep_global(relation oid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- first: the policy sees the marker only if it exists before the insert
  marker constant oid := tsql.mark_globals();
begin
  insert into tsql.global_table values (relation, marker);
end
$$;

comment on function tsql.keep_global(oid) is
$$Notes a table that the session has made as its global temporary one, in the transaction that makes it. Error: it is not in
schema tsql_global, or not the caller's (42501).$$;


create or replace procedure tsql.share_global(target text)
language plpgsql
as $$
declare
  numbers text;
begin
  execute format('grant all on table %s to public', target);
  for numbers in
    select pg_catalog.pg_get_serial_sequence(target, attname)
    from pg_catalog.pg_attribute where attrelid = target::regclass and attidentity <> ''
  loop
    execute format('grant all on sequence %s to public', numbers);
  end loop;
  perform tsql.keep_global(target::regclass);
end
$$;

comment on procedure tsql.share_global(text) is 'Makes a new table of schema tsql_global accessible to every login until the session ends.';


create or replace procedure tsql.create_global(
  definition text, target text, columns text[], declarations text[], named text default null, constraints text[] default '{}'
)
language plpgsql
as $$
begin
  call tsql.create_table(definition, target, columns, declarations, named, constraints);
  call tsql.share_global(target);
end
$$;

comment on procedure tsql.create_global(text, text, text[], text[], text, text[]) is
'Runs a CREATE TABLE of a global temporary table, and keeps what is declared of its columns beyond what PostgreSQL keeps.';


create or replace function tsql.drop_global(name text, if_exists boolean)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  found oid := (
    select c.oid from pg_class c where c.relname = name and c.relkind = 'r' and c.relnamespace = 'tsql_global'::regnamespace
  );
begin
  if found is not null then
    execute format('drop table tsql_global.%I', name);
    delete from tsql.global_table where relation = found;
  elsif not if_exists then
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the table ''%s'', because it does not exist or you do not have permission.', name));
  end if;
end
$$;

comment on function tsql.drop_global(text, boolean) is
$$Drops a global temporary table, which any login may. Error: it is not there (3701).$$;


create or replace function tsql.end_globals(named text[] default '{}')
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10ms'
as $$
declare
  ended record;
begin
  for ended in
    select c.oid, c.relname as name
    from pg_class c
    where c.relnamespace = 'tsql_global'::regnamespace and c.relkind = 'r' and not tsql.is_global(c.oid)
  loop
    begin
      execute format('drop table tsql_global.%I', ended.name);
      delete from tsql.global_table where relation = ended.oid;
    exception
      when undefined_table then
        null;
      when lock_not_available or object_in_use or dependent_objects_still_exist then
        -- a statement still uses it, or an object created outside of T-SQL; no other statement may begin to use it
        if ended.name = any (named) then
          perform tsql.raise(208, 16, 0, format('Invalid object name ''%s''.', ended.name));
        end if;
    end;
  end loop;
end
$$;

comment on function tsql.end_globals(text[]) is
$$Drops the global temporary tables whose sessions have ended, except those in use. Error: a statement that is going to run
names one of these (208).$$;


create or replace function tsql.end_own_globals()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.own_marker() is not null then
    drop table pg_temp.tsql_global_marker;
  end if;
  perform tsql.end_globals();
end
$$;

comment on function tsql.end_own_globals() is 'At the end of a session: drops its global temporary tables.';
