-- The texts of PRINT and RAISERROR.

create or replace function tsql.digits(number numeric, base integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  rest numeric := number;
  result text := '';
begin
  loop
    result := substr('0123456789abcdef', (rest % base)::integer + 1, 1) || result;
    rest := div(rest, base);
    exit when rest = 0;
  end loop;
  return result;
end
$$;

create or replace function tsql.format_message(format_ text, arguments text[], numbers boolean[]) returns text
language plpgsql immutable parallel safe
as $$
declare
  part text[];
  rest text := format_;
  result text := '';
  next integer := 1;
  width integer;
  most integer;
  type_ text;
  is_number boolean;
  sign text;
  shown text;
begin
  if cardinality(arguments) > 20 then
    perform tsql.fail(2747, 'Too many substitution parameters for RAISERROR. Cannot exceed 20 substitution '
      'parameters.');
  end if;
  loop
    part := regexp_match(rest, '^([^%]*)%([-+0 #]*)(\*|\d*)(?:\.(\*|\d+))?(l|h|I64)?([diuoxXsp%])(.*)$');
    exit when part is null;
    result := result || part[1];
    rest := part[7];
    type_ := part[6];
    if type_ = '%' then
      result := result || '%';
      continue;
    end if;
    if part[3] = '*' then
      width := arguments[next]::integer;
      next := next + 1;
    else
      width := nullif(part[3], '')::integer;
    end if;
    if part[4] = '*' then
      most := arguments[next]::integer;
      next := next + 1;
    else
      most := part[4]::integer;
    end if;
    shown := arguments[next];
    is_number := shown ~ '^-?\d+$' and type_ not in ('s', 'p');
    if type_ <> 'p' and numbers[next] = (type_ = 's') or type_ not in ('s', 'p') and not is_number then
      perform tsql.fail(2786, format('The data type of substitution parameter %s does not match the expected type of the '
        'format specification.', next));
    end if;
    next := next + 1;
    sign := '';
    if shown is null then
      shown := '(null)';
    elsif is_number and type_ in ('d', 'i') then
      sign := case when shown like '-%' then '-' when position('+' in part[2]) > 0 then '+'
        when position(' ' in part[2]) > 0 then ' ' else '' end;
      shown := ltrim(shown, '-');
    elsif is_number then
      -- the bits of a negative number without its sign
      shown := tsql.digits(
        shown::numeric + case when shown not like '-%' then 0 when part[5] = 'I64' then 18446744073709551616
          else 4294967296 end,
        case type_ when 'u' then 10 when 'o' then 8 else 16 end);
      sign := case when position('#' in part[2]) = 0 or shown = '0' then '' when type_ = 'o' then '0'
        when type_ in ('x', 'X') then '0' || type_ else '' end;
      shown := case type_ when 'X' then upper(shown) else shown end;
    elsif type_ = 's' and most is not null then
      shown := left(shown, most);
    end if;
    -- the minimum digits of a number, the maximum characters of a text
    if is_number and length(shown) < most then
      shown := lpad(shown, most, '0');
    end if;
    if length(sign || shown) < width then
      shown := case when position('-' in part[2]) > 0 then rpad(sign || shown, width)
        when is_number and most is null and position('0' in part[2]) > 0
          then sign || lpad(shown, width - length(sign), '0')
        else lpad(sign || shown, width) end;
    else
      shown := sign || shown;
    end if;
    result := result || shown;
  end loop;
  if rest like '%\%%' then
    perform tsql.fail(2787, format('Invalid format specification: ''%s''.', substring(rest from '%.*')));
  end if;
  result := result || rest;
  return case when length(result) < 2048 then result else left(result, 2044) || '...' end;
end
$$;
comment on function tsql.format_message(text, text[], boolean[]) is
  'RAISERROR''s %d, %s and the like, as printf has them; at most 2,047 characters. numbers: which of the arguments are whole '
  'numbers and which texts; null where that is not known.';
create or replace function tsql.format_message(format_ text, arguments text[]) returns text
language sql immutable parallel safe return tsql.format_message(format_, arguments, '{}');

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
