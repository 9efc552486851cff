-- ASE's functions between numbers, bytes and hexadecimal texts ("Reference Manual: Building Blocks").

create or replace function tsql.inttohex(value integer) returns text
language sql immutable strict parallel safe
return upper(encode(int4send(value), 'hex'));

create or replace function tsql.biginttohex(value bigint) returns text
language sql immutable strict parallel safe
return upper(encode(int8send(value), 'hex'));

create or replace function tsql.strtobin(value text) returns bytea
language sql immutable strict parallel safe
return case when value ~ '^[0-9a-fA-F]*$' then decode(repeat('0', length(value) % 2) || value, 'hex') end;
comment on function tsql.strtobin(text) is 'Null for a text that is not hexadecimal; an odd number of digits is preceded by 0.';

create or replace function tsql.bintostr(value bytea) returns text
language sql immutable strict parallel safe
return encode(value, 'hex');

create or replace function tsql.from_hex(value text, digits integer) returns bit varying
language plpgsql immutable strict parallel safe
as $$
declare
  digits_given text := ltrim(regexp_replace(rtrim(value, ' '), '^0[xX]', ''), '0');
begin
  if value !~ '^(0[xX])?[0-9a-fA-F]+ *$' then
    perform tsql.fail(249, format('Syntax error during explicit conversion of VARCHAR value ''%s'' to a %s field.',
      value, case digits when 8 then 'INT' else 'BIGINT' end));
  elsif length(digits_given) > digits then
    perform tsql.fail(247, format('Arithmetic overflow during explicit conversion of VARCHAR value ''%s'' to a %s field.',
      value, case digits when 8 then 'INT' else 'BIGINT' end));
  end if;
  return ('x' || lpad(digits_given, digits, '0'))::bit varying;
end
$$;
comment on function tsql.from_hex(text, integer) is 'The bits of a hexadecimal text of at most this many digits, with or without 0x.';

create or replace function tsql.hextoint(value text) returns integer
language sql immutable strict parallel safe
return tsql.from_hex(value, 8)::bit(32)::integer;

create or replace function tsql.hextobigint(value text) returns bigint
language sql immutable strict parallel safe
return tsql.from_hex(value, 16)::bit(64)::bigint;
