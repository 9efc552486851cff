-- The calling login, and identity values.

create or replace function tsql.caller() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- in a procedure current_user is its owner, and on a shared connection session_user is the gateway's
  select case session_user when 'ringlog_gateway' then current_setting('role') else session_user end
$$;
comment on function tsql.caller() is $$The login on whose behalf a procedure runs: suser_name().$$;

create or replace function tsql.last_identity() returns numeric
language plpgsql
as $$
begin
  return lastval();
exception when object_not_in_prerequisite_state then
  return null;
end
$$;
comment on function tsql.last_identity() is $$@@identity: the last identity value of the session.$$;

create or replace function tsql.identity_of(target text) returns numeric
language plpgsql
as $$
begin
  return (
    select currval(pg_get_serial_sequence(target, attname))
    from pg_attribute
    where attrelid = to_regclass(target) and attidentity <> ''
  );
exception when object_not_in_prerequisite_state then
  return null;
end
$$;
comment on function tsql.identity_of(text) is
$$The last identity value of a table in this session; null without one, or without an identity column.$$;

create or replace function tsql.identity_after(target text) returns numeric
language plpgsql
as $$
begin
  if exists (
    select from pg_trigger where tgrelid = to_regclass(target) and not tgisinternal and tgname not like 'T-SQL %'
  ) then
    return tsql.last_identity();
  end if;
  return tsql.identity_of(target);
end
$$;
comment on function tsql.identity_after(text) is
$$@@identity after an insert into a table whose triggers may have inserted rows elsewhere.$$;

create or replace function tsql.advance_identity(target text) returns void
language plpgsql
as $$
declare
  column_ name;
  numbers regclass;
  ascends boolean;
  newest bigint;
begin
  select attname, pg_get_serial_sequence(target, attname) into column_, numbers
  from pg_attribute
  where attrelid = target::regclass and attidentity <> '' and not attisdropped;
  if numbers is null then
    return;
  end if;
  select seqincrement > 0 into ascends from pg_sequence where seqrelid = numbers;
  execute format('select %s(%I)::bigint from %s', case when ascends then 'max' else 'min' end, column_, target)
  into newest;
  perform from pg_sequence
  where seqrelid = numbers and case
    when ascends then newest > coalesce(pg_sequence_last_value(numbers), seqstart - seqincrement)
    else newest < coalesce(pg_sequence_last_value(numbers), seqstart - seqincrement)
  end;
  if found then
    perform setval(numbers, newest);
  end if;
end
$$;
comment on function tsql.advance_identity(text) is
$$After explicit values for an identity column: a value beyond the numbers given so far becomes the current one (SQL Server,
"SET IDENTITY_INSERT").$$;

create or replace function tsql.demand_identity(target text) returns void
language plpgsql
as $$
begin
  if to_regclass(target) is null then
    perform tsql.fail(1088, format('Cannot find the object "%s" because it does not exist or you do not have permissions.',
      array_to_string(parse_ident(target, false), '.')));
  elsif not exists (select from pg_attribute where attrelid = target::regclass and attidentity <> '' and not attisdropped) then
    perform tsql.fail(8106, format('Table ''%s'' does not have the identity property. Cannot perform SET operation.',
      (select relname from pg_class where oid = target::regclass)));
  end if;
end
$$;
comment on function tsql.demand_identity(text) is
$$Refuses SET IDENTITY_INSERT for a missing table (1088) and for one without an identity column (8106).$$;
