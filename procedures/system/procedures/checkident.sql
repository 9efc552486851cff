-- SQL Server: DBCC CHECKIDENT.
create procedure sys.check_identity(object text, raises boolean, reseed bigint, silent boolean, line integer)
language plpgsql
as $$
declare
  target constant regclass := sys.object_id(object, 'U')::oid;
  identity record;
  current_value bigint;
  column_value bigint;
begin
  if target is null then
    perform tsql.fail(2501, format(
      'Cannot find a table or object with the name "%s". Check the system catalog.', sys.parsename(object, 1)
    ));
  end if;
  select columns.attname as name, numbers.* into identity
  from sys.identity_of(object) as numbers
  join pg_catalog.pg_attribute as columns
    on columns.attrelid = target and columns.attidentity <> '' and not columns.attisdropped;
  if identity.name is null then
    perform tsql.fail(7997, format('''%s'' does not contain an identity column.', sys.parsename(object, 1)));
  end if;

  -- null: the table never had a row since it was made or truncated
  current_value := pg_catalog.pg_sequence_last_value(identity.seqrelid);
  if reseed is not null then
    -- a usual sequence has no values below 1, but the next one may be 1
    if reseed < identity.seqmin then
      execute format('alter sequence %s minvalue %s', identity.seqrelid::regclass, reseed);
    end if;
    perform pg_catalog.setval(identity.seqrelid, reseed, current_value is not null);
    column_value := reseed;
  else
    execute format(
      'select %s(%I)::bigint from %s', case when identity.seqincrement > 0 then 'max' else 'min' end, identity.name, target
    ) into column_value;
    if raises then
      perform tsql.advance_identity(target::text);
    end if;
  end if;

  if not silent then
    perform tsql.tell(7998, 10, 1, format(
      'Checking identity information: current identity value ''%s'', current column value ''%s''.',
      coalesce(current_value::text, 'NULL'), coalesce(column_value::text, 'NULL')
    ), line, '');
    perform tsql.tell(
      2528, 10, 1, 'DBCC execution completed. If DBCC printed error messages, contact your system administrator.', line, ''
    );
  end if;
end
$$;
comment on procedure sys.check_identity(text, boolean, bigint, boolean, integer) is
$$DBCC CHECKIDENT. raises: a value in the column beyond the current one becomes the current one. reseed: the new current value;
the next row gets the next one, or reseed itself where the table never had a row. Errors: no such table (2501), no identity
column (7997).$$;
