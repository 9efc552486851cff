-- Quotients with the digits of decimals, null if the digits are not known.

create or replace function tsql.divided(l numeric, r numeric, digits integer) returns numeric
language plpgsql immutable parallel safe
as $$
begin
  if l is null or r is null then
    return null;
  elsif digits is null then
    return tsql.undeclared_quotient(l, r);
  end if;
  return pg_catalog.numeric(tsql.quotient(l, r, digits % 100), ((digits / 100) << 16) + digits % 100 + 4);
end
$$;

-- by the types of the operands
do $$
declare
  of record;
begin
  for of in
    select format_type(oprleft, null) as l, format_type(oprright, null) as r, format_type(oprresult, null) as result,
      case provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end as volatility,
      oprresult = 'numeric'::regtype and oprleft = any (numbers) and oprright = any (numbers) as is_decimal
    from pg_operator
    join pg_proc on pg_proc.oid = oprcode,
      (select array['smallint', 'integer', 'bigint', 'numeric']::regtype[]) as exact (numbers)
    where oprname = '/' and oprnamespace = 'tsql'::regnamespace
      and (oprleft, oprright) <> ('numeric'::regtype, 'numeric'::regtype)
  loop
    execute format('create or replace function tsql.divided(l %s, r %s, digits integer) returns %s language sql %s'
      ' parallel safe return %s', of.l, of.r, of.result, of.volatility,
      case when of.is_decimal then 'tsql.divided(l::numeric, r::numeric, digits)' else '(l operator(tsql./) r)' end);
  end loop;
end
$$;
