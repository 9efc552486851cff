-- Pointers to texts and images (SQL Server: TEXTPTR, READTEXT, WRITETEXT, UPDATETEXT; ASE: the same without
-- updatetext). A pointer has 16 bytes: the table's oid (4), the number of the column (2), and the version of the row:
-- its ctid (6) and xmin (4). So a pointer finds the row as it was read or does not find it.
--
-- A write by a pointer creates another version. The setting tsql.text_versions contains the versions of the session:
-- entries `version:newest;` in hexadecimal digits, each preceded by the table, the latest first. PostgreSQL rolls it
-- back with the transaction.

create or replace function tsql.textptr(table_ oid, column_ text, place tid, writer xid, filled boolean) returns bytea
language plpgsql stable
as $$
declare
  number smallint;
  type_ oid;
  typmod integer;
begin
  select attnum, atttypid, atttypmod into number, type_, typmod
  from pg_catalog.pg_attribute where attrelid = table_ and attname = column_ and attnum > 0 and not attisdropped;
  if number is null then
    return null;
  elsif type_ not in ('text'::regtype, 'bytea'::regtype) and (type_ <> 'varchar'::regtype or typmod <> -1) then
    perform tsql.fail(8116, format('Argument data type %s is invalid for argument 1 of textptr function.',
      tsql.conversion_class(type_)));
  elsif not filled then
    return null;
  end if;
  return oidsend(table_) || int2send(number) || tidsend(place) || xidsend(writer);
end
$$;
comment on function tsql.textptr(oid, text, tid, xid, boolean) is
  'The pointer to a column of a row; null: the table has no such column, or it is null there.';

create or replace function tsql.text_version(pointer bytea) returns text
language sql stable
return (
  with asked (version) as (select encode(substr(pointer, 1, 4) || substr(pointer, 7, 10), 'hex'))
  select coalesce(
    substring(current_setting('tsql.text_versions', true) from version || ':(\w+);'),
    version)
  from asked
);
comment on function tsql.text_version(bytea) is
  'The newest version of a pointer''s row that the session knows, with its table.';

create or replace function tsql.text_writer(pointer bytea) returns xid
language sql stable
return ('x' || substr(tsql.text_version(pointer), 21, 8))::bit(32)::bigint::text::xid;

create or replace function tsql.text_place(target text, column_ text, pointer bytea, statement_ text) returns tid
language plpgsql stable
as $$
declare
  version text;
  location tid;
  is_there boolean;
begin
  if pointer is null then
    perform tsql.fail(7133, format('NULL textptr (text, ntext, or image pointer) passed to %s function.', statement_));
  elsif length(pointer) <> 16 then
    perform tsql.fail(7122, 'Invalid text, ntext, or image pointer type. Must be binary(16).');
  elsif substr(pointer, 1, 6) is distinct from (
    select oidsend(attrelid) || int2send(attnum) from pg_catalog.pg_attribute
    where attrelid = target::regclass and attname = column_ and attnum > 0 and not attisdropped
  ) then
    if not exists (
      select from pg_catalog.pg_attribute where attrelid = target::regclass and attname = column_ and attnum > 0
        and not attisdropped
    ) then
      perform tsql.fail(207, format('Invalid column name ''%s''.', column_));
    end if;
    perform tsql.fail(7125, 'The text, ntext, or image pointer value conflicts with the column name specified.');
  end if;
  version := tsql.text_version(pointer);
  location := format('(%s,%s)', ('x' || substr(version, 9, 8))::bit(32)::bigint, ('x' || substr(version, 17, 4))::bit(16)::integer);
  execute format('select true from %s where ctid = $1 and xmin = $2', target) into is_there
    using location, tsql.text_writer(pointer);
  if is_there is null then
    perform tsql.fail_text_pointer(pointer);
  end if;
  return location;
end
$$;
comment on function tsql.text_place(text, text, bytea, text) is
  $$Where the row of a pointer is. Errors 7133, 7122, 7125 and 7123: the pointer is null or none, or of another column, or the
row is not there.$$;

create or replace function tsql.fail_text_pointer(pointer bytea) returns void
language plpgsql immutable
as $$
begin
  perform tsql.fail(7123, format('Invalid text, ntext, or image pointer value 0x%s.', encode(pointer, 'hex')));
end
$$;

create or replace function tsql.text_timestamp(version bytea) returns bytea
language sql immutable parallel safe
return '\x00000000'::bytea || substr(version, 7, 4);
comment on function tsql.text_timestamp(bytea) is 'For a version without its table: the transaction that wrote it, in 8 bytes.';

create or replace function tsql.check_text_timestamp(pointer bytea, timestamp_ bytea) returns void
language plpgsql stable
as $$
begin
  if timestamp_ is not null and timestamp_ not in ('\x0000000000000000', '\xffffffffffffffff')
    and timestamp_ <> tsql.text_timestamp(substr(decode(tsql.text_version(pointer), 'hex'), 5))
  then
    perform tsql.fail(7127, 'The text, ntext, or image pointer value references a data page with an invalid timestamp.');
  end if;
end
$$;
comment on function tsql.check_text_timestamp(bytea, bytea) is
  'Error 7127: the column was written since. Programs that know no timestamp send zeros.';

create or replace function tsql.text_written(pointer bytea, written bytea) returns bytea
language plpgsql
as $$
declare
  -- the most entries of a session, of 58 characters each
  most constant integer := 200;
  named text := encode(substr(pointer, 1, 4) || substr(pointer, 7, 10), 'hex');
  before text := tsql.text_version(pointer);
  after text := encode(substr(pointer, 1, 4) || written, 'hex');
  known text := coalesce(current_setting('tsql.text_versions', true), '');
