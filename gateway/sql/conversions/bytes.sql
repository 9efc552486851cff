-- Conversions to bytes and guids, and from bytes to texts (as in conversions/numbers.sql).

create or replace function tsql.wide_bytes(value text) returns bytea
language sql immutable strict parallel safe
return (
  with characters (position, code) as (
    select position, ascii(substr(value, position, 1)) from generate_series(1, length(value)) as position
  ), units (position, part, unit) as (
    select position, 1, case when code < 65536 then code else 55296 + ((code - 65536) >> 10) end from characters
    union all
    select position, 2, 56320 + ((code - 65536) & 1023) from characters where code >= 65536
  )
  select coalesce(string_agg(set_byte(set_byte('\x0000'::bytea, 0, unit & 255), 1, unit >> 8), ''::bytea
    order by position, part), ''::bytea)
  from units
);
comment on function tsql.wide_bytes(text) is 'A text in UTF-16, lower byte first, like an nvarchar of SQL Server.';
create or replace function tsql.wide_bytes(value character) returns bytea
language sql immutable strict parallel safe return tsql.wide_bytes(tsql.padded(value));
create or replace function tsql.varbytes(value text) returns bytea
language sql immutable strict parallel safe return tsql.ascii_bytes(value);
create or replace function tsql.varbytes(value character) returns bytea
language sql immutable strict parallel safe return tsql.ascii_bytes(tsql.padded(value));
create or replace function tsql.varbytes(value bytea) returns bytea
language sql immutable strict parallel safe return value;
create or replace function tsql.wide_text(value bytea) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  characters text[] := '{}';
  index integer := 0;
  unit integer;
  second integer;
begin
  while index < length(value) loop
    if index + 1 = length(value) then
      raise exception using errcode = '0A000',
        message = 'Bytes of an odd number are not supported as nvarchar, whose characters have two.';
    end if;
    unit := get_byte(value, index) + 256 * get_byte(value, index + 1);
    index := index + 2;
    if unit between 55296 and 56319 and index + 1 < length(value) then
      second := get_byte(value, index) + 256 * get_byte(value, index + 1);
      if second between 56320 and 57343 then
        unit := 65536 + ((unit - 55296) << 10) + second - 56320;
        index := index + 2;
      end if;
    end if;
    if unit = 0 or unit between 55296 and 57343 then
      raise exception using errcode = '0A000', message = 'Bytes with ' || case unit when 0 then 'a NUL' else 'half a pair' end
        || ' are not supported as nvarchar: PostgreSQL stores no such character.';
    end if;
    characters := characters || chr(unit);
  end loop;
  return array_to_string(characters, '');
end
$$;
comment on function tsql.wide_text(bytea) is
  'Bytes as the nvarchar that they are in SQL Server, the reverse of wide_bytes. Error (0A000): no such text can be stored.';
create or replace function tsql.to_nvarchar(value bytea, length integer) returns text
language sql immutable parallel safe return tsql.cut(tsql.wide_text(value), length);
create or replace function tsql.guid_order(value bytea) returns bytea
language sql immutable strict parallel safe
return substring(value from 4 for 1) || substring(value from 3 for 1) || substring(value from 2 for 1)
  || substring(value from 1 for 1) || substring(value from 6 for 1) || substring(value from 5 for 1)
  || substring(value from 8 for 1) || substring(value from 7 for 1) || substring(value from 9);
comment on function tsql.guid_order(bytea) is
  'Bytes of a uniqueidentifier as SQL Server has them from those as they are read, and back: the first three parts
begin with their last byte ("uniqueidentifier": 6F9619FF-8B86-D011-B42D-00C04FC964FF is
0xff19966f868b11d0b42d00c04fc964ff).';
create or replace function tsql.varbytes(value uuid) returns bytea
language sql immutable strict parallel safe return tsql.guid_order(uuid_send(value));
call tsql.make_each('{text,character,bytea,uuid}', $$
create or replace function tsql.to_varbinary(value %1$s, length integer) returns bytea
language sql immutable parallel safe return substring(tsql.varbytes(value) for coalesce(length, 2147483647));
create or replace function tsql.to_binary(value %1$s, length integer) returns bytea
language sql immutable parallel safe
return substring(tsql.varbytes(value) || decode(repeat('00', length), 'hex') for length);
create or replace function tsql.to_binary(value %1$s) returns bytea
language sql immutable parallel safe return tsql.varbytes(value)$$);
-- numbers keep their last bytes
call tsql.make_each('{{smallint,int2send(value)},{integer,int4send(value)},{bigint,int8send(value)}}', $$
create or replace function tsql.to_varbinary(value %1$s, length integer) returns bytea
language sql immutable parallel safe
return substring(%2$s from greatest(pg_catalog.length(%2$s) - coalesce(length, 8) + 1, 1));
create or replace function tsql.to_binary(value %1$s, length integer) returns bytea
language sql immutable parallel safe
return substring(decode(repeat('00', length), 'hex') || %2$s from pg_catalog.length(%2$s) + 1 for length)$$);

create or replace function tsql.to_guid(value uuid) returns uuid
language sql immutable strict parallel safe return value;
create or replace function tsql.to_guid(value text) returns uuid
language sql immutable strict parallel safe return tsql.read_guid(value);
-- zeros follow fewer bytes than 16, and more are cut
create or replace function tsql.to_guid(value bytea) returns uuid
language sql immutable strict parallel safe
return encode(tsql.guid_order(substring(value || decode(repeat('00', 16), 'hex') for 16)), 'hex')::uuid;

-- SQL Server compares and orders by the last six bytes first, PostgreSQL from left to right
create or replace function tsql.guid_order(guid text) returns text
language sql immutable strict parallel safe
return substr(guid, 25, 12) || substr(guid, 20, 4) || substr(guid, 17, 2) || substr(guid, 15, 2) || substr(guid, 12, 2)
  || substr(guid, 10, 2) || substr(guid, 7, 2) || substr(guid, 5, 2) || substr(guid, 3, 2) || substr(guid, 1, 2);
comment on function tsql.guid_order(text) is
  'The digits in the order in which SQL Server compares them: the last six bytes first ("Comparing GUID and '
  'uniqueidentifier values").';
create or replace function tsql.guid_key(value uuid) returns uuid
language sql immutable strict parallel safe
return tsql.guid_order(value::text)::uuid;
comment on function tsql.guid_key(uuid) is
  'What is ordered in PostgreSQL as the uniqueidentifier is in SQL Server. An index on it serves ORDER BY of the column.';
