-- Operators, aggregates and functions of case-insensitive texts (types/collations.sql).

do $do$
declare
  own constant text := current_user;
  of record;
  sign record;
  -- only names of pg_catalog: pg_dump restores indexes before it grants their owners the schema tsql
  key constant text := 'pg_catalog.casefold(pg_catalog.rtrim(%s::text, '' '') collate pg_catalog.pg_c_utf8) collate "C"';
begin
  if to_regtype('tsql.ci_varchar') is null then
    return;
  end if;
  create or replace function tsql.case_folded(value text) returns text
  language sql immutable strict parallel safe return casefold(value collate pg_c_utf8);

  -- a char keeps its trailing blanks when it is converted to varchar
  create or replace function tsql.padded(value tsql.ci_char) returns tsql.ci_varchar
  language sql immutable parallel safe return tsql.padded(value::bpchar)::tsql.ci_varchar;
  create or replace function tsql.ci_padded(value bpchar) returns tsql.ci_varchar
  language sql immutable parallel safe return tsql.padded(value)::tsql.ci_varchar;
  execute format('set local role %I', session_user);
  if not exists (select from pg_cast where castsource = 'bpchar'::regtype and casttarget = 'tsql.ci_varchar'::regtype) then
    create cast (tsql.ci_char as tsql.ci_varchar) with function tsql.padded(tsql.ci_char) as implicit;
    create cast (bpchar as tsql.ci_varchar) with function tsql.ci_padded(bpchar) as implicit;
  end if;
  execute format('set local role %I', own);

  for of in select * from (values ('ci_varchar', 'text'), ('ci_char', 'bpchar')) as types (name, base) loop
    execute format('create or replace function tsql.ci_compare(l tsql.%1$s, r tsql.%1$s) returns integer'
      ' language plpgsql immutable strict parallel safe as $$ begin'
      ' return pg_catalog.bttextcmp(%2$s, %3$s); end $$', of.name, format(key, 'l'), format(key, 'r'));
    execute format('create or replace function tsql.ci_hash(value tsql.%1$s) returns integer'
      ' language plpgsql immutable strict parallel safe as $$ begin'
      ' return pg_catalog.hashtext(%2$s); end $$', of.name, format(key, 'value'));
    -- not in SQL: PostgreSQL would inline the bodies, and an index is found only by the operators
    for sign in select * from (values ('=', 'eq', '=', '<>', 'eqsel', 'eqjoinsel'), ('<>', 'ne', '<>', '=', 'neqsel', 'neqjoinsel'),
      ('<', 'lt', '>', '>=', 'scalarltsel', 'scalarltjoinsel'), ('<=', 'le', '>=', '>', 'scalarlesel', 'scalarlejoinsel'),
      ('>', 'gt', '<', '<=', 'scalargtsel', 'scalargtjoinsel'), ('>=', 'ge', '<=', '<', 'scalargesel', 'scalargejoinsel')
    ) as signs (sign, name, commutator, negator, selects, joins)
    loop
      execute format('create or replace function tsql.%1$s(l tsql.%2$s, r tsql.%2$s) returns boolean'
        ' language plpgsql immutable strict parallel safe as $$ begin'
        ' return %4$s operator(pg_catalog.%3$s) %5$s; end $$',
        sign.name, of.name, sign.sign, format(key, 'l'), format(key, 'r'));
      if to_regoperator(format('tsql.%s(tsql.%2$s,tsql.%2$s)', sign.sign, of.name)) is null or not exists (
        select from pg_operator where oid = to_regoperator(format('tsql.%s(tsql.%2$s,tsql.%2$s)', sign.sign, of.name))
          and oprcode <> 0
      ) then
        execute format('create operator tsql.%1$s (function = tsql.%2$I, leftarg = tsql.%3$s, rightarg = tsql.%3$s,'
          ' commutator = operator(tsql.%4$s), negator = operator(tsql.%5$s), restrict = %6$s, join = %7$s%8$s)',
          sign.sign, sign.name, of.name, sign.commutator, sign.negator, sign.selects, sign.joins,
          case when sign.sign = '=' then ', hashes, merges' end);
      end if;
    end loop;
    call tsql.make_operator_class('tsql.' || of.name, of.name || '_order', 'tsql.ci_compare');
    if not exists (select from pg_opclass where opcintype = ('tsql.' || of.name)::regtype and opcname = of.name || '_hash') then
      execute format('set local role %I', session_user);
      execute format('create operator class tsql.%1$s_hash default for type tsql.%1$s using hash as'
        ' operator 1 tsql.=, function 1 tsql.ci_hash(tsql.%1$s)', of.name);
      execute format('set local role %I', own);
    end if;
    execute format('create or replace function tsql.lesser(l tsql.%1$s, r tsql.%1$s) returns tsql.%1$s'
      ' language sql immutable strict parallel safe return case when r operator(tsql.<) l then r else l end', of.name);
    execute format('create or replace function tsql.greater(l tsql.%1$s, r tsql.%1$s) returns tsql.%1$s'
      ' language sql immutable strict parallel safe return case when r operator(tsql.>) l then r else l end', of.name);
    execute format('create or replace aggregate tsql.min(tsql.%1$s) (sfunc = tsql.lesser, stype = tsql.%1$s,'
      ' sortop = operator(tsql.<), parallel = safe)', of.name);
    execute format('create or replace aggregate tsql.max(tsql.%1$s) (sfunc = tsql.greater, stype = tsql.%1$s,'
      ' sortop = operator(tsql.>), parallel = safe)', of.name);
  end loop;

  -- functions that search: both texts are folded
  for of in select * from unnest('{is_like,is_wide_like}'::text[]) as likes (name) loop
    execute format('create or replace function tsql.%1$s(value tsql.ci_varchar, pattern tsql.ci_varchar, escape_ tsql.ci_varchar)'
      ' returns boolean language sql immutable parallel safe return tsql.%1$s(tsql.case_folded(value::text),'
      ' tsql.case_folded(pattern::text), tsql.case_folded(escape_::text))', of.name);
  end loop;
  create or replace function tsql.charindex(wanted tsql.ci_varchar, value tsql.ci_varchar) returns integer
  language sql immutable parallel safe
  return tsql.charindex(tsql.case_folded(wanted::text), tsql.case_folded(value::text));
  create or replace function tsql.charindex(wanted tsql.ci_varchar, value tsql.ci_varchar, start_ integer) returns integer
  language sql immutable parallel safe
  return tsql.charindex(tsql.case_folded(wanted::text), tsql.case_folded(value::text), start_);
  create or replace function tsql.patindex(pattern tsql.ci_varchar, value tsql.ci_varchar) returns integer
  language sql immutable parallel safe
  return tsql.patindex(tsql.case_folded(pattern::text), tsql.case_folded(value::text));
  create or replace function tsql.replace(value tsql.ci_varchar, old tsql.ci_varchar, new tsql.ci_varchar)
  returns tsql.ci_varchar language plpgsql immutable strict parallel safe
  as $$
  declare
    searched text := tsql.case_folded(value::text);
    wanted constant text := tsql.case_folded(old::text);
    rest text := value;
    replaced text := '';
    position integer;
  begin
    loop
      position := case wanted when '' then 0 else strpos(searched, wanted) end;
      exit when position = 0;
      replaced := replaced || pg_catalog.left(rest, position - 1) || new::text;
      rest := substr(rest, position + length(wanted));
      searched := substr(searched, position + length(wanted));
    end loop;
    return replaced || rest;
  end
  $$;
  create or replace function tsql.string_split(whole tsql.ci_varchar, separator tsql.ci_varchar)
  returns table ("value" tsql.ci_varchar) language sql immutable parallel safe
  as $$
    select parts.part::tsql.ci_varchar
    from tsql.string_split(tsql.replace(whole, separator, separator)::text, separator::text) as parts (part)
  $$;
  create or replace function tsql.string_split_with_ordinal(whole tsql.ci_varchar, separator tsql.ci_varchar)
  returns table ("value" tsql.ci_varchar, "ordinal" bigint) language sql immutable parallel safe
  as $$ select * from tsql.string_split(whole, separator) with ordinality $$;
  create or replace function tsql.str_replace(value tsql.ci_varchar, old tsql.ci_varchar, new tsql.ci_varchar)
  returns tsql.ci_varchar language sql immutable parallel safe
  return case when value is not null and old is not null then tsql.replace(value, old, coalesce(new, '')) end;

  -- all other functions of texts, except those that search in another way, which are refused
  for of in
    select p.proname as name, p.provolatile as volatility,
      string_agg(concat_ws(' ', quote_ident(nullif(p.proargnames[a.position], '')),
        case a.type when 'text'::regtype then 'tsql.ci_varchar' else format_type(a.type, null) end), ', '
        order by a.position) as takes,
      string_agg(case a.type when 'text'::regtype then format('$%s::text', a.position) else '$' || a.position end, ', '
        order by a.position) as given,
      case p.prorettype when 'text'::regtype then 'tsql.ci_varchar' else format_type(p.prorettype, null) end as gives
    from pg_proc p
    cross join unnest(p.proargtypes::oid[]) with ordinality as a (type, position)
    where p.pronamespace = 'tsql'::regnamespace and p.prokind = 'f' and not p.proretset and p.pronargdefaults = 0
      and p.prorettype not in ('void'::regtype, 'trigger'::regtype) and 'text'::regtype = any (p.proargtypes::oid[])
      and not p.proname = any ('{is_like,is_wide_like,charindex,patindex,replace,str_replace,translate,trim,case_folded,converted_for}')
      -- those of 1.0.0, in an upgraded database
      and not p.proname = any ('{folded,with_case,of_any_collation,of_no_case,text_of_digits}')
      and p.oid not in (select oprcode from pg_operator)
    group by p.oid
  loop
    execute format('create or replace function tsql.%I(%s) returns %s language sql %s parallel safe as %L', of.name, of.takes,
      of.gives, case of.volatility when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
      format('select tsql.%I(%s)::%s', of.name, of.given, of.gives));
  end loop;
  -- those of any value would accept a char as well
  for of in select * from unnest('{len,datalength,json_of}'::text[]) as functions (name) loop
    execute format('create or replace function tsql.%I(value tsql.ci_char) returns %s language sql immutable parallel safe'
      ' return tsql.%1$I(value::bpchar)', of.name,
      (select format_type(prorettype, null) from pg_proc where oid = to_regprocedure(format('tsql.%I(text)', of.name))));
  end loop;
  create or replace function tsql.ordered(value tsql.ci_char) returns tsql.ci_char
  language sql immutable parallel safe return value;
  create or replace function tsql.quotename(value tsql.ci_varchar, quote tsql.ci_varchar default '[') returns tsql.ci_varchar
  language sql immutable strict parallel safe return tsql.quotename(value::text, quote::text)::tsql.ci_varchar;

  -- a text compared or combined with a value of another type is converted to that
  for of in
    select o.oprname as sign, p.proname as name, l.type as l, r.type as r, format_type(o.oprresult, null) as result,
      p.provolatile as volatility
    from pg_operator o
    join pg_proc p on p.oid = o.oprcode
    cross join lateral format_type(o.oprleft, null) as l (type)
    cross join lateral format_type(o.oprright, null) as r (type)
    where o.oprnamespace = 'tsql'::regnamespace and o.oprleft <> 0 and 'text' in (l.type, r.type)
      and (l.type, r.type) <> ('text', 'text')
      and not array['character', 'character varying', 'sys.sysname'] && array[l.type, r.type]
  loop
    call tsql.make_operator(of.sign, of.name, case of.l when 'text' then 'tsql.ci_varchar' else of.l end,
      case of.r when 'text' then 'tsql.ci_varchar' else of.r end, of.result,
      format('(%s operator(tsql.%s) %s)', case of.l when 'text' then 'l::text' else 'l' end, of.sign,
        case of.r when 'text' then 'r::text' else 'r' end),
      case of.volatility when 'i' then 'immutable' else 'stable' end);
  end loop;
  for of in select * from (values ('+', 'add'), ('+|', 'sybase_add')) as signs (sign, name) loop
    call tsql.make_operator(of.sign, of.name, 'tsql.ci_varchar', 'tsql.ci_varchar', 'tsql.ci_varchar',
      format('(l::text operator(tsql.%s) r::text)::tsql.ci_varchar', of.sign));
  end loop;
end
$do$;
