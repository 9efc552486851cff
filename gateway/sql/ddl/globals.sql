-- Global temporary tables (`##t`): tables of schema tsql_global, which every login sees, reads and writes, and which
-- end with the session that created them. That session has a temporary table, its marker, which PostgreSQL drops when
-- the session ends for any reason, and which no login can create or keep. A table without its marker has ended: the
-- gateway checks this (tsql.end_globals) before each statement that names such a table.
--
-- They belong to the owner of schema tsql, so that nobody can attach code to one that runs as whoever uses it. A
-- session defines a temporary table, the draft, under its own rights; tsql.publish_global makes a table like it if
-- all expressions of the draft are harmless.

revoke create on schema tsql_global from public;
grant usage on schema tsql_global to public;

-- in version 1.0 a table belonged to the login that made it, and any login could make other objects in the schema
do $$
declare
  owner constant oid := (select nspowner from pg_namespace where nspname = 'tsql');
  one record;
begin
  for one in
    select case object.type when 'composite type' then 'type' when 'statistics object' then 'statistics' else object.type end
      as type, object.identity
    from pg_depend
    cross join pg_identify_object(classid, objid, objsubid) as object
    where refclassid = 'pg_namespace'::regclass and refobjid = 'tsql_global'::regnamespace
      and object.schema = 'tsql_global'
      and not (classid = 'pg_class'::regclass and exists (select from pg_class where oid = objid and relowner = owner))
  loop
    execute format('drop %s if exists %s cascade', one.type, one.identity);
  end loop;
end
$$;

create table if not exists tsql.global_table (
  relation oid primary key,
  marker oid not null
);
comment on table tsql.global_table is
'Which session made a global temporary table: the oid of its marker, a temporary table.';

drop policy if exists read on tsql.global_table;
drop policy if exists own on tsql.global_table;
alter table tsql.global_table disable row level security;
revoke all on tsql.global_table from public;
grant select on tsql.global_table to public;

create or replace function tsql.marks_globals(marker oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_class
    where oid = marker and relname = 'tsql_global_marker' and relpersistence = 't'
      and relowner = (select nspowner from pg_namespace where nspname = 'tsql')
  )
$$;
comment on function tsql.marks_globals(oid) is 'Whether this is the marker of a session that has not ended.';

create or replace function tsql.is_global(relation oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from tsql.global_table as made where made.relation = is_global.relation and tsql.marks_globals(made.marker)
  )
$$;
comment on function tsql.is_global(oid) is 'Whether a table is a global temporary one whose session has not ended.';

create or replace function tsql.own_marker() returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$ select oid from pg_class where relnamespace = pg_my_temp_schema() and tsql.marks_globals(oid) $$;
comment on function tsql.own_marker() is 'The marker of this session; null before its first global temporary table.';

create or replace function tsql.mark_globals() returns oid
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.own_marker() is null then
    create temporary table tsql_global_marker ();
  end if;
  return tsql.own_marker();
end
$$;
comment on function tsql.mark_globals() is 'The marker of this session, created if there is none.';

create or replace procedure tsql.name_indexes(source regclass, target regclass)
language plpgsql
as $$
declare
  one record;
begin
  for one in
    with structure as (
      select i.indrelid, i.indexrelid, c.relname, row(
        i.indkey::text, i.indclass::text, i.indoption::text, i.indisunique, i.indisprimary,
        pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)
      )::text as parts
      from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
      where i.indrelid in (source, target)
    ), counted as (
      select *, pg_catalog.row_number() over (partition by indrelid, parts order by indexrelid) as nth from structure
    )
    select made.indexrelid::regclass as index, own.relname as name
    from counted as made join counted as own using (parts, nth)
    where made.indrelid = target and own.indrelid = source and made.relname <> own.relname
  loop
    execute pg_catalog.format('alter index %s rename to %I', one.index, one.name);
  end loop;
end
$$;
comment on procedure tsql.name_indexes(regclass, regclass) is
'Gives the indexes of a table that was made like another one the names of that one''s.';

create or replace function tsql.demand_own_global(name text, missing integer) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select from tsql.global_table as made join pg_class c on c.oid = made.relation
    where c.relname = name and c.relnamespace = 'tsql_global'::regnamespace and made.marker = tsql.own_marker()
  ) then
    perform tsql.fail(missing, format(case missing
      when 208 then 'Invalid object name ''%s''.'
      when 3701 then 'Cannot drop the table ''%s'', because it does not exist or you do not have permission.'
      else 'Cannot find the object "%s" because it does not exist or you do not have permissions.' end, name));
  end if;
  execute format('lock table tsql_global.%I in access exclusive mode', name);
end
$$;
comment on function tsql.demand_own_global(text, integer) is
'Locks a global temporary table that this session has made; the given error if it has made none of this name.';

create or replace function tsql.demand_no_global(name text) returns void
language plpgsql stable
as $$
begin
  if pg_catalog.to_regclass(pg_catalog.format('tsql_global.%I', name)) is not null then
    perform tsql.fail(2714, pg_catalog.format('There is already an object named ''%s'' in the database.', name));
  end if;
end
$$;
comment on function tsql.demand_no_global(text) is 'Error 2714 if there is a global temporary table of this name.';

