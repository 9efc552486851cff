-- T-SQL's types and functions that differ from PostgreSQL's. Callers use qualified names.

create or replace function tsql.fail(number integer, message text) returns void
language plpgsql immutable
as $$
begin
  raise exception using errcode = 'S' || lpad(number::text, 4, '0'), message = message;
end
$$;
comment on function tsql.fail(integer, text) is
  'Raises T-SQL''s error of this number, up to 9999: SQLSTATE is S and the four digits.';

create or replace function tsql.refused(number integer, message text, type_ anyelement) returns anyelement
language plpgsql immutable
as $$
begin
  perform tsql.fail(number, message);
  return null;
end
$$;
comment on function tsql.refused(integer, text, anyelement) is
$$The same in an expression of any type: the body of functions and operators that T-SQL does not have. PostgreSQL raises
the error when it plans the query, hence also without any row.$$;

do $$
begin
  -- columns of types without a counterpart in PostgreSQL
  if to_regtype('tsql.money') is null then
    create domain tsql.money as numeric(19, 4)
      constraint money_range check (value between -922337203685477.5808 and 922337203685477.5807);
    create domain tsql.smallmoney as numeric(10, 4)
      constraint smallmoney_range check (value between -214748.3648 and 214748.3647);
    create domain tsql.tinyint as smallint
      constraint tinyint_range check (value between 0 and 255);
    -- a value for such a column is rounded to its digits
    create domain tsql.datetime as timestamp(4)
      constraint datetime_step check (
        extract(year from value) >= 1753
        and extract(microseconds from value)::bigint % 10000 in (0, 3000, 7000)
      );
    create domain tsql.smalldatetime as timestamp(1)
      constraint smalldatetime_step check (extract(microseconds from value)::bigint = 0);
    create domain tsql.usmallint as integer
      constraint usmallint_range check (value between 0 and 65535);
    create domain tsql.uint as bigint
      constraint uint_range check (value between 0 and 4294967295);
    create domain tsql.ubigint as numeric(20, 0)
      constraint ubigint_range check (value between 0 and 18446744073709551615);
  end if;
end
$$;
comment on domain tsql.datetime is 'Steps of 1/300 s, shown as .000, .003 and .007.';