begin
  if written is null then
    -- another session has changed the row in the meantime
    perform tsql.fail_text_pointer(pointer);
  end if;
  known := replace(replace(known, ':' || before || ';', ':' || after || ';'), format('%s:%s;', named, after), '');
  if before <> named then
    known := format('%s:%s;%s', before, after, known);
  end if;
  perform set_config('tsql.text_versions', left(format('%s:%s;%s', named, after, known), 58 * most), false);
  return tsql.text_timestamp(written);
end
$$;
comment on function tsql.text_written(bytea, bytea) is
  'Notes the new version of a row that was written by a pointer, and gives its timestamp.';

create or replace function tsql.textvalid(column_ text, pointer bytea) returns integer
language plpgsql stable
as $$
declare
  parts text[] := string_to_array(lower(column_), '.');
  number integer := cardinality(parts);
  location tid;
  schema_ text;
  target text;
begin
  if number < 2 or number > 4 or pointer is null or length(pointer) <> 16 then
    return 0;
  end if;
  schema_ := case
    when parts[number - 1] like '##%' then 'tsql_global' when parts[number - 1] like '#%' then 'pg_temp'
    when number = 4 then parts[1] else nullif(nullif(parts[number - 2], 'dbo'), '') end;
  target := concat_ws('.', quote_ident(schema_), quote_ident(parts[number - 1]));
  if to_regclass(target) is null then
    return 0;
  end if;
  location := tsql.text_place(target, parts[number], pointer, 'TextValid');
  return 1;
exception when sqlstate 'S7123' or sqlstate 'S7125' or sqlstate 'S0207' then
  return 0;
end
$$;
comment on function tsql.textvalid(text, bytea) is 'Whether a pointer is one of this column, table.column: 1 or 0.';

create or replace function tsql.text_part(value text, offset_ integer, size integer, sybase boolean, counts_bytes boolean)
returns text
language plpgsql immutable parallel safe
as $$
declare
  total integer := tsql.units(value);
begin
  if counts_bytes and octet_length(value) > total then
    perform tsql.fail(8114, 'readtext: how many bytes a character beyond ASCII has, depends on the server''s charset: '
      'count characters (using chars).');
  end if;
  perform tsql.check_text_part(total, offset_, size);
  return tsql.part(value, offset_ + 1, tsql.text_size(total, offset_, size, sybase));
end
$$;
create or replace function tsql.text_part(value bytea, offset_ integer, size integer, sybase boolean, counts_bytes boolean)
returns bytea
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.check_text_part(length(value), offset_, size);
  return substr(value, offset_ + 1, tsql.text_size(length(value), offset_, size, sybase));
end
$$;
comment on function tsql.text_part(text, integer, integer, boolean, boolean) is
  'What readtext gives. Error 7124: the text ends before.';

create or replace function tsql.check_text_part(total integer, offset_ integer, size integer) returns void
language plpgsql immutable parallel safe
as $$
begin
  if coalesce(offset_ < 0 or size < 0 or offset_::bigint + size > total, true) then
    perform tsql.fail(7124, format('The offset and length specified in the READTEXT statement is greater than the actual data'
      ' length of %s.', total));
  end if;
end
$$;

create or replace function tsql.text_size(total integer, offset_ integer, size integer, sybase boolean) returns integer
language sql immutable parallel safe
return case when size > 0 then size when sybase then total - offset_ else least(total - offset_, 4096) end;
comment on function tsql.text_size(integer, integer, integer, boolean) is
  'A size of 0 is 4 KB ("READTEXT"); in ASE all that follows.';

create or replace function tsql.check_splice(total integer, offset_ integer, length_ integer) returns void
language plpgsql immutable parallel safe
as $$
begin
  if offset_ < 0 or offset_ > total then
    perform tsql.fail(7116, format('Offset %s is not in the range of available LOB data.', offset_));
  elsif length_ < 0 or coalesce(offset_, total)::bigint + length_ > total then
    perform tsql.fail(7135, format('Deletion length %s is not in the range of available text, ntext, or image data.', length_));
  end if;
end
$$;

create or replace function tsql.text_spliced(value text, offset_ integer, length_ integer, put text default '') returns text
language plpgsql immutable parallel safe
as $$
declare
  total integer := tsql.units(value);
  start_ integer := coalesce(offset_, total);
begin
  perform tsql.check_splice(total, offset_, length_);
  return tsql.part(value, 1, start_) || coalesce(put, '')
    || tsql.part(value, start_ + 1 + coalesce(length_, total - start_), total);
end
$$;
create or replace function tsql.text_spliced(value bytea, offset_ integer, length_ integer, put bytea default '') returns bytea
language plpgsql immutable parallel safe
as $$
declare
  total integer := length(value);
  start_ integer := coalesce(offset_, total);
begin
  perform tsql.check_splice(total, offset_, length_);
  return substr(value, 1, start_) || coalesce(put, '') || substr(value, start_ + 1 + coalesce(length_, total - start_));
end
$$;
create or replace function tsql.text_spliced(value text, offset_ integer, length_ integer, put bytea) returns text
language sql immutable parallel safe
return tsql.refused(206, 'Operand type clash: varbinary is incompatible with text', null::text);
create or replace function tsql.text_spliced(value bytea, offset_ integer, length_ integer, put text) returns bytea
language sql immutable parallel safe
return tsql.refused(206, 'Operand type clash: varchar is incompatible with image', null::bytea);
comment on function tsql.text_spliced(text, integer, integer, text) is
  'With a part put in the place of another; a null offset is the end, a null length all that follows.';
