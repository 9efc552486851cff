-- GRANT and REVOKE of rights on objects.

create or replace procedure tsql.change_rights(action text, rights text[], target text, roles text[])
language plpgsql
as $$
declare
  relation constant regclass := to_regclass(target);
  routine constant regprocedure := to_regproc(target)::oid::regprocedure;
  is_table constant boolean := relation is not null and 'execute' <> all (rights);
  -- T-SQL's ALL on a table is less than PostgreSQL's
  of_table constant text[] := '{select,insert,update,delete,references}';
  wanted text[] := case
    when is_table then array(
      select distinct each.right_ from unnest(rights) as named (right_)
      cross join lateral unnest(case named.right_ when 'all' then of_table else array[named.right_] end) as each (right_)
    )
    else '{execute}'
  end;
  owner oid;
  role text;
begin
  if relation is null and routine is null then
    perform tsql.raise(15151, 16, 1, format(
      'Cannot find the object %s, because it does not exist or you do not have permission.', quote_literal(target)));
  elsif not is_table and (
    routine is null
    -- on a table function, SELECT is the right to call it
    or not rights <@ case when (select proretset from pg_proc where oid = routine) then array['select', 'execute', 'all']
      else array['execute', 'all'] end
  ) then
    perform tsql.raise(4606, 16, 1, format('Granted or revoked privilege %s is not compatible with object.', upper(rights[1])));
  end if;
  foreach role in array roles loop
    if role <> 'public' and to_regrole(quote_ident(role)) is null then
      perform tsql.raise(15151, 16, 1, format(
        'Cannot find the user %s, because it does not exist or you do not have permission.', quote_literal(role)));
    end if;
  end loop;
  owner := case when is_table then (select relowner from pg_class where oid = relation)
    else (select proowner from pg_proc where oid = routine) end;
  -- PostgreSQL would grant nothing and only warn
  if not pg_has_role(owner, 'usage') and exists (
    select from unnest(wanted) as each (right_)
    where not case when is_table then has_table_privilege(relation, right_ || ' with grant option')
      else has_function_privilege(routine, 'execute with grant option') end
  ) then
    perform tsql.raise(15151, 16, 1, format(
      'Cannot find the object %s, because it does not exist or you do not have permission.', quote_literal(target)));
  end if;
  execute format('%s %s on %s %s %s %s', action, array_to_string(wanted, ', '),
    case when is_table then 'table' else 'routine' end,
    case when is_table then relation::text else (
      select string_agg(member::regprocedure::text, ', ') from unnest(tsql.procedure_group(routine)) as member
    ) end,
    case action when 'grant' then 'to' else 'from' end,
    (select string_agg(case named when 'public' then named else quote_ident(named) end, ', ') from unnest(roles) as named));
end
$$;
comment on procedure tsql.change_rights(text, text[], text, text[]) is
$$GRANT and REVOKE: action is grant or revoke, rights in lower case, target a name in SQL. Runs with the caller's rights.
Errors: no such object or role, or the caller may not grant (15151), rights that the object does not have (4606).$$;

create or replace procedure tsql.alter_database(database text, options text)
language plpgsql
as $$
begin
  if database is not null and sys.db_id(database) is null then
    perform tsql.raise(5011, 14, 1, format('User does not have permission to alter database ''%s'', the database does not exist, or '
      'the database is not in a state that allows access checks.', database));
  end if;
  raise notice '%', format('ALTER DATABASE SET %s: nothing here depends on it, and nothing has changed.', options);
end
$$;
comment on procedure tsql.alter_database(text, text) is
  'Says that options of a database have no effect. database: null for the current one.';
