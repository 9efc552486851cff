-- JSON_VALUE, JSON_QUERY and ISJSON of SQL Server. A fragment keeps its own text, so documents are json and not jsonb.

create or replace function tsql.isjson(document text)
returns integer
language plpgsql
immutable strict parallel safe
as $$
begin
  return (json_typeof(document::json) in ('object', 'array'))::integer;
exception when invalid_text_representation then
  return 0;
end
$$;
comment on function tsql.isjson(text) is 'SQL Server: ISJSON without a type, 1 for an object or an array.';

create or replace function tsql.json_at(document text, path text)
returns json
language plpgsql
immutable strict parallel safe
as $$
declare
  said constant text[] := regexp_match(path,
    '^\s*(?:(lax|strict)\s+)?\$((?:\s*\.\s*(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*")|\s*\[\s*\d+\s*\])*)\s*$', 'i');
  is_strict constant boolean := lower(said[1]) is not distinct from 'strict';
  found json;
  step text[];
begin
  if said is null then
    perform tsql.raise(13607, 16, 1, format('JSON path is not properly formatted: ''%s''.', path));
  end if;
  begin
    found := document;
  exception when invalid_text_representation then
    perform tsql.raise(13609, 16, 1, 'JSON text is not properly formatted.');
  end;
  for step in
    select regexp_matches(said[2], '\.\s*([A-Za-z_][A-Za-z0-9_]*)|\.\s*("(?:[^"\\]|\\.)*")|\[\s*(\d+)\s*\]', 'g')
  loop
    found := case json_typeof(found)
      when 'object' then found -> coalesce(step[1], step[2]::json #>> '{}')
      when 'array' then found -> step[3]::integer
    end;
    if found is null then
      if is_strict then
        perform tsql.raise(13608, 16, 1, 'Property cannot be found on the specified JSON path.');
      end if;
      return null;
    end if;
  end loop;
  return found;
end
$$;
comment on function tsql.json_at(text, text) is
$$The value at a path of SQL Server: `lax $.name."na me"[0]`. Null where there is none. Errors: a wrong path (13607) or text (13609),
nothing there and `strict` (13608).$$;

create or replace function tsql.json_value(document text, path text)
returns text
language plpgsql
immutable strict parallel safe
as $$
declare
  longest constant integer := 4000;
  found constant json := tsql.json_at(document, path);
  is_strict constant boolean := path ~* '^\s*strict\s';
  value constant text := case when json_typeof(found) not in ('object', 'array') then found #>> '{}' end;
begin
  if is_strict and json_typeof(found) in ('object', 'array') then
    perform tsql.raise(13623, 16, 1, 'Scalar value cannot be found in the specified JSON path.');
  elsif is_strict and length(value) > longest then
    perform tsql.raise(13625, 16, 1, 'String value in the specified JSON path would be truncated.');
  end if;
  return case when length(value) <= longest then value end;
end
$$;
comment on function tsql.json_value(text, text) is
'SQL Server: JSON_VALUE. Null where there is an object, an array or more than 4,000 characters; with `strict` errors 13623 and 13625.';

create or replace function tsql.json_query(document text, path text default '$')
returns text
language plpgsql
immutable strict parallel safe
as $$
declare
  found constant json := tsql.json_at(document, path);
begin
  if json_typeof(found) in ('object', 'array') then
    return found::text;
  elsif path ~* '^\s*strict\s' then
    perform tsql.raise(13624, 16, 1, 'Object or array cannot be found in the specified JSON path.');
  end if;
  return null;
end
$$;
comment on function tsql.json_query(text, text) is
'SQL Server: JSON_QUERY. Null where there is a scalar; with `strict` error 13624.';
