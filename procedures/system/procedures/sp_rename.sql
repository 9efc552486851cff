create function sys.sp_rename(objname text, newname text, objtype text default 'object') returns integer
language plpgsql
as $$
declare
  kind constant text := lower(coalesce(objtype, 'object'));
  own constant text := sys.parsename(objname, 1);
  is_part constant boolean := kind in ('column', 'index');
  whole constant text := case when is_part then
    (select string_agg(part, '.' order by position desc)
     from (values (2, sys.parsename(objname, 2)), (3, sys.parsename(objname, 3)), (4, sys.parsename(objname, 4))) as parts (position, part)
     where part <> '')
    else objname end;
  id constant oid := sys.object_id(whole)::oid;
  relation constant regclass := (select oid::regclass from pg_catalog.pg_class where oid = id);
  renamed constant name := tsql.stored_name(newname);
  target constant text := case when (select relkind from pg_catalog.pg_class where oid = id) in ('v', 'm') then 'view' else 'table' end;
  listed record;
begin
  if kind not in ('object', 'column', 'index') then
    perform tsql.raise(102, 15, 1, format('sp_rename of a %s is not supported: drop it and create it.', kind));
  elsif length(newname) > 128 then
    perform tsql.raise(103, 15, 4, format('The identifier that starts with ''%s'' is too long. Maximum length is 128.', left(newname, 128)));
  elsif kind = 'object' and octet_length(newname) > 63 and (target = 'view' or exists (select from pg_catalog.pg_proc where oid = id)) then
    perform tsql.raise(102, 15, 1, format('''%s'' is not supported: the name of a view or procedure has at most 63 bytes.', newname));
  elsif nullif(btrim(newname), '') is null or id is null then
    perform sys.none_to_rename(objname, kind);
  end if;
  if exists (
    select from pg_catalog.pg_class where oid = id and relnamespace in ('online'::regnamespace, 'log'::regnamespace)
  ) or exists (
    select from pg_catalog.pg_proc where oid = id and pronamespace = 'ringlog'::regnamespace
  ) then
    perform tsql.raise(102, 15, 1, 'sp_rename is refused: the facility file names tables and columns of rings and logs, and their '
      'procedures are named after them.');
  end if;
  if kind = 'column' then
    select attname as name, pg_catalog.col_description(id, attnum) as comment into listed
    from sys.every_column as columns
    join pg_catalog.pg_attribute on attrelid = columns.relation and attnum = columns.number
    where columns.relation = id and sys.is_same_name(columns.name, own);
    if listed is null then
      perform sys.none_to_rename(objname, kind);
    elsif renamed <> listed.name and tsql.has_column(relation, renamed) then
      perform sys.taken_by_another(newname, kind);
    end if;
    if renamed <> listed.name then
      execute format('alter table %s rename column %I to %I', relation, listed.name, renamed);
    end if;
    if listed.comment like 'T-SQL "%' or renamed <> newname then
      call tsql.declare_columns(relation::text, array[renamed::text], array[format('"%s"%s', replace(newname, '"', '""'),
        coalesce(substring(listed.comment from '^T-SQL "(?:[^"]|"")+"([^\n]*)'), ''))]);
    end if;
  elsif kind = 'index' then
    select classes.oid::regclass as index_, classes.relname = tsql.stored_name(tables.relname || '.' || shown.name) as is_qualified,
      tables.relname as parent
    into listed
    from pg_catalog.pg_index
    join pg_catalog.pg_class as classes on classes.oid = indexrelid
    join pg_catalog.pg_class as tables on tables.oid = indrelid
    cross join sys.shown_index(classes.oid, null, null, classes.relname, tables.relname) as shown (name)
    where indrelid = id and lower(own) in (lower(classes.relname), lower(shown.name))
    limit 1;
    if listed is null then
      perform sys.none_to_rename(objname, kind);
    end if;
    execute format('alter index %s rename to %I', listed.index_,
      case when listed.is_qualified then tsql.stored_name(listed.parent || '.' || newname) else renamed end);
    call tsql.name_index(listed.index_, newname);
  elsif sys.object_id(concat_ws('.', nullif(sys.parsename(objname, 3), ''), nullif(sys.parsename(objname, 2), ''), sys.quotename(newname)))
      not in (id::integer) then
    perform sys.taken_by_another(newname, kind);
  elsif relation is not null then
    for listed in
      select classes.oid::regclass as index_, shown.name
      from pg_catalog.pg_index
      join pg_catalog.pg_class as classes on classes.oid = indexrelid
      join pg_catalog.pg_class as tables on tables.oid = indrelid
      cross join sys.shown_index(classes.oid, null, null, classes.relname, tables.relname) as shown (name)
      where indrelid = id and classes.relname = tsql.stored_name(tables.relname || '.' || shown.name)
    loop
      execute format('alter index %s rename to %I', listed.index_, tsql.stored_name(renamed || '.' || listed.name));
      call tsql.name_index(listed.index_, listed.name);
    end loop;
    execute format('alter table %s rename to %I', relation, renamed);
    call sys.rename_in_comment(id, 'pg_class', format('%s %s', target, id::regclass), newname);
  elsif exists (select from pg_catalog.pg_constraint where oid = id) then
    select conrelid::regclass as of, conname as name, case when contype in ('p', 'u') then conindid end as index_ into listed
    from pg_catalog.pg_constraint where oid = id;
    execute format('alter table %s rename constraint %I to %I', listed.of, listed.name, renamed);
    call sys.rename_in_comment(id, 'pg_constraint', format('constraint %I on %s', renamed, listed.of), newname);
    if pg_catalog.obj_description(listed.index_, 'pg_class') is not null then
      call sys.rename_in_comment(listed.index_, 'pg_class', format('index %s', listed.index_::regclass), newname);
    end if;
  elsif exists (select from pg_catalog.pg_proc where oid = id and prorettype <> 'trigger'::regtype) then
    for listed in
      select member::regprocedure as routine, proname as name
      from unnest(tsql.procedure_group(id)) as member
      join pg_catalog.pg_proc on pg_proc.oid = member
    loop
      execute format('alter routine %s rename to %I', listed.routine, newname || coalesce(substring(listed.name from ';\d+$'), ''));
    end loop;
    notify ringlog_catalogue, 'procedures';
  else
    perform tsql.raise(102, 15, 1, 'sp_rename of a trigger or a sequence is not supported: drop it and create it.');
  end if;
  if relation is not null then
    notify ringlog_catalogue, 'columns';
  end if;
  raise notice 'Caution: Changing any part of an object name could break scripts and stored procedures.';
  return 0;
end
$$;
comment on function sys.sp_rename(text, text, text) is
$$SQL Server and ASE: sp_rename. A site's table, view, column, index, constraint or procedure, by the caller's rights; texts of
procedures and views are not changed. Errors: no such name (15225), the new name is taken (15335), a table of the facility
(102).$$;

create function sys.none_to_rename(objname text, kind text) returns void
language plpgsql
as $$
begin
  perform tsql.raise(15225, 11, 1, format('No item by the name of ''%s'' could be found in the current database ''%s'', given that '
    '@itemtype was input as ''%s''.', objname, sys.db_name(), upper(kind)));
end
$$;

create function sys.taken_by_another(newname text, kind text) returns void
language plpgsql
as $$
begin
  perform tsql.raise(15335, 11, 1, format('Error: The new name ''%s'' is already in use as a %s name and would cause a duplicate that '
    'is not permitted.', newname, kind));
end
$$;

create procedure sys.rename_in_comment(id oid, catalogue name, target text, newname text)
language plpgsql
as $$
declare
  before constant text := pg_catalog.obj_description(id, catalogue);
  shown constant text := format('T-SQL "%s"', replace(newname, '"', '""'));
begin
  if before ~ '^T-SQL "(?:[^"]|"")+"' then
    execute format('comment on %s is %L', target, shown || substr(before, length(substring(before from '^T-SQL "(?:[^"]|"")+"')) + 1));
  elsif newname <> tsql.stored_name(newname) then
    execute format('comment on %s is %L', target, tsql.with_properties(shown, before));
  end if;
end
$$;
