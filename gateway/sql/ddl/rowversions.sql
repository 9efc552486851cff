-- Row versions: columns declared timestamp or rowversion, to which a trigger assigns a new number at each insert and
-- each update of a row. The trigger's argument is the column's number, which never changes.

create sequence if not exists tsql.last_rowversion minvalue 0 start 2000;
-- a lock that logins cannot take themselves
create table if not exists tsql.one_rowversion ();

create or replace function tsql.next_rowversion() returns bytea
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  next bigint;
begin
  -- not by nextval, since lastval() is @@identity. The exception releases the lock, but does not roll the sequence back
  begin
    lock table tsql.one_rowversion in exclusive mode;
    next := (select last_value from tsql.last_rowversion) + 1;
    perform setval('tsql.last_rowversion', next);
    raise exception using errcode = 'TSRV0';
  exception when sqlstate 'TSRV0' then
    return int8send(next);
  end;
end
$$;
comment on function tsql.next_rowversion() is 'A version number that is greater than those of all rows of the database.';

create or replace function tsql.dbts() returns bytea
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select int8send(last_value) from tsql.last_rowversion $$;
comment on function tsql.dbts() is '@@dbts: the latest row version.';

create or replace function tsql.give_rowversion() returns trigger
language plpgsql
as $$
declare
  target name := (select attname from pg_attribute where attrelid = tg_relid and attnum = tg_argv[0]::smallint);
  given bytea;
begin
  if tg_op = 'INSERT' then
    execute format('select ($1).%I', target) into given using new;
    if given is not null then
      perform tsql.fail(273, 'Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to '
        'exclude the timestamp column, or insert a DEFAULT into the timestamp column.');
    end if;
  end if;
  return jsonb_populate_record(new, jsonb_build_object(target, '\x' || encode(tsql.next_rowversion(), 'hex')));
end
$$;
comment on function tsql.give_rowversion() is 'Gives a row its version. Error: one has been given to an insert (273).';

create or replace function tsql.keep_rowversion() returns trigger
language plpgsql
as $$
begin
  perform tsql.fail(272, 'Cannot update a timestamp column.');
  return null;
end
$$;
comment on function tsql.keep_rowversion() is 'Error 272: an update names the versions of rows.';

create or replace function tsql.rowversions_of(target regclass) returns table (number smallint, name name)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select attnum, attname
  from pg_attribute
  where attrelid = target and attnum > 0 and not attisdropped
    and col_description(attrelid, attnum) ~ '^T-SQL "([^"]|"")+" timestamp(?: as "|\n|$)'
  order by attnum
$$;
comment on function tsql.rowversions_of(regclass) is 'The columns of a table that are declared timestamp.';

create or replace procedure tsql.watch_rowversions(target text)
language plpgsql
as $$
declare
  versions name[] := (select array_agg(name) from tsql.rowversions_of(target::regclass));
  column_number smallint := (select min(number) from tsql.rowversions_of(target::regclass));
begin
  if versions is null then
    return;
  elsif versions[2] is not null then
    perform tsql.fail(2738, format(
      'A table can only have one timestamp column. Because table ''%s'' already has one, the column ''%s'' cannot be added.',
      (select relname from pg_class where oid = target::regclass), versions[2]));
  end if;
  execute format('alter table %s alter column %I drop default', target, versions[1]);
  execute format('create trigger "T-SQL rowversion" before insert or update on %s for each row'
    ' execute function tsql.give_rowversion(%s)', target, column_number);
  execute format('create trigger "T-SQL rowversion kept" before update of %I on %s for each statement'
    ' execute function tsql.keep_rowversion()', versions[1], target);
end
$$;
comment on procedure tsql.watch_rowversions(text) is
$$Has a table's rows get versions, if it has a column for them. Error: it has two (2738).$$;

create or replace procedure tsql.leave_rowversions(target text)
language plpgsql
as $$
begin
  if exists (select from pg_trigger where tgrelid = to_regclass(target) and tgname = 'T-SQL rowversion') then
    execute format('drop trigger "T-SQL rowversion" on %s', target);
    execute format('drop trigger "T-SQL rowversion kept" on %s', target);
  end if;
end
$$;
comment on procedure tsql.leave_rowversions(text) is
  'Takes the triggers off a table that is to be altered: nothing that one of them names can be dropped.';
