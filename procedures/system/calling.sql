-- Common functions of the system procedures: patterns of names, the current database, result sets.

create function sys.pattern(pattern text) returns text
language plpgsql immutable strict
as $$
declare
  regex text := '';
  letter text;
  at integer := 1;
  closing integer;
begin
  while at <= length(pattern) loop
    letter := substr(pattern, at, 1);
    case
      when letter = '%' then
        regex := regex || '.*';
      when letter = '_' then
        regex := regex || '.';
      when letter = '\' and at < length(pattern) then
        at := at + 1;
        regex := regex || sys.literal(substr(pattern, at, 1));
      when letter = '[' then
        closing := strpos(substr(pattern, at + 2), ']');
        if closing = 0 then
          return null;
        end if;
        regex := regex || sys.class(substr(pattern, at + 1, closing));
        at := at + closing + 1;
      else
        regex := regex || sys.literal(letter);
    end case;
    at := at + 1;
  end loop;
  return '^' || regex || '$';
end
$$;
comment on function sys.pattern(text) is
$$The regular expression of a pattern of LIKE: % _ [abc] [^a-c], and \ before a letter that means itself, as ODBC
drivers write it. Null for a class without its end, which matches nothing.$$;

create function sys.literal(letter text) returns text
language sql immutable
as $$ select case when letter ~ '^\w$' or letter = ' ' then letter else '\' || letter end $$;

create function sys.class(members text) returns text
language sql immutable
as $$
  -- a reversed range is empty
  select case
    when string_agg(written, '') is null then case when members ^@ '^' then '.' else '(?!)' end
    else '[' || case when members ^@ '^' then '^' else '' end || string_agg(written, '' order by position) || ']'
  end
    from (
      select case
          when length(part[1]) = 1 then sys.literal(part[1])
          when left(part[1], 1) collate "C" <= right(part[1], 1) then
            sys.literal(left(part[1], 1)) || '-' || sys.literal(right(part[1], 1))
        end, position
        from regexp_matches(regexp_replace(members, '^\^', ''), '.-.|.', 'g') with ordinality as parts (part, position)
    ) as parts (written, position)
$$;

create function sys.matches(name text, pattern text, as_pattern boolean default true) returns boolean
language sql immutable
as $$
  select case
    when pattern is null or as_pattern and pattern = '%' then true
    when as_pattern then name ~* sys.pattern(pattern)
    else lower(name) = lower(pattern)
  end
$$;
comment on function sys.matches(text, text, boolean) is
'Whether a name matches a pattern, or equals it, in any case. A null pattern matches all.';

create function sys.relations_named(name text, as_pattern boolean default true) returns oid[]
language sql stable
as $$
  -- check rights only for matching names
  select coalesce(array_agg(named.oid), '{}')
  from (
    select relations.oid from sys.every_named_relation as relations
    where sys.matches(relations.name, $1, as_pattern)
    offset 0
  ) as named
  where sys.may_see(named.oid)
$$;
comment on function sys.relations_named(text, boolean) is
$$The tables and views of the current database whose name matches a pattern, or equals it. A query that joins with them
uses indexes instead of reading all tables.$$;

create function sys.remark(description text) returns sys.remarks
language sql immutable
as $$
  -- its first sentence or paragraph, on one line
  select left(replace(split_part(split_part(description, E'\n\n', 1), '. ', 1), E'\n', ' '), 254)::sys.remarks
$$;

create function sys.enter(database text) returns text
language plpgsql
as $$
declare
  before constant text := current_setting('search_path');
begin
  if database is null or database = '' or database = sys.current_database() then
    return before;
  end if;
  if lower(database) = 'tempdb' then
    -- the session's temporary tables, if any
    perform set_config('search_path', coalesce(
      (select quote_ident(nspname) from pg_catalog.pg_namespace where oid = pg_catalog.pg_my_temp_schema()), ''), true);
    return before;
  end if;
  if not exists (select from sys.every_database as databases where databases.name = database) then
    if lower(database) = 'master' then
      -- the login's default database, as after `use master`
      perform set_config('search_path', reset_val, true) from pg_catalog.pg_settings where name = 'search_path';
      return before;
    end if;
    if lower(database) in ('model', 'msdb') then
      -- SQL Server's own, which have nothing here
      perform set_config('search_path', '', true);
      return before;
    end if;
    raise exception 'Could not locate entry in sysdatabases for database ''%''. No entry found with that name.', database
      using errcode = 'invalid_schema_name';
  end if;
  perform set_config('search_path', format('%I, %s', database, before), true);
  return before;
end
$$;
comment on function sys.enter(text) is
$$Makes a database the current one for the rest of the function that calls this; sys.leave goes back to the one that this
returned. Null changes nothing.$$;

create function sys.leave(before text) returns void
language plpgsql
as $$
begin
  perform set_config('search_path', before, true);
end
$$;

create function sys.announce(rows refcursor, counted boolean default true) returns void
language plpgsql
as $$
begin
  raise notice using errcode = '01R01', message = rows::text, hint = case when counted then '' else 'nocount' end;
end
$$;
comment on function sys.announce(refcursor, boolean) is
$$Announces a result set: the gateway fetches the cursor once the procedure has returned, in the order of these notices.
`counted`: its number of rows is sent, as without SET NOCOUNT ON.$$;

create function sys.announce_fitted(query text, data jsonb, number numeric, variadic names text[]) returns void
language plpgsql
as $$
declare
  widths text[];
  rows refcursor;
begin
  execute format(
    'select array[%s]::text[] from (%s) as whole',
    (select string_agg(format('greatest(max(length(%I)), length(%L))', name, name), ', ') from unnest(names) as name),
    format(query, variadic array_fill('2000'::text, array[cardinality(names)]))
  ) into widths using data, number;
  open rows for execute format(query, variadic widths) using data, number;
  perform sys.announce(rows, false);
end
$$;
comment on function sys.announce_fitted(text, jsonb, numeric, text[]) is
$$Announces a result whose texts are no wider than they must be, as ASE's sp_autoformat does: consoles keep room for the
widest that a column may have. `query` is for format: each varchar(%s) in it is the width of the column of `names` in
the same position; $1 and $2 are `data` and `number`.$$;

create function sys.demand_object(name text) returns integer
language plpgsql stable
as $$
declare
  id constant integer := sys.object_id(name);
begin
  if id is not null
    and pg_catalog.to_regnamespace(pg_catalog.quote_ident(sys.schema_of(name))) not in (select schemas.oid from sys.every_schema as schemas)
    and not exists (select from sys.every_procedure as procedures where procedures.oid = id::oid) then
    perform tsql.raise(15250, 16, 1, format('Object ''%s'' must be in the current database.', name));
  end if;
  if id is null then
    perform tsql.raise(15009, 16, 1, format(
      'The object ''%s'' does not exist in database ''%s'' or is invalid for this operation.', name, sys.db_name()));
  end if;
  return id;
end
$$;