create or replace function tsql.publish_global(name text, replaces boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  most constant integer := 250;
  own_marker constant oid := tsql.mark_globals();
  draft constant regclass := (
    select c.oid from pg_class c
    where c.relname = name and c.relnamespace = pg_my_temp_schema() and c.relkind = 'r' and starts_with(name, '##')
  );
  target constant text := format('tsql_global.%I', name);
  unfit constant text := tsql.unfit_in(draft);
  numbers text;
begin
  if draft is null then
    perform tsql.fail(208, format('Invalid object name ''%s''.', name));
  elsif unfit is not null then
    perform tsql.raise(102, 15, 1, format(
      '''%s'' in ''%s'' is not supported: it would run as every login that uses the table.', unfit, name));
  elsif replaces then
    perform tsql.demand_own_global(name, 208);
    delete from tsql.global_table where relation = target::regclass;
    execute format('drop table %s cascade', target);
  elsif (select count(*) from tsql.global_table where marker = own_marker) >= most then
    perform tsql.raise(102, 15, 1, format('''more than %s global temporary tables of a session'' is not supported.', most));
  end if;
  execute format('create unlogged table %s (like pg_temp.%I including comments including constraints including defaults'
    ' including generated including identity including indexes)', target, name);
  call tsql.name_indexes(draft, target::regclass);
  execute format('comment on table %s is %L', target, obj_description(draft, 'pg_class'));
  call tsql.watch_binaries(target);
  call tsql.watch_rowversions(target);
  execute format('grant select, insert, update, delete on %s to public', target);
  for numbers in
    select pg_get_serial_sequence(target, attname)
    from pg_attribute where attrelid = target::regclass and attidentity <> ''
  loop
    execute format('grant usage, select, update on sequence %s to public', numbers);
  end loop;
  insert into tsql.global_table values (target::regclass, own_marker);
end
$$;
comment on function tsql.publish_global(text, boolean) is
$$Makes a global temporary table like the session's temporary table of its name, without its rows; replaces: in place of the
one of that name that this session has made. Errors: a part of it would run as other logins, or the session has too many
(102); the name is taken.$$;

create or replace procedure tsql.copy_rows(source text, target text)
language plpgsql
as $$
declare
  columns text;
  one record;
begin
  select pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' order by attnum)
  into columns
  from pg_catalog.pg_attribute
  where attrelid = target::regclass and attnum > 0 and not attisdropped and attgenerated = '';
  if columns is not null then
    execute pg_catalog.format('insert into %s (%s) overriding system value select %2$s from %3$s', target, columns, source);
  end if;
  for one in
    select pg_catalog.pg_get_serial_sequence(source, attname) as given, pg_catalog.pg_get_serial_sequence(target, attname) as taking
    from pg_catalog.pg_attribute where attrelid = target::regclass and attidentity <> ''
  loop
    execute pg_catalog.format('select pg_catalog.setval(%L, last_value, is_called) from %s', one.taking, one.given);
  end loop;
end
$$;
comment on procedure tsql.copy_rows(text, text) is
'Copies the rows of a table, and the state of its identity column, to a table with the same columns.';

create or replace procedure tsql.share_draft(name text, replaces boolean default false)
language plpgsql
as $$
declare
  draft constant text := pg_catalog.format('pg_temp.%I', name);
begin
  execute pg_catalog.format('grant select on %s to %s', draft,
    (select nspowner::regrole from pg_catalog.pg_namespace where nspname = 'tsql'));
  perform tsql.publish_global(name, replaces);
  call tsql.copy_rows(draft, pg_catalog.format('tsql_global.%I', name));
  execute pg_catalog.format('drop table %s', draft);
end
$$;
comment on procedure tsql.share_draft(text, boolean) is
'Makes the session''s temporary table of this name a global one, with its rows. See tsql.publish_global.';

create or replace procedure tsql.define_global(name text, definition text, missing integer default null)
language plpgsql
as $$
declare
  draft constant text := pg_catalog.format('pg_temp.%I', name);
  shared constant text := pg_catalog.format('tsql_global.%I', name);
begin
  if missing is not null then
    perform tsql.demand_own_global(name, missing);
    execute pg_catalog.format('create temporary table %I (like %s including all)', name, shared);
    call tsql.name_indexes(shared::regclass, draft::regclass);
    call tsql.copy_rows(shared, draft);
  else
    perform tsql.demand_no_global(name);
  end if;
  execute definition;
  call tsql.share_draft(name, missing is not null);
end
$$;
comment on procedure tsql.define_global(text, text, integer) is
$$Runs definitions of the temporary table that is the draft of a global one. They create it, or they alter the one that this
session has made; missing: the error if it has made none of this name.$$;

create or replace procedure tsql.truncate_global(name text, missing integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.demand_own_global(name, missing);
  execute format('truncate table only tsql_global.%I restart identity', name);
end
$$;
comment on procedure tsql.truncate_global(text, integer) is
'Runs a TRUNCATE TABLE of a global temporary table of this session. Error: it has made none of this name (missing).';

create or replace function tsql.drop_global(name text, if_exists boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  found constant regclass := to_regclass(format('tsql_global.%I', name));
begin
  if found is null and if_exists then
    return;
  end if;
  perform tsql.demand_own_global(name, 3701);
  delete from tsql.global_table where relation = found;
  execute format('drop table %s cascade', found);
end
$$;
comment on function tsql.drop_global(text, boolean) is
$$Drops a global temporary table of this session. Error: it has made none of this name (3701).$$;

create or replace function tsql.end_globals(named text[] default '{}') returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10ms'
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
      -- the statement does not wait for tables that it does not name
      if ended.name <> all (named) then
        execute format('lock table tsql_global.%I in access exclusive mode nowait', ended.name);
      end if;
      execute format('drop table tsql_global.%I cascade', ended.name);
      delete from tsql.global_table where relation = ended.oid;
    exception
      when undefined_table then
        null;
      when lock_not_available or object_in_use then
        -- a statement still uses it; no other statement may begin to use it
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

create or replace function tsql.end_own_globals() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.own_marker() is not null then
    drop table pg_temp.tsql_global_marker;
  end if;
  perform tsql.end_globals();
end
$$;
comment on function tsql.end_own_globals() is 'At the end of a session: drops its global temporary tables.';
