-- Expressions of checks, defaults and computed columns.

-- An expression in PostgreSQL's SQL as T-SQL: operators and functions without their schema, convert for the functions that
-- convert, and no casts, which repeat the types of T-SQL. Literals stay as they are.
create function sys.shown_expression(expression text) returns text
language sql immutable
as $$
  select pg_catalog.string_agg(
    case when left(part.found[1], 1) = '''' then part.found[1] else (
      select pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.regexp_replace(
        part.found[1],
        'OPERATOR\(tsql\.([^)]+)\)', '\1', 'g'),
        '::(?:tsql\.)?(?:"[^"]+"|character varying|double precision|(?:timestamp|time)(?:\(\d\))? with(?:out)? time zone|\w+)'
        '(?:\(\d+(?:, ?\d+)?\))?(?:\[\])?', '', 'g'),
        '\mtsql\.to_(\w+)\(', 'convert(\1, ', 'g'),
        '\mtsql\.(?=\w)', '', 'g')
    ) end, '' order by part.position)
  from pg_catalog.regexp_matches(expression, '''(?:[^'']|'''')*''|[^'']+', 'g') with ordinality as part (found, position)
$$;

-- What an operator's operands or a condition's parts become, as SQL Server writes them; null for another form. `form`: each operand
-- as x. Kinds: 'a' a constant, column or the like, 's' a sum or bits, 'p' a product, 'c' a comparison, 'AND', 'OR', 'NOT'.
create function sys.canonical_part(form text, texts text[], kinds text[], out written text, out kind text)
language plpgsql immutable
as $$
declare
  operator constant text := substring(form from '^x (\S+) x$');
  enclosed constant text[] := array(
    select case
      when part.kind = 's' or part.kind = 'p' and (operator in ('*', '/', '%') or form in ('- x', '~ x'))
        or part.kind = 'OR' and form like '% AND %' or part.kind in ('AND', 'OR') and form = 'NOT x'
        or part.position > 1 and part.kind = substring(form from ' (AND|OR) ')
        then '(' || part.written || ')' else part.written end
    from unnest(texts, kinds) with ordinality as part (written, kind, position) order by part.position
  );
  is_logic constant boolean := form ~ '^(?:NOT x|x(?: AND x)+|x(?: OR x)+)$';
  equal text;
begin
  if form = 'x' then
    select texts[1], kinds[1] into written, kind;
  elsif exists (select from unnest(kinds) as part where is_logic <> (part in ('c', 'AND', 'OR', 'NOT'))) then
    return;
  elsif is_logic then
    kind := substring(form from 'AND|OR|NOT');
    written := case kind when 'NOT' then 'NOT ' || enclosed[1] else array_to_string(enclosed, ' ' || kind || ' ') end;
  elsif operator in ('=', '<>', '<', '>', '<=', '>=') then
    select enclosed[1] || operator || enclosed[2], 'c' into written, kind;
  elsif operator in ('+', '-', '&', '|', '^', '*', '/', '%') then
    select enclosed[1] || operator || enclosed[2], case when operator in ('*', '/', '%') then 'p' else 's' end into written, kind;
  elsif form ~ '^x IS (?:NOT )?NULL$' then
    select enclosed[1] || substr(form, 2), 'c' into written, kind;
  elsif form ~ '^LIKE x, x, (?:NULL|x)$' then
    select enclosed[1] || ' like ' || enclosed[2] || coalesce(' escape ' || enclosed[3] || ' ', ''), 'c' into written, kind;
  elsif form = '- x' then
    select ' -' || enclosed[1], 's' into written, kind;
  elsif form = '~ x' then
    select '~' || enclosed[1], 'a' into written, kind;
  elsif form ~ '^x (?:= ANY|<> ALL) \[x(?:, x)*\]$' then
    -- IN is a chain from its last value on
    equal := (
      select string_agg(enclosed[1] || '=' || part.written, ' OR ' order by part.position desc)
      from unnest(enclosed[2:]) with ordinality as part (written, position)
    );
    if form like 'x =%' then
      select equal, case cardinality(texts) when 2 then 'c' else 'OR' end into written, kind;
    else
      select 'NOT ' || case cardinality(texts) when 2 then equal else '(' || equal || ')' end, 'NOT' into written, kind;
    end if;
  end if;
end
$$;

-- Money and bytes as T-SQL writes them.
create function sys.own_literals(expression text) returns text
language sql immutable
as $$
  select regexp_replace(
    regexp_replace(expression, '\(([0-9.]+)::numeric\(19,4\)\)::tsql\.money', '$\1', 'g'), '''\\x([0-9a-f]*)''::bytea', '0x\1', 'g')
$$;

-- An expression over a relation's columns as SQL Server writes it ("([n]>(0))"); null if a part has no known form.
create function sys.canonical(expression text, relation oid) returns text
language plpgsql stable
as $$
declare
  types constant text := '::(?:tsql\.)?(?:"[^"]+"|character varying|double precision'
    '|(?:timestamp|time)(?:\(\d\))? with(?:out)? time zone|\w+)(?:\(\d+(?:, ?\d+)?\))?(?:\[\])?';
  token text;
  texts text[] := '{}';
  kinds text[] := '{}';
  written text;
  rest text := '(';
  part text[];
  numbers integer[];
  made record;
begin
  for token in
    select (regexp_matches(sys.own_literals(expression), format(
      '''(?:[^'']|'''')*''(?:%1$s)*|OPERATOR\(tsql\.[^)]+\)|%1$s|tsql\.(?:carry|is_like)\M|"(?:[^"]|"")*"|[A-Za-z_]\w*'
      '|0x[0-9a-f]*|\$?[0-9]+(?:\.[0-9]+)?|[<>=]+|\s+|.', types), 'g'))[1]
  loop
    written := case
      when token ~ '^0x' then '0x' || upper(substr(token, 3))
      when token ~ '^\$' then format('($%s)', round(substr(token, 2)::numeric, 4))
      when token ~ '^[0-9]' then token
      when token ~ '^''-?[0-9.]+''::(?:integer|bigint|smallint|numeric)' then split_part(token, '''', 2)
      when token ~ '^''(?:[^'']|'''')*''(?:::(?:text|character varying|character|bpchar)\M.*)?$'
        then substring(token from '^''(?:[^'']|'''')*''')
      when token ~ '^["a-z_]' then (
        select sys.quotename(sys.shown_column(attrelid, attnum, attname)) from pg_catalog.pg_attribute
        where attrelid = relation and attnum > 0 and not attisdropped
          and attname = case when token like '"%' then replace(btrim(token, '"'), '""', '"') else token end
      )
    end;
    if written ~ '^-?[0-9]' and written not like '0x%' then
      -- beyond int it is a decimal
      written := format(case when written !~ '\.' and abs(written::numeric) > 2147483647 then '(%s.)' else '(%s)' end, written);
    end if;
    if written is not null then
      texts := texts || written;
      kinds := kinds || 'a'::text;
      rest := rest || format('§%s§', cardinality(texts));
    elsif token ~ '^(?:tsql\.carry$|::)' then
      continue;
    elsif token = 'tsql.is_like' then
      rest := rest || 'LIKE';
    elsif token ~ '^(?:[''"a-z_]|NULL$)' and not (token = 'NULL' and rest ~ '(?: IS| NOT|LIKE.*,) $') then
      return null;
    else
      rest := rest || coalesce(substring(token from '^OPERATOR\(tsql\.(.*)\)$'), token);
    end if;
  end loop;
  rest := rest || ')';
  loop
    part := regexp_match(rest, '^(.*)\(([^()]*)\)(.*)$');
    exit when part is null;
    if part[2] ~ '^(?:ARRAY)?\[[^]]*\]$' then
      rest := part[1] || substr(part[2], strpos(part[2], '[')) || part[3];
      continue;
    end if;
    numbers := array(select one[1]::integer from regexp_matches(part[2], '§(\d+)§', 'g') as one);
    select * into made from sys.canonical_part(
      coalesce(substring(part[1] from 'LIKE$') || ' ', '')
        || regexp_replace(regexp_replace(part[2], '§\d+§', 'x', 'g'), '\s+', ' ', 'g'),
      array(select texts[number] from unnest(numbers) with ordinality as one (number, position) order by position),
      array(select kinds[number] from unnest(numbers) with ordinality as one (number, position) order by position));
    if made.written is null then
      return null;
    end if;
    texts := texts || made.written;
    kinds := kinds || made.kind;
    rest := format('%s§%s§%s', regexp_replace(part[1], 'LIKE$', ''), cardinality(texts), part[3]);
  end loop;
  return case when rest ~ '^§\d+§$' then '(' || texts[cardinality(texts)] || ')' end;
end
$$;

create function sys.expression_text(expression text, relation oid) returns text
language sql stable
as $$ select coalesce(sys.canonical(expression, relation), '(' || sys.shown_expression(expression) || ')') $$;

create function sys.check_text(of_constraint oid) returns text
language sql stable
as $$
  select coalesce(sys.canonical(found.expression, conrelid), sys.shown_expression(found.expression))
  from pg_catalog.pg_constraint
  cross join pg_catalog.pg_get_expr(conbin, conrelid) as found (expression)
  where oid = of_constraint
$$;

-- A default in T-SQL if it is a literal with conversions to the column's type, or the current time; any other one as
-- sys.shown_expression shows it.
create function sys.default_text(expression text) returns text
language sql stable
as $$
  select coalesce('(' || case
        when matched.found[2] is not null then 'getdate()'
        when matched.found[1] ~ '^0x' then '0x' || upper(substr(matched.found[1], 3))
        when matched.found[1] ~ '^\$' then format('($%s)', round(substr(matched.found[1], 2)::numeric, 4))
        when matched.found[1] ~ '^[-0-9]' then '(' || replace(matched.found[1], ' ', '') || ')'
        else matched.found[1]
      end || ')', sys.expression_text(expression, null))
  from (
    select pg_catalog.regexp_match(
      -- PostgreSQL shows -1 as a text
      pg_catalog.regexp_replace(sys.own_literals(expression), '''(-?[0-9.]+)''::(?:integer|bigint|smallint|numeric|double precision)', '\1'),
      '^\(*(?:tsql\.(?:(?:to|fitted)_[a-z0-9_]+|carry)\(\(*)*'
      '(?:(''(?:[^'']|'''')*''|0x[0-9a-f]*|\$?-? ?[0-9]+(?:\.[0-9]+)?|NULL)|(tsql\.getdate\(clock_timestamp\(\)\)))'
      '(?:\)|::[a-z ]+(?:\([0-9]+(?:,[0-9]+)?\))?[a-z ]*|, [0-9]+)*$'
    ) as found
  ) as matched
$$;
