-- The transactions of procedures compiled from T-SQL, inside those of their callers.

create or replace function tsql.transaction_count()
returns integer
language sql
stable
as $$ select coalesce(nullif(current_setting('tsql.trancount', true), ''), '0')::integer $$;

comment on function tsql.transaction_count() is $$@@trancount: the caller's transactions and the procedure's.$$;


create or replace function tsql.begin_transaction()
returns void
language sql
as $$ select set_config('tsql.trancount', (tsql.transaction_count() + 1)::text, true) $$;

comment on function tsql.begin_transaction() is $$Counts a transaction that a procedure begins.$$;


create or replace function tsql.commit_transaction()
returns void
language sql
as $$ select set_config('tsql.trancount', (tsql.transaction_count() - 1)::text, true) $$;

comment on function tsql.commit_transaction() is $$Counts a transaction that a procedure commits.$$;


create or replace function tsql.roll_back(line integer, procedure text)
returns void
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


create or replace function tsql.rollback_outside(line integer, procedure text)
returns void
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


create or replace function tsql.commit_outside(line integer, procedure text)
returns void
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
