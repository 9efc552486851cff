-- What the clients of the compatibility tests call beside a facility's own procedures.

create schema client_compat;
grant usage on schema client_compat to daq_writer, daq_reader;

-- values of the types that rings do not have: 'some', 'null' or 'empty' ones
create function client_compat.compat_values(which varchar(10))
returns table (
  a_numeric numeric(12, 4),
  a_date date,
  a_time time(3),
  a_timestamp timestamp(6),
  a_bytea bytea,
  a_uuid uuid,
  a_text text
)
language sql
stable
as $$
  select -12345678.9012, date '2026-01-02', time '03:04:05.68', timestamp '2026-01-02 03:04:05.68',
    '\x00ff41'::bytea, uuid '01234567-89ab-cdef-0123-456789abcdef', 'Ω ' || repeat('lang ', 2000)
  where which = 'some'
  union all
  select null, null, null, null, null, null, null where which = 'null'
  union all
  select 0, date '1900-01-01', time '00:00', timestamp '1900-01-01 00:00',
    ''::bytea, uuid '00000000-0000-0000-0000-000000000000', ''
  where which = 'empty'
$$;

-- the results of a call
create function client_compat.compat_shown(a_numeric numeric(12, 4), a_date date, a_bytea bytea, a_text text)
returns table (shown text)
language sql
stable
as $$
  select concat_ws(
    '|',
    coalesce(a_numeric::text, 'null'),
    coalesce(a_date::text, 'null'),
    coalesce(encode(a_bytea, 'hex'), 'null'),
    coalesce(a_text, 'null')
  )
$$;

-- for bulk copy
create table client_compat.samples (id integer primary key, name varchar(40), size real, since timestamp(3));
create table client_compat.readings (id integer primary key, size real, since timestamp(3));
grant select, insert on client_compat.samples, client_compat.readings to daq_writer;

create function client_compat.compat_say(words varchar(40)) returns integer
language plpgsql
as $$ begin
  raise notice 'you say %', words;
  return 7;
end $$;

grant execute on all functions in schema client_compat to daq_writer, daq_reader;

notify ringlog_catalogue;
