-- Functions of every kind a client may call, beside those that a facility has.

-- a login whose password every character set has
create role plain login password 'plain' in role daq_reader;
grant plain to ringlog_gateway with inherit false, set true;

create schema gateway_test;
grant usage on schema gateway_test to daq_writer, daq_reader, ringlog_owner;
grant create on schema gateway_test to ringlog_owner;

create function gateway_test.echo(
  inout a_bit boolean default null,
  inout a_smallint smallint default null,
  inout an_int integer default null,
  inout a_bigint bigint default null,
  inout a_real real default null,
  inout a_float double precision default null,
  inout a_numeric numeric default null,
  inout a_varchar varchar(40) default null,
  inout a_text text default null,
  inout a_bytea bytea default null,
  inout a_date date default null,
  inout a_time time default null,
  inout a_timestamp timestamp default null,
  inout a_timestamptz timestamptz default null,
  inout a_uuid uuid default null
)
language sql
immutable
as $$ select a_bit, a_smallint, an_int, a_bigint, a_real, a_float, a_numeric, a_varchar, a_text, a_bytea,
  a_date, a_time, a_timestamp, a_timestamptz, a_uuid $$;

create function gateway_test.echo_rows(
  a_bit boolean default null,
  a_smallint smallint default null,
  an_int integer default null,
  a_bigint bigint default null,
  a_real real default null,
  a_float double precision default null,
  a_numeric numeric(30, 10) default null,
  a_varchar varchar default null,
  a_text text default null,
  a_bytea bytea default null,
  a_date date default null,
  a_time time default null,
  a_timestamp timestamp default null,
  a_timestamptz timestamptz default null,
  a_uuid uuid default null
)
returns table (
  o_bit boolean,
  o_smallint smallint,
  o_int integer,
  o_bigint bigint,
  o_real real,
  o_float double precision,
  o_numeric numeric,
  o_varchar varchar,
  o_text text,
  o_bytea bytea,
  o_date date,
  o_time time,
  o_timestamp timestamp,
  o_timestamptz timestamptz,
  o_uuid uuid
)
language sql
immutable
as $$ select a_bit, a_smallint, an_int, a_bigint, a_real, a_float, a_numeric, a_varchar, a_text, a_bytea,
  a_date, a_time, a_timestamp, a_timestamptz, a_uuid $$;

-- values as PostgreSQL writes them
create function gateway_test.numeric_of(words text) returns table (value numeric)
language sql
immutable
as $$ select words::numeric $$;

create function gateway_test.timestamp_of(words text) returns table (value timestamp)
language sql
immutable
as $$ select words::timestamp $$;

create function gateway_test.date_of(words text) returns table (value date)
language sql
immutable
as $$ select words::date $$;

-- a value as PostgreSQL shows it
create function gateway_test.shown(
  a_bit boolean default null,
  a_numeric numeric default null,
  a_date date default null,
  a_timestamp timestamp default null,
  a_timestamptz timestamptz default null
)
returns table (shown text)
language sql
stable
as $$ select coalesce(a_bit::text, a_numeric::text, a_date::text, a_timestamp::text, a_timestamptz::text) $$;

-- one value of each type, and a row of NULLs
create table gateway_test.types (
  a_bit boolean,
  a_smallint smallint,
  an_int integer,
  a_bigint bigint,
  a_real real,
  a_float double precision,
  a_numeric numeric(18, 4),
  a_varchar varchar(20),
  a_char char(5),
  a_text text,
  a_bytea bytea,
  a_date date,
  a_time time,
  a_timestamp timestamp,
  a_timestamptz timestamptz,
  a_uuid uuid
);
insert into gateway_test.types values (
  true, -32768, -2147483648, 9223372036854775807, 1.17549435e-38, 0.1, -12345678901234.5678, 'häuser', 'ab',
  'a text of any length', '\x0001ff', '1753-01-01', '23:59:59.5', '2024-02-29 12:34:56.123456',
  '2024-02-29 12:34:56.123456+09', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
);
insert into gateway_test.types default values;
grant select on gateway_test.types to daq_reader;

create function gateway_test.status(value integer) returns integer
language sql immutable as $$ select value $$;

create function gateway_test.small_status() returns smallint
language sql immutable as $$ select 7::smallint $$;

create function gateway_test.no_status() returns void
language sql as $$ $$;

create function gateway_test.one_value() returns text
language sql immutable as $$ select 'a value' $$;

create function gateway_test.many_rows(n integer) returns table (i integer, filler text)
language sql immutable as $$ select i, repeat('x', 100) from generate_series(1, n) as i $$;

create function gateway_test.whole_row(out r gateway_test.types)
language sql stable as $$ select t from gateway_test.types as t where t.a_bit $$;

