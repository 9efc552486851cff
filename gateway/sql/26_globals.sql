-- Global temporary tables (`##t`): tables of schema tsql_global, which every login sees, reads and writes, and which end with
-- the session that made them. That session holds an advisory lock as long as it is there, however it ends. A table whose
-- lock nobody holds has ended: the gateway asks for such tables (tsql.end_globals) before each statement that names one.

grant usage, create on schema tsql_global to public;

create table if not exists tsql.global_table (
  relation oid primary key,
  session integer not null
);

comment on table tsql.global_table is
'Which session made a global temporary table: the number of the advisory lock that it holds.';

grant select on tsql.global_table to public;

create sequence if not exists tsql.global_session as integer cycle;

create or replace view tsql.session_of_globals as
select objid::integer as number, pid
from pg_catalog.pg_locks
-- the digits of the class are "temp"
where locktype = 'advisory' and classid = 1952804208 and objsubid = 2 and granted
  and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database());

comment on view tsql.session_of_globals is 'Sessions that have made global temporary tables and have not ended.';

grant select on tsql.session_of_globals to public;

create or replace function tsql.is_global(relation oid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from tsql.global_table as made
    join tsql.session_of_globals as maker on maker.number = made.session
    where made.relation = is_global.relation
  )
$$;

comment on function tsql.is_global(oid) is 'Whether a table is a global temporary one whose session has not ended.';


create or replace function tsql.keep_global(relation oid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  own integer := (select number from tsql.session_of_globals where pid = pg_backend_pid() limit 1);
begin
  while own is null loop
    own := nextval('tsql.global_session');
    if not pg_try_advisory_lock(1952804208, own) then
      own := null;
    end if;
  end loop;
  insert into tsql.global_table values (relation, own);
end
$$;

comment on function tsql.keep_global(oid) is
$$Notes a table that the session has made as its global temporary one, in the transaction that makes it.$$;


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

comment on procedure tsql.share_global(text) is 'Makes a new table of schema tsql_global every login''s, until the session ends.';


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
        -- a statement still uses it, or an object made outside T-SQL; nobody else may begin to
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
  perform pg_advisory_unlock(1952804208, number) from tsql.session_of_globals where pid = pg_backend_pid();
  perform tsql.end_globals();
end
$$;

comment on function tsql.end_own_globals() is 'At the end of a session: drops its global temporary tables.';
