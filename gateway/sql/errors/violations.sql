-- T-SQL's messages for violated constraints, with parts that PostgreSQL's error fields lack: the kind of the constraint
-- and of the statement, the other table, the column.

create or replace function tsql.changing(statement text) returns text
language sql immutable
as $$
  select case
    when count(distinct lower(word)) = 1 or statement ~* '^\s*(insert|update|delete|merge)\M'
      then upper(regexp_substr(statement, '\m(insert|update|delete|merge)\M', 1, 1, 'i'))
  end
  from regexp_matches(statement, '\m(insert|update|delete|merge)\M', 'gi') as matched (words),
    unnest(words) as word
$$;
comment on function tsql.changing(text) is
$$The kind of a statement: INSERT, UPDATE, DELETE or MERGE; null if its text has none or several of these words.$$;

create or replace function tsql.duplicate_values(detail text, index_ oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select case
    when count(*) filter (where is_number or is_text) < max(indnkeyatts) then null
    when found !~ '\mnull\M' or bool_and(attnotnull) then found
    when bool_and(is_number) then regexp_replace(found, '\mnull\M', '<NULL>', 'g')
  end
  from (select substring(detail from '^Key \(.*?\)=(\(.*\)) already exists\.$')) as said (found),
    pg_index
    join pg_attribute on attrelid = indrelid and attnum = any (indkey[0:indnkeyatts - 1])
    join pg_type as type on type.oid = atttypid
    left join pg_type as base on base.oid = type.typbasetype,
    lateral (select
      coalesce(base.typname, type.typname) in ('int2', 'int4', 'int8', 'numeric')
        and type.typname not in ('money', 'smallmoney'),
      coalesce(base.typname, type.typname) in ('text', 'varchar', 'bpchar')
    ) as kind (is_number, is_text)
  where indexrelid = index_
  group by found
$$;
comment on function tsql.duplicate_values(text, oid) is
$$The values of a duplicate key in parentheses, from PostgreSQL's detail; null if T-SQL may write them differently.$$;

create or replace function tsql.violation_in_ase(
  sqlstate text, message text, database text, table_ text, constraint_ text
) returns tsql.error
language sql immutable
as $$
  select case when number is not null then (number, severity, 1, said, 0, '')::tsql.error end
  from (
    select 2601, 14, format('Attempt to insert duplicate key row in object ''%s'' with unique index ''%s''',
      table_, constraint_)
    where sqlstate = '23505' and starts_with(message, 'duplicate key value violates unique constraint "')
    union all
    select 233, 16, format('The column %s in table %s does not allow null values.', column_, table_)
    from substring(message from '^null value in column "(.*)" of relation ".*" violates not-null') as column_
    where sqlstate = '23502' and column_ is not null
    union all
    select other.number, 16, format('%s dbname =  ''%s'', table name = ''%s'', constraint name = ''%s''.',
      other.begins, database,
      case when other.number = 547 then substring(message from other.pattern) else table_ end, constraint_)
    from (values
      (546, '23503', 'Foreign key constraint violation occurred,',
        '^insert or update on table "(.*?)" violates '),
      (547, '23503', 'Dependent foreign key constraint violation in a referential integrity constraint.',
        '^update or delete on table "(.*?)" violates '),
      (548, '23514', 'Check constraint violation occurred,', '^new row for relation "(.*?)" violates ')
    ) as other (number, state, begins, pattern)
    where other.state = sqlstate and message ~ other.pattern and constraint_ not like 'T-SQL rule %'
    union all
    select 552, 16, format('A column insert or update conflicts with a rule bound to the column. The command is aborted. The '
      'conflict occurred in database ''%s'', table ''%s'', column ''%s''.', database, table_,
      substr(constraint_, length('T-SQL rule _')))
    where sqlstate = '23514' and constraint_ like 'T-SQL rule %'
  ) as found (number, severity, said)
$$;
comment on function tsql.violation_in_ase(text, text, text, text, text) is
$$ASE's message of a violated constraint, with the table that the statement changes (ASE: Troubleshooting, "Error
messages").$$;

create or replace function tsql.violation(
  sqlstate text, message text, detail text, schema_ text, table_ text, constraint_ text, context text,
  statement text, sybase boolean
) returns tsql.error
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  relation oid;
  is_partition boolean;
  index_ oid;
  kind text;
  column_ text;
  text_ text;
  ran constant text := coalesce(substring(context from 'SQL statement "(.*?)"\nPL/pgSQL function'), nullif(statement, ''));
  statement_ text := tsql.changing(ran);
  alters constant boolean := ran ~* '^\s*alter table\M';
  database text := case when schema_ like 'pg\_temp%' then 'tempdb' else schema_ end;
  -- indexes created by T-SQL begin with the table's name
  name text := coalesce((
      select replace(substring(obj_description(oid, 'pg_class') from '^T-SQL "((?:[^"]|"")+)"'), '""', '"') from pg_class
      where relnamespace = to_regnamespace(quote_ident(schema_)) and relname = constraint_ and relkind in ('i', 'I')
    ),
    case when starts_with(constraint_, table_ || '.') then substr(constraint_, length(table_) + 2) else constraint_ end);
  -- a table variable is a temporary table; in a procedure its name has a suffix
  object text := regexp_replace(table_, '^#(@.*?)(\.[0-9a-f]{8})?$', '\1');
begin
  select pg_class.oid, relispartition into relation, is_partition from pg_class
  where relnamespace = to_regnamespace(quote_ident(schema_)) and relname = table_;
  if is_partition then
    return null;
  elsif sybase then
    return tsql.violation_in_ase(sqlstate, message, database, object, name);
  end if;

  if sqlstate = '23505' and starts_with(message, 'duplicate key value violates unique constraint "') then
    select indexrelid, case contype when 'p' then 'PRIMARY KEY' when 'u' then 'UNIQUE KEY' end
    into index_, kind
    from pg_index join pg_class on pg_class.oid = indexrelid
      left join pg_constraint on conindid = indexrelid and contype in ('p', 'u')
    where indrelid = relation and relname = constraint_;
    if not found then
      return null;
    end if;
    detail := ' The duplicate key value is ' || tsql.duplicate_values(detail, index_) || '.';
    if kind is null then
      text_ := format('Cannot insert duplicate key row in object ''dbo.%s'' with unique index ''%s''.%s',
        object, name, detail);
      return (2601, 14, 1, text_, 0, '')::tsql.error;
    end if;
    text_ := format('Violation of %s constraint ''%s''. Cannot insert duplicate key in object ''dbo.%s''.%s',
      kind, name, object, detail);
    return (2627, 14, 1, text_, 0, '')::tsql.error;
  end if;

  if sqlstate = '23505' and starts_with(message, 'could not create unique index "') then
    -- the index is gone; T-SQL may write values of other types differently
    detail := case when (
      select bool_and(format_type(atttypid, null) in ('smallint', 'integer', 'bigint')) from pg_attribute
      where attrelid = relation and attname = any (string_to_array(substring(detail from '^Key \((.*?)\)='), ', '))
    ) then format(' The duplicate key value is %s.', substring(detail from '=(\(.*\)) is duplicated\.$')) end;
    return (1505, 16, 1, format('The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '
      '''dbo.%s'' and the index name ''%s''.%s', object, name, detail), 0, '')::tsql.error;
  end if;

  if sqlstate = '23514' and constraint_ like 'T-SQL rule %' then
    return (513, 16, 0, format('A column insert or update conflicts with a rule imposed by a previous CREATE RULE statement. The '
      'statement was terminated. The conflict occurred in database ''%s'', table ''dbo.%s'', column ''%s''.', database, object,
      substr(constraint_, length('T-SQL rule _'))), 0, '')::tsql.error;
  elsif statement_ is null and sqlstate = '23503' and starts_with(message, 'insert or update on table "') and alters then
    -- the constraint is gone
    statement_ := 'ALTER TABLE';
    object := substring(detail from ' is not present in table "(.*)"\.$');
    kind := 'FOREIGN KEY' || case when object = table_ then ' SAME TABLE' else '' end;
    column_ := substring(ran from '(?i) references [^()]*\("([^",]+)"\)');
  elsif sqlstate = '23502' and alters and message ~ '^column ".*" of relation ".*" contains null values$' then
    return (515, 16, 2, format('Cannot insert the value NULL into column ''%s'', table ''%s.dbo.%s''; column does not allow nulls. '
      'UPDATE fails.', substring(message from '^column "(.*)" of relation "'), database, object), 0, '')::tsql.error;
  elsif statement_ is null then
    return null;
  elsif sqlstate = '23502' then
    column_ := substring(message from '^null value in column "(.*)" of relation ".*" violates not-null');
    text_ := format('Cannot insert the value NULL into column ''%s'', table ''%s.dbo.%s'';',
        column_, database, object)
      || format(' column does not allow nulls. %s fails.', statement_);
    return case when column_ is not null then (515, 16, 2, text_, 0, '')::tsql.error end;
  elsif sqlstate = '23514' and starts_with(message, 'new row for relation "') then
    select 'CHECK', case when cardinality(conkey) = 1 then attname end into kind, column_
    from pg_constraint left join pg_attribute on attrelid = conrelid and attnum = conkey[1]
    where conrelid = relation and conname = constraint_;
  elsif sqlstate = '23503' and message ~ '^(insert or update|update or delete) on table "' then
    select
      case when is_referring then 'FOREIGN KEY' || itself else ltrim(itself || ' REFERENCE') end,
      case when cardinality(conkey) = 1 then attname end,
      pg_class.relname,
      case when relnamespace = pg_my_temp_schema() then 'tempdb' else relnamespace::regnamespace::text end
    into kind, column_, object, database
    from pg_constraint,
      lateral (select starts_with(message, 'insert')) as side (is_referring),
      lateral (select
        case when is_referring then confrelid else conrelid end,
        case when is_referring then confkey[1] else conkey[1] end,
        case when confrelid = conrelid then ' SAME TABLE' else '' end
      ) as other (other_table, other_column, itself)
      join pg_class on pg_class.oid = other_table
      join pg_attribute on attrelid = other_table and attnum = other_column
    where conrelid = relation and conname = constraint_;
  end if;
  text_ := format('The %s statement conflicted with the %s constraint "%s". ', statement_, kind, constraint_)
    || format('The conflict occurred in database "%s", table "dbo.%s"%s.',
      database, object, ', column ''' || column_ || '''');
  return case when kind is not null then (547, 16, 0, text_, 0, '')::tsql.error end;
end
$$;
comment on function tsql.violation(text, text, text, text, text, text, text, text, boolean) is
$$A violated constraint as SQL Server (Database Engine events and errors) or ASE (sybase) says it; null: it is
none, or the words cannot be told for certain. sqlstate to context: PostgreSQL's fields of the error;
statement: the statement that was sent, if the context does not have it.$$;

create or replace function tsql.missing_function(message text, missing integer) returns tsql.error
language sql stable
as $$
  select (number, 16, 1, replace(says, '%', case number when 208 then concat_ws('.', schema_, name) when 8116 then name
    else concat_ws('.', coalesce(schema_, 'dbo'), name) end), 0, '')::tsql.error
  from (
    select given[1] as schema_, given[2] as name,
      case given[3] when '' then 0 else cardinality(string_to_array(given[3], ', ')) end as arguments
    from pg_catalog.regexp_match(message, '^function (?:([^.(]*)\.)?([^(]*)\((.*)\) does not exist$') as given
  ) as called
  cross join lateral (
    select count(*) as known, min(pronargs - pronargdefaults) as least, max(pronargs) as most
    from pg_catalog.pg_proc
    where proname = called.name and prokind = 'f'
      and case when called.schema_ is null then pg_catalog.pg_function_is_visible(oid)
        else pronamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident(called.schema_)) end
  ) as there
  join (values
    (208, 'Invalid object name ''%''.'),
    (313, 'An insufficient number of arguments were supplied for the procedure or function %.'),
    (4121, 'Cannot find either column "dbo" or the user-defined function or aggregate "%", or the name is ambiguous.'),
    (8116, 'An argument of the % function has a data type that is invalid for it.'),
    (8144, 'Procedure or function % has too many arguments specified.')
  ) as told (number, says) on number = case
    when there.known = 0 then missing
    when called.arguments < there.least then 313
    when called.arguments > there.most then 8144
    when called.schema_ = 'sys' then 8116
  end
$$;
comment on function tsql.missing_function(text, integer) is
$$SQL Server's error for PostgreSQL's undefined function: no function of the name (missing: 208 in FROM, 4121 elsewhere),
more (313), fewer (8144) or other arguments (8116). Null: a function outside T-SQL with other argument types.$$;

create or replace function tsql.caught(
  sqlstate text, message text, detail text, schema_ text, table_ text, constraint_ text, context text,
  sybase boolean, line integer, procedure text
) returns tsql.error
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  error tsql.error;
begin
  if starts_with(sqlstate, '23') and table_ <> '' then
    error := tsql.violation(sqlstate, message, detail, schema_, table_, constraint_, context, '', sybase);
    if error.number is not null then
      error.line := line;
      error.procedure := procedure;
      error.message := tsql.long_names(error.message);
      return error;
    end if;
  end if;
  -- only the detail shows why a view cannot be changed, and which kind of column accepts no value
  if sqlstate = '55000' and detail <> '' then
    message := message || '. ' || detail;
    detail := '';
  elsif sqlstate = '428C9' and detail like '%is a generated column.' then
    message := 'computed: ' || message;
  end if;
  error := tsql.caught(
    tsql.own_state(sqlstate, message, table_, constraint_, sybase), message, detail, line, procedure);
  if sybase then
    error.number := tsql.number_in_ase(error.number);
  end if;
  error.message := tsql.long_names(error.message);
  return error;
end
$$;
comment on function tsql.caught(text, text, text, text, text, text, text, boolean, integer, text) is
$$The T-SQL error for an error that PL/pgSQL has caught in a line of a procedure.$$;
