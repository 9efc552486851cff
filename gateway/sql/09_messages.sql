-- The texts of PRINT and RAISERROR.

create or replace function tsql.format_message(format_ text, arguments text[]) returns text
language plpgsql immutable parallel safe
as $$
declare
  part text[];
  rest text := format_;
  result text := '';
  next integer := 1;
  width integer;
  shown text;
begin
  loop
    part := regexp_match(rest, '^(.*?)%([-+0 #]*)(\*|\d*)(?:\.(\*|\d+))?(?:l|h|I64)?([diuoxXsp%])(.*)$');
    exit when part is null;
    result := result || part[1];
    rest := part[6];
    if part[5] = '%' then
      result := result || '%';
      continue;
    end if;
    if part[3] = '*' then
      width := arguments[next]::integer;
      next := next + 1;
    else
      width := nullif(part[3], '')::integer;
    end if;
    shown := arguments[next];
    next := next + 1;
    if shown is null then
      shown := '(null)';
    elsif part[5] in ('x', 'X', 'o', 'u') then
      shown := case part[5] when 'x' then to_hex(shown::integer) when 'X' then upper(to_hex(shown::integer))
        when 'u' then case when shown::bigint < 0 then (shown::bigint + 4294967296)::text else shown end
        else shown end;
    elsif part[5] in ('d', 'i') and position('+' in part[2]) > 0 and shown not like '-%' then
      shown := '+' || shown;
    elsif part[5] = 's' and part[4] is not null and part[4] <> '*' then
      shown := left(shown, part[4]::integer);
    end if;
    if width is not null and length(shown) < width then
      shown := case when position('-' in part[2]) > 0 then rpad(shown, width)
        when position('0' in part[2]) > 0 and part[5] <> 's' then lpad(shown, width, '0')
        else lpad(shown, width) end;
    end if;
    result := result || shown;
  end loop;
  return left(result || rest, 2047);
end
$$;
comment on function tsql.format_message(text, text[]) is 'RAISERROR''s %d, %s and the like, as printf has them.';

create or replace function tsql.format_numbered(format_ text, arguments text[]) returns text
language plpgsql immutable parallel safe
as $$
declare
  result text := format_;
begin
  for number in reverse coalesce(array_length(arguments, 1), 0) .. 1 loop
    result := replace(result, '%' || number || '!', coalesce(arguments[number], '(null)'));
  end loop;
  return result;
end
$$;
comment on function tsql.format_numbered(text, text[]) is 'Sybase''s %1!, %2! and so on.';

create or replace function tsql.severity(severity integer) returns integer
language plpgsql immutable
as $$
begin
  if severity > 18 then
    perform tsql.fail(2754, 'Error severity levels greater than 18 can only be specified by members of the sysadmin '
      'role, using the WITH LOG option.');
  end if;
  return greatest(coalesce(severity, 0), 0);
end
$$;
create or replace function tsql.state(state integer) returns integer
language sql immutable return case when state between 0 and 255 then state else 1 end;
create or replace function tsql.user_number(number integer) returns integer
language plpgsql immutable
as $$
begin
  if number is null or number < 17000 then
    perform tsql.fail(2732, format('Error number %s is invalid. The number must be from 17000 on.', number));
  end if;
  return number;
end
$$;
create or replace function tsql.thrown_number(number integer) returns integer
language plpgsql immutable
as $$
begin
  if number is null or number < 50000 then
    perform tsql.raise(35100, 16, 10, format('Error number %s in the THROW statement is outside the valid range. Specify an '
      'error number in the valid range of 50000 to 2147483647.', number));
  end if;
  return number;
end
$$;