-- a status, an output and rows are three kinds; an output beside a result set is none of PostgreSQL's
create function gateway_test.defaults(
  a integer, b integer default 20, c text default 'see', out said text
)
language sql immutable as $$ select concat_ws(' ', a, b, c) $$;

create function gateway_test.no_names(integer, text, out said text)
language sql immutable as $$ select concat_ws(' ', $1, $2) $$;

-- two composites with a name in common
create type gateway_test.point as (x real, y real, label varchar(10));
create type gateway_test.circle as (x real, radius real);
create function gateway_test.two_composites(p gateway_test.point, c gateway_test.circle, out said text)
language sql immutable as $$ select concat_ws(' ', p.x, p.y, p.label, c.x, c.radius) $$;

create function gateway_test.interval_text(i interval, out said text)
language sql immutable as $$ select i::text $$;

create function gateway_test.sum_of(numbers integer[], out total integer)
language sql immutable as $$ select sum(n)::integer from unnest(numbers) as n $$;

create domain gateway_test.positive as integer check (value > 0);
create function gateway_test.of_domain(p gateway_test.positive, out twice gateway_test.positive)
language sql immutable as $$ select p * 2 $$;

create procedure gateway_test.a_procedure(a integer, out b integer, inout c text)
language plpgsql as $$ begin b := a + 1; c := c || '!'; end $$;

create function gateway_test.say(words text) returns integer
language plpgsql as $$ begin raise notice '%', words; return 3; end $$;

create function gateway_test.complain(code text, words text default 'no')
returns integer language plpgsql as $$ begin raise exception '%', words using errcode = code; end $$;

create function gateway_test.rows_then_error() returns setof integer
language sql stable as $$ select 6 / (4 - i) from generate_series(1, 10) as i $$;

create function gateway_test.overloaded(a integer) returns integer language sql as $$ select 1 $$;
create function gateway_test.overloaded(a text) returns integer language sql as $$ select 2 $$;

-- what may not be called by those who may call the rest
create function gateway_test.forbidden() returns integer language sql as $$ select 1 $$;
revoke execute on function gateway_test.forbidden() from public;

-- who runs, and on which connection
create table gateway_test.journal (id serial primary key, entry text unique check (entry <> 'bad'), caller text);
alter table gateway_test.journal owner to ringlog_owner;
grant select on gateway_test.journal to daq_reader, daq_writer;

-- writing functions that join groups, as the installer's do: in schema ringlog, its owner's, SECURITY DEFINER, fixed search_path
create function ringlog.enter(entry text) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$ begin
  insert into gateway_test.journal (entry, caller) values (entry, session_user || ' ' || current_setting('role'));
  return 0;
end $$;
alter function ringlog.enter(text) owner to ringlog_owner;
revoke execute on function ringlog.enter(text) from public;
grant execute on function ringlog.enter(text) to daq_writer;

create function ringlog.enter_slowly(entry text, seconds double precision) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$ begin
  insert into gateway_test.journal (entry, caller) values (entry, session_user || ' ' || current_setting('role'));
  perform pg_sleep(seconds);
  return 0;
end $$;
alter function ringlog.enter_slowly(text, double precision) owner to ringlog_owner;
revoke execute on function ringlog.enter_slowly(text, double precision) from public;
grant execute on function ringlog.enter_slowly(text, double precision) to daq_writer;

-- says two things and then fails
create function ringlog.say_and_fail(entry text) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$ begin
  raise notice 'about to enter %', entry;
  insert into gateway_test.journal (entry) values (entry);
  raise warning 'entered';
  raise exception 'refused' using errcode = 'RL001';
end $$;
alter function ringlog.say_and_fail(text) owner to ringlog_owner;
revoke execute on function ringlog.say_and_fail(text) from public;

-- the same on the caller's own connection, since it is no definer's
grant insert on gateway_test.journal to daq_writer;
grant usage on sequence gateway_test.journal_id_seq to daq_writer;
create function gateway_test.enter_myself(entry text) returns integer
language plpgsql
as $$ begin
  insert into gateway_test.journal (entry, caller) values (entry, session_user || ' ' || current_setting('role'));
  return 0;
end $$;

-- all of what a group's outputs may be
create function ringlog.definer_echo(inout an_int integer, inout a_text text, inout a_real real)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$ begin
  an_int := an_int + 1;
end $$;
alter function ringlog.definer_echo(integer, text, real) owner to ringlog_owner;

grant execute on all functions in schema gateway_test to daq_reader, daq_writer;
grant execute on function ringlog.say_and_fail(text) to daq_writer;
revoke execute on function gateway_test.forbidden() from daq_reader, daq_writer;

notify ringlog_catalogue;
