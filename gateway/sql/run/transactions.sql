-- The transactions of procedures compiled from T-SQL, inside those of their callers.

create or replace function tsql.transaction_count() returns integer
language sql stable
as $$ select coalesce(nullif(current_setting('tsql.trancount', true), ''), '0')::integer $$;
comment on function tsql.transaction_count() is $$@@trancount: the caller's transactions and the procedure's.$$;

create or replace function tsql.is_doomed() returns boolean
language sql stable
as $$ select coalesce(current_setting('tsql.doomed', true) = 'on', false) $$;
comment on function tsql.is_doomed() is
$$Whether the transaction cannot be committed, because of an error that a CATCH block got.$$;

create or replace function tsql.transaction_state() returns integer
language sql stable
as $$ select case when tsql.is_doomed() then -1 else least(tsql.transaction_count(), 1) end $$;
comment on function tsql.transaction_state() is $$xact_state()$$;

create or replace function tsql.raised_in_trigger(context text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal
      and p.prosrc like '%-- compiled from T-SQL, %' and p.prosrc not like '%-- xact_abort off%'
      and (strpos(context, format('function %I() line ', p.proname)) > 0
        or strpos(context, format('.%I() line ', p.proname)) > 0))
$$;
comment on function tsql.raised_in_trigger(text) is
$$Whether an error was raised in a trigger of T-SQL, where SET XACT_ABORT is on: by PostgreSQL's context of the error.$$;

create or replace function tsql.doom(number integer, own boolean, context text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.is_doomed() then
    return;
  end if;
  if tsql.transaction_count() > 0 and (tsql.ends_its_transaction(number) or tsql.raised_in_trigger(context)
    or current_setting('tsql.xact_abort', true) = 'on')
  then
    perform set_config('tsql.doomed', 'on', true);
    perform set_config('transaction_read_only', 'on', true);
    if tsql.transaction_count() > own::integer then
      raise notice using errcode = '01R06', message = 'The transaction cannot be committed.';
    end if;
  elsif current_setting('tsql.trigger_aborts', true) = 'on' then
    perform set_config('tsql.doomed', 'on', true);
  end if;
end
$$;
comment on function tsql.doom(integer, boolean, text) is
$$After an error that a CATCH block gets: if it would have ended the transaction outside of the TRY block, as one of this
context in a trigger does, and any under SET XACT_ABORT ON, the transaction can only be read in and rolled back from now on. own: the procedure has begun one
itself. Where it is the caller's, the gateway gets a notice of SQLSTATE 01R06. In a procedure that a trigger calls, where SET
XACT_ABORT is on (setting tsql.trigger_aborts), each error does so; the trigger ends with error 3616.$$;

-- for procedures compiled by ringlog 1.0
create or replace function tsql.doom(number integer, own boolean) returns void
language sql
as $$ select tsql.doom(number, own, null) $$;
comment on function tsql.doom(integer, boolean) is $$The same for an error without a context.$$;

create or replace function tsql.begin_transaction() returns void
language sql
as $$ select set_config('tsql.trancount', (tsql.transaction_count() + 1)::text, true) $$;
comment on function tsql.begin_transaction() is $$Counts a transaction that a procedure begins.$$;

create or replace function tsql.commit_transaction() returns void
language plpgsql
as $$
begin
  if tsql.is_doomed() then
    perform tsql.raise(3930, 16, 1, 'The current transaction cannot be committed and cannot support operations that '
      'write to the log file. Roll back the transaction.');
  end if;
  perform set_config('tsql.trancount', (tsql.transaction_count() - 1)::text, true);
end
$$;
comment on function tsql.commit_transaction() is $$Counts a transaction that a procedure commits.$$;

create or replace function tsql.roll_back(line integer, procedure text) returns void
language plpgsql
as $$
begin
  if tsql.transaction_count() > 1 then
    perform tsql.raise(3931, 16, 1, 'ROLLBACK TRANSACTION in a procedure would undo the transaction of its caller: '
      'only the caller can roll it back.', line, procedure);
  end if;
end
$$;
comment on function tsql.roll_back(integer, text) is
$$Refuses the rollback of a transaction that a procedure has begun inside its caller's.$$;

create or replace function tsql.rollback_outside(line integer, procedure text) returns void
language plpgsql
as $$
begin
  perform tsql.roll_back(line, procedure) where tsql.transaction_count() > 1;
  if tsql.transaction_count() = 1 then
    perform tsql.raise(3931, 16, 1, 'ROLLBACK TRANSACTION in a procedure would undo the transaction of its caller: '
      'only the caller can roll it back.', line, procedure);
  end if;
  perform tsql.tell(
    3903, 16, 1, 'The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.', line, procedure);
end
$$;
comment on function tsql.rollback_outside(integer, text) is
$$ROLLBACK where a procedure has begun no transaction: error 3903, or refused, since it would be the caller's.$$;

create or replace function tsql.commit_outside(line integer, procedure text) returns void
language plpgsql
as $$
begin
  if tsql.transaction_count() > 0 then
    perform tsql.raise(3931, 16, 1, 'COMMIT TRANSACTION in a procedure would commit the transaction of its caller: '
      'only the caller can commit it.', line, procedure);
  end if;
  perform tsql.tell(
    3902, 16, 1, 'The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.', line, procedure);
end
$$;
comment on function tsql.commit_outside(integer, text) is
$$COMMIT where a procedure has begun no transaction: error 3902, or refused, since it would be the caller's.$$;
