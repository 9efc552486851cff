-- FOR JSON of SQL Server: values as JSON ("How FOR JSON converts SQL Server data types to JSON data types").

create or replace function tsql.json_text(value text) returns text
language sql immutable strict parallel safe
return replace(to_json(value)::text, '/', E'\\/');
comment on function tsql.json_text(text) is
  'A text as JSON, with what FOR JSON escapes ("How FOR JSON escapes special characters and control characters").';

create or replace function tsql.json_offset(value text) returns text
language sql immutable strict parallel safe
return regexp_replace(value, '\+00:00$', 'Z');
comment on function tsql.json_offset(text) is 'The text of a datetimeoffset: an offset of zero is Z.';

create or replace function tsql.json_of(value anyelement) returns text
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail(102, format('JSON of a value of type %s is not supported by ringlog: convert it.', pg_typeof(value)));
end
$$;
comment on function tsql.json_of(anyelement) is 'A value as JSON, null for null. Error: its type has no JSON form.';

call tsql.make_each(array[['boolean', 'value::text'], ['smallint', 'value::text'], ['integer', 'value::text'],
  ['bigint', 'value::text'], ['numeric', 'value::text'], ['tsql.money', 'round(value, 4)::text'],
  ['tsql.smallmoney', 'round(value, 4)::text'], ['real', 'tsql.float_text(value::text::double precision, 1)'],
  ['double precision', 'tsql.float_text(value, 2)'], ['text', 'tsql.json_text(value)'],
  ['character', 'tsql.json_text(tsql.text_of(value))'], ['uuid', 'tsql.json_text(tsql.text_of(value))'],
  ['xml', 'tsql.json_text(value::text)'], ['bytea', $x$tsql.json_text(replace(encode(value, 'base64'), E'\n', ''))$x$],
  ['date', 'tsql.json_text(tsql.date_text(value, 126))'], ['time', 'tsql.json_text(tsql.time_text(value, 126, 7))'],
  ['timestamp', 'tsql.json_text(tsql.to_varchar(value, 30, 126))'],
  ['tsql.datetimeoffset', 'tsql.json_text(tsql.json_offset(tsql.datetimeoffset_text(value, 126, 7)))']
], 'create or replace function tsql.json_of(value %s) returns text language sql immutable parallel safe return %s');
create or replace function tsql.json_of(value timestamptz) returns text
language sql stable parallel safe return tsql.json_text(tsql.to_varchar(value, 30, 126));

create or replace function tsql.json_name(tables regclass[], named name) returns text
language sql stable parallel safe
return (
  select tsql.json_text(coalesce(
    replace(substring(col_description(attrelid, attnum) from '^T-SQL "((?:[^"]|"")+)"'), '""', '"'), attname)) || ':'
  from unnest(tables) with ordinality as sources (source, position)
  join pg_attribute on attrelid = source and attname = named and attnum > 0 and not attisdropped
  order by position
  limit 1
);
comment on function tsql.json_name(regclass[], name) is
  'The name of a column of the first of these tables that has it, in the case of its declaration, as JSON with a colon.';

create or replace function tsql.json_nested(rows text[], names text[]) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  levels constant integer := cardinality(names);
  parts text[] := '{}';
  of_row text[];
  before text[];
  same integer;
begin
  -- per level the members, and those of its table, which are compared
  foreach of_row slice 1 in array rows loop
    same := 0;
    while before is not null and same < levels - 1 and of_row[2 * same + 2] = before[2 * same + 2] loop
      same := same + 1;
    end loop;
    if before is not null then
      parts := parts || (repeat('}]', levels - 1 - same) || '},');
    end if;
    for level in same + 1..levels loop
      parts := parts || ('{' || of_row[2 * level - 1]);
      if level < levels then
        parts := parts || (case when of_row[2 * level - 1] = '' then '' else ',' end || names[level + 1] || '[');
      end if;
    end loop;
    before := of_row;
  end loop;
  return array_to_string(parts || (repeat('}]', levels - 1) || '}'), '');
end
$$;
comment on function tsql.json_nested(text[], text[]) is
$$The objects of FOR JSON AUTO: consecutive rows with the same values of a level and those above share its object. rows: of
each row, of each level its members and those that are compared; names: of the levels, as JSON with a colon.$$;
