-- HASHBYTES. PostgreSQL has MD5 and SHA-2; the others are implemented here after their RFCs.

create or replace function tsql.rotated(word bigint, bits integer) returns bigint
language sql immutable strict parallel safe
return ((word << bits) | (word >> (32 - bits))) & 4294967295;
comment on function tsql.rotated(bigint, integer) is 'A word of 32 bits, rotated to the left.';

create or replace function tsql.little_endian(word bigint, size integer) returns bytea
language sql immutable strict parallel safe
return (select string_agg(substr(int8send(word), 9 - position, 1), '' order by position) from generate_series(1, size) as position);

create or replace function tsql.padded(value bytea, big_endian boolean) returns bytea
language sql immutable strict parallel safe
return value || '\x80'::bytea
  || decode(repeat('00', (119 - length(value) % 64) % 64), 'hex')
  || case when big_endian then int8send(8 * length(value)::bigint)
     else tsql.little_endian(8 * length(value)::bigint, 8) end;
comment on function tsql.padded(bytea, boolean) is
  'Bytes in blocks of 64, with the number of bits at their end (RFC 1320, 3.1 and 3.2; RFC 3174, 4).';

-- RFC 3174
create or replace function tsql.sha1(value bytea) returns bytea
language plpgsql immutable strict parallel safe
as $$
declare
  message bytea := tsql.padded(value, true);
  h bigint[] := array[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
  w bigint[];
  a bigint; b bigint; c bigint; d bigint; e bigint; f bigint; k bigint; next bigint;
begin
  for block in 0 .. length(message) / 64 - 1 loop
    w := array_fill(0::bigint, array[80], array[0]);
    for t in 0 .. 79 loop
      w[t] := case when t < 16 then
          (get_byte(message, block * 64 + t * 4)::bigint << 24) | (get_byte(message, block * 64 + t * 4 + 1) << 16)
          | (get_byte(message, block * 64 + t * 4 + 2) << 8) | get_byte(message, block * 64 + t * 4 + 3)
        else tsql.rotated(w[t - 3] # w[t - 8] # w[t - 14] # w[t - 16], 1) end;
    end loop;
    a := h[1]; b := h[2]; c := h[3]; d := h[4]; e := h[5];
    for t in 0 .. 79 loop
      case
        when t < 20 then f := (b & c) | (~b & 4294967295 & d); k := 1518500249;
        when t < 40 then f := b # c # d; k := 1859775393;
        when t < 60 then f := (b & c) | (b & d) | (c & d); k := 2400959708;
        else f := b # c # d; k := 3395469782;
      end case;
      next := (tsql.rotated(a, 5) + f + e + w[t] + k) & 4294967295;
      e := d; d := c; c := tsql.rotated(b, 30); b := a; a := next;
    end loop;
    h := array[(h[1] + a) & 4294967295, (h[2] + b) & 4294967295, (h[3] + c) & 4294967295,
               (h[4] + d) & 4294967295, (h[5] + e) & 4294967295];
  end loop;
  return (select string_agg(substr(int8send(word), 5), '' order by position) from unnest(h) with ordinality as x (word, position));
end
$$;

-- RFC 1320
create or replace function tsql.md4(value bytea) returns bytea
language plpgsql immutable strict parallel safe
as $$
declare
  message bytea := tsql.padded(value, false);
  h bigint[] := array[1732584193, 4023233417, 2562383102, 271733878];
  x bigint[];
  a bigint; b bigint; c bigint; d bigint; f bigint; next bigint;
  shifts constant integer[] := array[3, 7, 11, 19, 3, 5, 9, 13, 3, 9, 11, 15];
  second constant integer[] := array[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
  third constant integer[] := array[0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15];
begin
  for block in 0 .. length(message) / 64 - 1 loop
    x := array_fill(0::bigint, array[16], array[0]);
    for i in 0 .. 15 loop
      x[i] := get_byte(message, block * 64 + i * 4) | (get_byte(message, block * 64 + i * 4 + 1) << 8)
        | (get_byte(message, block * 64 + i * 4 + 2) << 16) | (get_byte(message, block * 64 + i * 4 + 3)::bigint << 24);
    end loop;
    a := h[1]; b := h[2]; c := h[3]; d := h[4];
    for step in 0 .. 47 loop
      case step / 16
        when 0 then f := ((b & c) | (~b & 4294967295 & d)) + x[step];
        when 1 then f := ((b & c) | (b & d) | (c & d)) + x[second[step - 15]] + 1518500249;
        else f := (b # c # d) + x[third[step - 31]] + 1859775393;
      end case;
      next := tsql.rotated((a + f) & 4294967295, shifts[(step / 16) * 4 + step % 4 + 1]);
      a := d; d := c; c := b; b := next;
    end loop;
    h := array[(h[1] + a) & 4294967295, (h[2] + b) & 4294967295, (h[3] + c) & 4294967295, (h[4] + d) & 4294967295];
  end loop;
  return (select string_agg(tsql.little_endian(word, 4), '' order by position)
          from unnest(h) with ordinality as x (word, position));
end
$$;

create or replace function tsql.hashbytes(algorithm text, value bytea) returns bytea
language plpgsql immutable strict parallel safe
as $$
begin
  case lower(rtrim(algorithm))
    when 'md2' then perform tsql.fail(8623, 'hashbytes(''md2'', …) is not served: take another algorithm.');
    when 'md4' then return tsql.md4(value);
    when 'md5' then return decode(md5(value), 'hex');
    when 'sha', 'sha1' then return tsql.sha1(value);
    when 'sha2_256' then return sha256(value);
    when 'sha2_512' then return sha512(value);
    else return null;
  end case;
end
$$;
comment on function tsql.hashbytes(text, bytea) is 'Null for any other algorithm.';
