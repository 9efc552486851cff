-- Made from gateway/tsql/src/facts/errors.rs, where these facts stand: UPDATE_CASES=1 cargo test -p tsql --test facts
-- writes this file anew.

create or replace function tsql.error_number(sqlstate text)
returns integer
language sql
immutable
as $$
  select case
    when sqlstate ~ '^S\d{4}$' then substr(sqlstate, 2)::integer
    when sqlstate in ('21000') then 512
    when sqlstate in ('22001') then 8152
    when sqlstate in ('22003') then 8115
    when sqlstate in ('22012') then 8134
    when sqlstate in ('22007', '22008', '22023', '22P02', '22P03') then 8114
    when sqlstate in ('23502') then 515
    when sqlstate in ('23503', '23514', '23P01') then 547
    when sqlstate in ('23505') then 2601
    when sqlstate in ('25006') then 3906
    when sqlstate in ('28000', '28P01') then 18456
    when sqlstate in ('34000') then 16916
    when sqlstate in ('3D000', '3F000') then 911
    when sqlstate in ('40001', '40P01') then 1205
    when sqlstate in ('42501') then 229
    when sqlstate in ('428C9') then 544
    when sqlstate in ('42P03') then 16905
    when sqlstate in ('42601') then 102
    when sqlstate in ('42702') then 209
    when sqlstate in ('42703') then 207
    when sqlstate in ('42710', '42723', '42P07') then 2714
    when sqlstate in ('42803') then 8120
    when sqlstate in ('42804', '42846') then 257
    when sqlstate in ('42883') then 2812
    when sqlstate in ('42P01') then 208
    when sqlstate in ('53100') then 1105
    when sqlstate in ('53300') then 17809
    when sqlstate in ('55P03') then 1222
    when sqlstate in ('57014') then 3617
    when sqlstate in ('57P01') then 6005
    else 50000
  end
$$;

comment on function tsql.error_number(text) is
$$The number legacy code knows a SQLSTATE by; 50000 where it has none. S0245 is T-SQL's own 245.$$;


create or replace function tsql.own_state(sqlstate text, message text, table_ text, constraint_ text, sybase boolean)
returns text
language sql
immutable
as $$
  select case
    when sqlstate = '21000' and starts_with(message, 'MERGE command cannot affect row a second time') then 'S8672'
    when sqlstate = '23505' and starts_with(message, 'could not create unique index') then 'S1505'
    when sqlstate = '42704' and starts_with(message, 'constraint "') then 'S3728'
    when sqlstate = '42883' and starts_with(message, 'operator does not exist') then 'S0402'
    when constraint_ = 'smallmoney_range' then 'S8115'
    when constraint_ = 'tinyint_range' then 'S0220'
    when not sybase and sqlstate = '23505' and constraint_ <> ''
        and not starts_with(constraint_, table_ || '.')
      then 'S2627'
    else sqlstate
  end
$$;

comment on function tsql.own_state(text, text, text, text, boolean) is
$$A SQLSTATE, or that of a number T-SQL has for an error of this text or constraint: a row that MERGE meets twice, an
operator that there is none of, a value beyond a type, and, unless in ASE, a row that is there already by a key or a
UNIQUE constraint. Indexes that T-SQL has made are named by their table first.$$;

-- as procedures of earlier versions ask
create or replace function tsql.own_state(sqlstate text, table_ text, constraint_ text, sybase boolean)
returns text
language sql
immutable
as $$ select tsql.own_state(sqlstate, '', table_, constraint_, sybase) $$;


create or replace function tsql.error_severity(number integer)
returns integer
language sql
immutable
as $$
  select case number
    when 2601 then 14
    when 18456 then 14
    when 1205 then 13
    when 229 then 14
    when 102 then 15
    when 1105 then 17
    when 17809 then 20
    when 3617 then 11
    when 2627 then 14
    else 16
  end
$$;

comment on function tsql.error_severity(integer) is
$$The severity of an error that PostgreSQL has raised.$$;


create or replace function tsql.ends_more(number integer)
returns boolean
language sql
immutable
as $$
  select number between 100 and 199
    or number between 206 and 209
    or number = 213
    or number = 217
    or number between 241 and 242
    or number between 244 and 245
    or number = 248
    or number = 257
    or number = 260
    or number = 911
    or number = 1205
    or number = 2715
    or number = 3609
    or number = 3930
    or number = 8114
    or number = 8120
    or number = 8623
$$;

comment on function tsql.ends_more(integer) is
$$Whether an error of T-SQL's own ends more than its statement.$$;


create or replace function tsql.ends_its_statement(sqlstate text, detail text)
returns boolean
language sql
immutable
as $$
  select case
    -- THROW ends everything; what is wrong with a call only the call
    when sqlstate = 'TS001' then split_part(detail, ' ', 1)::integer < 50000
      and split_part(detail, ' ', 2)::integer < 20
    when sqlstate ~ '^S\d{4}$' then not tsql.ends_more(substr(sqlstate, 2)::integer)
    when sqlstate in ('22007', '22008', '22023', '22P02', '22P03', '3D000', '3F000', '40001', '40P01', '42601', '42702', '42703', '42803', '42804', '42846', '42883', '42P01', '57014', '57P01') then false
    when sqlstate in ('21000', '22001', '22003', '22012', '23502', '23503', '23514', '23P01', '23505', '25006', '28000', '28P01', '34000', '42501', '428C9', '42P03', '42710', '42723', '42P07', '53100', '53300', '55P03') then true
    else sqlstate not like '42%'
  end
$$;

comment on function tsql.ends_its_statement(text, text) is
$$Whether an error ends its statement only, so that a procedure goes on after it: constraints, duplicate keys,
numbers and texts that do not fit, division by zero, missing rights, errors that a called function raises. Others
(no such object, a text that is no number, a deadlock, THROW) end the batch, in T-SQL as here. detail: of TS001.$$;


create or replace function tsql.ends_its_batch(sqlstate text)
returns boolean
language sql
immutable
as $$
  select sqlstate in ('40001', '40P01')
    or (sqlstate like '42%' and sqlstate not in ('21000', '22001', '22003', '22012', '23502', '23503', '23514', '23P01', '23505', '25006', '28000', '28P01', '34000', '42501', '428C9', '42P03', '42710', '42723', '42P07', '53100', '53300', '55P03'))
$$;

comment on function tsql.ends_its_batch(text) is
$$Whether an error is none for the CATCH block beside it: a deadlock, whose victim is the whole transaction, and
names that are wrong, which T-SQL finds before it runs anything.$$;
