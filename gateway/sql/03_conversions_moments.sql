-- Binary values to times, as scripts of SQL Server have them: CAST(0x0000A4A500000000 AS datetime).

create or replace function tsql.number_of_bytes(bytes bytea)
returns integer
language sql
immutable strict parallel safe
return ('x' || lpad(encode(bytes, 'hex'), 8, '0'))::bit(32)::integer;
comment on function tsql.number_of_bytes(bytea) is 'Up to four bytes as a signed integer, the highest byte first.';

create or replace function tsql.demand_bytes(bytes bytea, length integer, of_type text)
returns bytea
language plpgsql
immutable strict parallel safe
as $$
begin
  if octet_length(bytes) <> length then
    perform tsql.fail(102, format('varbinary to %s of %s bytes is not supported: it has %s.', of_type, octet_length(bytes), length));
  end if;
  return bytes;
end
$$;
comment on function tsql.demand_bytes(bytea, integer, text) is 'The bytes of a time; error 102 if they are not as many as its type has.';

create or replace function tsql.datetime_of_bytes(value bytea)
returns tsql.datetime
language plpgsql
immutable strict parallel safe
as $$
declare
  bytes constant bytea := tsql.demand_bytes(value, 8, 'datetime');
  days constant integer := tsql.number_of_bytes(substr(bytes, 1, 4));
  ticks constant integer := tsql.number_of_bytes(substr(bytes, 5, 4));
begin
  if days not between -53690 and 2958463 or ticks not between 0 and 300 * 86400 - 1 then
    return tsql.no_datetime(days);
  end if;
  return timestamp '1900-01-01' + interval '1 day' * days + interval '1 microsecond' * round(ticks * 10000::numeric / 3)::double precision;
end
$$;
comment on function tsql.datetime_of_bytes(bytea) is
'Four bytes of days since 1900 and four of 1/300 s since midnight. Error 8115: neither is in the range of datetime.';

create or replace function tsql.smalldatetime_of_bytes(value bytea)
returns tsql.smalldatetime
language plpgsql
immutable strict parallel safe
as $$
declare
  bytes constant bytea := tsql.demand_bytes(value, 4, 'smalldatetime');
begin
  return timestamp '1900-01-01' + interval '1 day' * tsql.number_of_bytes(substr(bytes, 1, 2))
    + interval '1 minute' * tsql.number_of_bytes(substr(bytes, 3, 2));
end
$$;
comment on function tsql.smalldatetime_of_bytes(bytea) is 'Two bytes of days since 1900 and two of minutes since midnight.';

create or replace function tsql.date_of_bytes(value bytea)
returns date
language plpgsql
immutable strict parallel safe
as $$
declare
  bytes constant bytea := tsql.demand_bytes(value, 3, 'date');
begin
  return date '0001-01-01' + (get_byte(bytes, 0) + 256 * get_byte(bytes, 1) + 65536 * get_byte(bytes, 2));
end
$$;
comment on function tsql.date_of_bytes(bytea) is 'Three bytes of days since the year 1, the lowest byte first.';
