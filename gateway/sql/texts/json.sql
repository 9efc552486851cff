-- JSON of SQL Server. A fragment keeps its own text, so documents are json and not jsonb.

create or replace function tsql.isjson(document text) returns integer
language plpgsql immutable strict parallel safe
as $$
begin
  return (json_typeof(document::json) in ('object', 'array'))::integer;
exception when invalid_text_representation then
  return 0;
end
$$;
comment on function tsql.isjson(text) is 'SQL Server: ISJSON without a type, 1 for an object or an array.';

create or replace function tsql.json_path(path text, out is_strict boolean, out steps text[])
language plpgsql immutable strict parallel safe
as $$
declare
  said constant text[] := regexp_match(path,
    '^\s*(?:(lax|strict)\s+)?\$((?:\s*\.\s*(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*")|\s*\[\s*\d+\s*\])*)\s*$', 'i');
begin
  if said is null then
    perform tsql.raise(13607, 16, 1, format('JSON path is not properly formatted: ''%s''.', path));
  end if;
  is_strict := lower(said[1]) is not distinct from 'strict';
  steps := array(
    select coalesce('.' || step[1], '.' || (step[2]::json #>> '{}'), '[' || step[3])
    from regexp_matches(said[2], '\.\s*([A-Za-z_][A-Za-z0-9_]*)|\.\s*("(?:[^"\\]|\\.)*")|\[\s*(\d+)\s*\]', 'g')
      with ordinality as one (step, position)
    order by position
  );
end
$$;
comment on function tsql.json_path(text) is
'The steps of a path such as `lax $.name."na me"[0]`: `.name` of an object, `[0` of an array. Error: a wrong path (13607).';

create or replace function tsql.json_missing() returns void
language sql immutable
begin atomic
  select tsql.raise(13608, 16, 1, 'Property cannot be found on the specified JSON path.');
end;
comment on function tsql.json_missing() is 'Raises the error of a strict path that leads to nothing.';

create or replace function tsql.json_read(document text) returns json
language plpgsql immutable strict parallel safe
as $$
begin
  return document::json;
exception when invalid_text_representation then
  perform tsql.raise(13609, 16, 1, 'JSON text is not properly formatted.');
end
$$;
comment on function tsql.json_read(text) is 'A text as JSON. Error: the text is not JSON (13609).';

create or replace function tsql.json_at(document text, path text, out fragment json, out is_strict boolean)
language plpgsql immutable strict parallel safe
as $$
declare
  steps text[];
  step text;
begin
  select p.is_strict, p.steps into is_strict, steps from tsql.json_path(path) as p;
  fragment := tsql.json_read(document);
  foreach step in array steps loop
    fragment := case json_typeof(fragment) || left(step, 1)
      when 'object.' then fragment -> substr(step, 2)
      when 'array[' then fragment -> substr(step, 2)::integer
    end;
    if fragment is null then
      if is_strict then
        perform tsql.json_missing();
      end if;
      return;
    end if;
  end loop;
end
$$;
comment on function tsql.json_at(text, text) is
'The value at a path, null where there is none. Errors: a wrong path (13607) or text (13609), nothing there and `strict` (13608).';

create or replace function tsql.json_scalar(document text, path text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  fragment json;
  is_strict boolean;
begin
  select a.fragment, a.is_strict into fragment, is_strict from tsql.json_at(document, path) as a;
  if json_typeof(fragment) in ('object', 'array') then
    if is_strict then
      perform tsql.raise(13623, 16, 1, 'Scalar value cannot be found in the specified JSON path.');
    end if;
    return null;
  end if;
  return fragment #>> '{}';
end
$$;
comment on function tsql.json_scalar(text, text) is
  'The scalar at a path. Null where there is an object or an array; with `strict` error 13623.';

create or replace function tsql.json_value(document text, path text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  longest constant integer := 4000;
  value constant text := tsql.json_scalar(document, path);
begin
  if length(value) <= longest then
    return value;
  elsif value is not null and (select is_strict from tsql.json_path(path)) then
    perform tsql.raise(13625, 16, 1, 'String value in the specified JSON path would be truncated.');
  end if;
  return null;
end
$$;
comment on function tsql.json_value(text, text) is
'SQL Server: JSON_VALUE. Null where there is an object, an array or more than 4,000 characters; with `strict` errors 13623 and 13625.';

create or replace function tsql.json_container(document text, path text, error integer, message text) returns json
language plpgsql immutable strict parallel safe
as $$
declare
  fragment json;
  is_strict boolean;
begin
  select a.fragment, a.is_strict into fragment, is_strict from tsql.json_at(document, path) as a;
  if json_typeof(fragment) in ('object', 'array') then
    return fragment;
  elsif is_strict then
    perform tsql.raise(error, 16, 1, message);
  end if;
  return null;
end
$$;
comment on function tsql.json_container(text, text, integer, text) is
  'The object or array at a path. Null where there is none; with `strict` this error.';

create or replace function tsql.json_query(document text, path text default '$') returns text
language sql immutable strict parallel safe
return tsql.json_container(document, path, 13624, 'Object or array cannot be found in the specified JSON path.')::text;
comment on function tsql.json_query(text, text) is
'SQL Server: JSON_QUERY. Null where there is a scalar; with `strict` error 13624.';

-- openjson

create or replace function tsql.json_opened(document text, path text) returns json
language sql immutable strict parallel safe
return tsql.json_container(
  document, path, 13611, 'Value referenced by JSON path is not an array or object and cannot be opened with OPENJSON.'
);
comment on function tsql.json_opened(text, text) is
  'The object or array at a path. Null where there is none; with `strict` error 13611.';

create or replace function tsql.json_elements(opened json) returns table (key text, element json)
language plpgsql immutable strict parallel safe
as $$
begin
  if json_typeof(opened) = 'object' then
    return query select m.key, m.value from json_each(opened) as m;
  else
    return query
    select (position - 1)::text, value from json_array_elements(opened) with ordinality as e (value, position) order by position;
  end if;
end
$$;
comment on function tsql.json_elements(json) is 'The members of an object by their names, those of an array by their numbers from 0.';

create or replace function tsql.openjson(document text, path text) returns table (key text, value text, type integer)
language sql immutable strict parallel safe
begin atomic
  select e.key,
    case when kind in ('object', 'array') then element::text else element #>> '{}' end,
    array_position(array['null', 'string', 'number', 'boolean', 'array', 'object'], kind) - 1
  from tsql.json_elements(tsql.json_opened(document, path)) as e, lateral json_typeof(element) as kind;
end;
comment on function tsql.openjson(text, text) is
'SQL Server: OPENJSON. Types: 0 null, 1 text, 2 number, 3 boolean, 4 array, 5 object.';

create or replace function tsql.openjson_rows(document text, path text) returns setof text
language plpgsql immutable strict parallel safe
as $$
declare
  opened constant json := tsql.json_opened(document, path);
begin
  if json_typeof(opened) = 'array' then
    return query select value::text from json_array_elements(opened);
  elsif opened is not null then
    return next opened::text;
  end if;
end
$$;
comment on function tsql.openjson_rows(text, text) is
'The rows of OPENJSON … WITH: the elements of an array, or an object.';

-- json_modify

create or replace function tsql.json_end(tokens text[], place integer) returns integer
language plpgsql immutable strict parallel safe
as $$
declare
  depth integer := 0;
begin
  loop
    depth := depth + case when tokens[place] in ('{', '[') then 1 when tokens[place] in ('}', ']') then -1 else 0 end;
    exit when depth = 0;
    place := place + 1;
  end loop;
  return place;
end
$$;
comment on function tsql.json_end(text[], integer) is 'The last token of the value that begins at this one.';

create or replace function tsql.json_next(tokens text[], place integer) returns integer
language sql immutable strict parallel safe
return place + (tokens[place] ~ '^\s')::integer;
comment on function tsql.json_next(text[], integer) is 'The first token from this one on that is not blank.';

create or replace function tsql.json_members(tokens text[], place integer)
returns table (step text, first integer, value integer, last integer)
language plpgsql immutable strict parallel safe
as $$
declare
  is_object constant boolean := tokens[place] = '{';
  number integer := 0;
begin
  place := tsql.json_next(tokens, place + 1);
  while tokens[place] not in ('}', ']') loop
    first := place;
    step := case when is_object then '.' || (tokens[place]::json #>> '{}') else '[' || number end;
    if is_object then
      place := tsql.json_next(tokens, tsql.json_next(tokens, place + 1) + 1);
    end if;
    value := place;
    last := tsql.json_end(tokens, place);
    return next;
    number := number + 1;
    place := tsql.json_next(tokens, last + 1);
    if tokens[place] = ',' then
      place := tsql.json_next(tokens, place + 1);
    end if;
  end loop;
end
$$;
comment on function tsql.json_members(text[], integer) is
'The members of the object or array that begins at a token: the step to each, its first token, those of its value.';

create or replace function tsql.json_added(tokens text[], place integer, member text) returns text
language sql immutable strict parallel safe
begin atomic
  select array_to_string(tokens[:closing - 1], '')
    || case when tsql.json_next(tokens, place + 1) < closing then ',' else '' end
    || member || array_to_string(tokens[closing:], '')
  from tsql.json_end(tokens, place) as closing;
end;
comment on function tsql.json_added(text[], integer, text) is 'A document with a further member of the object or array at a token.';

create or replace function tsql.json_removed(tokens text[], first integer, last integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  following constant integer := tsql.json_next(tokens, last + 1);
begin
  if tokens[following] = ',' then
    last := tsql.json_next(tokens, following + 1) - 1;
  else
    while first > 1 and (tokens[first - 1] = ',' or tokens[first - 1] ~ '^\s') loop
      first := first - 1;
    end loop;
  end if;
  return array_to_string(tokens[:first - 1] || tokens[last + 1:], '');
end
$$;
comment on function tsql.json_removed(text[], integer, integer) is 'A document without the member of these tokens and its comma.';

create or replace function tsql.json_modify(document text, path text, replacement text) returns text
language plpgsql immutable parallel safe
as $$
declare
  appends constant boolean := path ~* '^\s*append\s';
  is_strict boolean;
  steps text[];
  tokens text[];
  position integer;
  member record;
begin
  if document is null or path is null then
    return null;
  end if;
  select p.is_strict, p.steps into is_strict, steps
  from tsql.json_path(regexp_replace(path, '^\s*append\s+', '', 'i')) as p;
  if steps = '{}' and not appends then
    perform tsql.raise(13619, 16, 1, 'Unsupported JSON path found in argument 2 of JSON_MODIFY.');
  end if;
  perform tsql.json_read(document);
  tokens := array(
    select token[1]
    from regexp_matches(document, '("(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,"\s]+|\s+)', 'g') with ordinality as f (token, n)
    order by n
  );
  position := tsql.json_next(tokens, 1);
  for number in 1..cardinality(steps) loop
    select m.* into member from tsql.json_members(tokens, position) as m
    where tokens[position] in ('{', '[') and m.step = steps[number] order by m.first limit 1;
    if not found then
      if is_strict then
        perform tsql.json_missing();
      elsif number = cardinality(steps) and steps[number] like '.%' and tokens[position] = '{'
        and (appends or replacement is not null) then
        replacement := case when appends then '[' || coalesce(replacement, 'null') || ']' else replacement end;
        return tsql.json_added(tokens, position, tsql.json_text(substr(steps[number], 2)) || ':' || replacement);
      end if;
      return document;
    end if;
    position := member.value;
  end loop;
  if appends then
    if tokens[position] = '[' then
      return tsql.json_added(tokens, position, coalesce(replacement, 'null'));
    elsif is_strict then
      perform tsql.raise(13621, 16, 1, 'Array cannot be found in the specified JSON path.');
    end if;
    return document;
  elsif replacement is null and not is_strict and member.step like '.%' then
    return tsql.json_removed(tokens, member.first, member.last);
  end if;
  return array_to_string(tokens[:position - 1] || coalesce(replacement, 'null') || tokens[member.last + 1:], '');
end
$$;
comment on function tsql.json_modify(text, text, text) is
$$SQL Server: JSON_MODIFY. replacement: JSON, null removes a member, and is null in an array and with `strict`. Errors: a wrong path
(13607, 13619) or text (13609); with `strict` nothing there (13608), no array to append to (13621).$$;
