create or replace function ringlog.condition_steps(condition text)
returns table (step text, signal text, operator text, number double precision, word text, place integer)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  -- blanks; a bracket; an operator; a text; a name in quotes; a number, a name or a word
  tokens constant text := $pattern$^(\s+|[()]|<=|>=|<>|!=|[<>=]|'(?:[^']|'')*'|"(?:[^"]|"")+"|[^\s()<>=!'"]+)$pattern$;
  a_number constant text := '^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$';
  words text[] := '{}';
  positions integer[] := '{}';
  waiting text[] := '{}';
  needs_operand boolean := true;
  at integer := 1;
  token text;
  wanted text;
begin
  if condition is null or length(condition) > 10000 then
    raise exception 'the condition must be a text of at most 10000 characters' using errcode = 'invalid_parameter_value';
  end if;
  while at <= length(condition) loop
    token := (regexp_match(substr(condition, at), tokens))[1];
    if token is null then
      raise exception 'condition, character %: % is not understood', at, quote_literal(substr(condition, at, 20))
        using errcode = 'syntax_error', hint = 'Texts are in single quotes, names with blanks in double quotes.';
    end if;
    if token !~ '^\s' then
      words := words || token;
      positions := positions || at;
    end if;
    at := at + length(token);
  end loop;
  words := words || ''::text;
  positions := positions || length(condition) + 1;
  at := 1;
  <<tokens>>
  while at <= cardinality(words) loop
    token := words[at];
    place := positions[at];
    wanted := null;
    case
      when needs_operand and token ~* '^(not|\()$' then
        waiting := lower(token) || waiting;
      when needs_operand and token ~* '^(and|or|[()<>=!''].*|)$' then
        wanted := 'the name of a signal';
      when needs_operand then
        if words[at + 1] !~ '^[<>=!]' then
          at := at + 1;
          wanted := 'one of = <> < <= > >=';
        elsif words[at + 2] !~ a_number and words[at + 2] !~ '^''' then
          at := at + 2;
          wanted := 'a number, or a text in single quotes';
        else
          step := 'compare';
          signal := case when token ~ '^"' then replace(substr(token, 2, length(token) - 2), '""', '"') else token end;
          operator := replace(words[at + 1], '!=', '<>');
          number := case when words[at + 2] ~ a_number then words[at + 2]::double precision end;
          word := case when number is null then replace(substr(words[at + 2], 2, length(words[at + 2]) - 2), '''''', '''') end;
          if word is not null and operator not in ('=', '<>') then
            at := at + 1;
            wanted := '= or <> before a text';
          else
            return next;
            at := at + 2;
            needs_operand := false;
          end if;
        end if;
      when token ~* '^(and|or|\)|)$' then
        -- those that bind more tightly come before
        while waiting[1] = 'not' or waiting[1] = 'and' or (waiting[1] = 'or' and lower(token) <> 'and') loop
          step := waiting[1];
          waiting := waiting[2:];
          signal := null; operator := null; number := null; word := null;
          return next;
        end loop;
        if token = ')' and waiting[1] = '(' then
          waiting := waiting[2:];
        elsif token = ')' or (token = '' and waiting[1] = '(') then
          wanted := case when token = ')' then 'and, or, or the end' else ')' end;
        elsif token <> '' then
          waiting := lower(token) || waiting;
          needs_operand := true;
        end if;
      else
        wanted := 'and, or, ) or the end';
    end case;
    if wanted is not null then
      raise exception 'condition, character %: % is expected, not %', positions[at], wanted,
        case words[at] when '' then 'the end' else quote_literal(left(words[at], 40)) end
        using errcode = 'syntax_error', hint = 'A condition is as: SR:CURRENT > 10 and not (SR:MODE = ''user'' or SR:GAP <= 1.5)';
    end if;
    at := at + 1;
  end loop;
end
$$;
comment on function ringlog.condition_steps is
$$A condition in the order of its evaluation: the comparisons of a signal with a number or a text, and `and`, `or` (of the last two
results) and `not`. `not` binds more tightly than `and`, `and` than `or`. `place` is the character of the condition. Error: a text
that is no condition, with the place (42601).$$;
grant execute on function ringlog.condition_steps to daq_reader, daq_table_reader;
