-- ISNULL, COALESCE and CASE.

create or replace function tsql.late(value anyelement) returns anyelement
language plpgsql stable parallel safe
as $$ begin return value; end $$;
comment on function tsql.late(anyelement) is
$$Its argument. PostgreSQL calculates constants when it plans a query, but none with this function: those of a CASE fail only where
they are reached.$$;
