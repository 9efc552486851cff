-- Conversions to texts.

-- conversions to texts of any length
call tsql.make_each(array[
  ['text', 'value'], ['character', 'tsql.padded(value)'], ['boolean', 'value::integer::text'], ['smallint', 'value::text'],
  ['integer', 'value::text'], ['bigint', 'value::text'], ['numeric', 'value::text'], ['tsql.money', 'tsql.money_text(value, 0)'],
  ['tsql.smallmoney', 'tsql.money_text(value, 0)'], ['real', 'tsql.float_text(value::text::double precision, 0)'],
  ['double precision', 'tsql.float_text(value, 0)'], ['timestamp', 'tsql.datetime_text(value, 0)'],
  ['date', 'tsql.date_text(value, 121)'], ['time', 'tsql.time_text(value, 121, 7)'], ['uuid', 'upper(value::text)'],
  ['bytea', 'tsql.read_bytes(value)'], ['xml', 'value::text']
], 'create or replace function tsql.text_of(value %s) returns text language sql immutable parallel safe return %s');
create or replace function tsql.text_of(value timestamptz) returns text
language sql stable parallel safe return tsql.datetime_text(value::timestamp, 0);

create or replace function tsql.too_long(value text, length integer, type_ text) returns text
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > length then
    case
      when type_ like 'tsql.%money' then
        perform tsql.fail(234, 'There is insufficient result space to convert a money value to varchar.');
      when type_ in ('real', 'double precision', 'float') then
        perform tsql.fail(232, format('Arithmetic overflow error for type varchar, value = %s.', value));
      when type_ = 'uuid' then
        perform tsql.fail(8170, 'Insufficient result space to convert uniqueidentifier value to char.');
      else
        perform tsql.fail(8115, format('Arithmetic overflow error converting %s to data type varchar.',
          case type_ when 'bigint' then 'expression' else type_ end));
    end case;
  end if;
  return value;
end
$$;

-- conversions to texts of limited length: longer texts and times are cut, longer whole numbers become *
call tsql.make_each(array[['text', 'immutable'], ['character', 'immutable'], ['timestamp', 'immutable'], ['timestamptz', 'stable'],
  ['date', 'immutable'], ['time', 'immutable'], ['bytea', 'immutable'], ['xml', 'immutable']
], $$create or replace function tsql.to_varchar(value %s, length integer) returns text
language sql %s parallel safe return tsql.cut(tsql.text_of(value), length)$$);
-- in nvarchar a longer number is an error and not * ("CAST and CONVERT", "Truncating and rounding results")
call tsql.make_each('{boolean,smallint,integer}', $$
create or replace function tsql.to_varchar(value %1$s, length integer) returns text
language sql immutable parallel safe
return case when pg_catalog.length(tsql.text_of(value)) > length then '*' else tsql.text_of(value) end;
create or replace function tsql.to_nvarchar(value %1$s, length integer) returns text
language sql immutable parallel safe return tsql.too_long(tsql.text_of(value), length, 'expression')$$);
call tsql.make_each('{bigint,numeric,tsql.money,tsql.smallmoney,real,double precision,uuid}', $$
create or replace function tsql.to_varchar(value %1$s, length integer) returns text
language sql immutable parallel safe return tsql.too_long(tsql.text_of(value), length, %1$L)$$);

-- with a style; a timestamp with time zone is a datetime2 for clients
call tsql.make_each(array[['timestamp', 'immutable', 'tsql.datetime_text(value, style)'],
  ['timestamptz', 'stable', 'case when style in (21, 25, 121, 126, 127) then tsql.datetime2_text(value::timestamp, style, 6)
    else tsql.datetime_text(tsql.moment(value), style) end'],
  ['date', 'immutable', 'tsql.date_text(value, style)'], ['time', 'immutable', 'tsql.time_text(value, style, 7)']
], $$create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text
language sql %2$s parallel safe return pg_catalog.left(%3$s, coalesce(length, 8000))$$);
call tsql.make_each('{text,character,boolean,smallint,integer,bigint,numeric,uuid}', $$
create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text
language sql immutable parallel safe return tsql.to_varchar(value, coalesce(length, 8000))$$);
call tsql.make_each('{tsql.money,tsql.smallmoney}', $$
create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text
language sql immutable parallel safe
return tsql.too_long(tsql.money_text(value, style), coalesce(length, 8000), %1$L)$$);
create or replace function tsql.to_varchar(value real, length integer, style integer) returns text
language sql immutable parallel safe
return tsql.too_long(tsql.float_text(case style when 0 then value::text::double precision
  else value::double precision end, style), coalesce(length, 8000), 'real');
create or replace function tsql.to_varchar(value double precision, length integer, style integer) returns text
language sql immutable parallel safe
return tsql.too_long(tsql.float_text(value, style), coalesce(length, 8000), 'float');
create or replace function tsql.to_varchar(value bytea, length integer, style integer) returns text
language plpgsql immutable parallel safe
as $$
begin
  -- the others are translated by the compiler
  if style <> 0 then
    perform tsql.fail(281, format('%s is not a valid style number when converting from varbinary to a character string.',
      style));
  end if;
  return tsql.to_varchar(value, coalesce(length, 8000));
end
$$;
