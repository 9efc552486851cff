-- What the tests of many clients call and read, apart from the facility.

create schema call_forms;
grant usage on schema call_forms to daq_writer, daq_reader;

create table call_forms.things (id integer primary key, name varchar(40), size real, since timestamp, good boolean);
grant select, insert, update, delete on call_forms.things to daq_writer;
grant select on call_forms.things to daq_reader;

create function call_forms.rows(n integer) returns table (i integer, v varchar(20), f double precision)
language sql stable as $$ select g, 'row ' || g, g / 2.0 from generate_series(1, n) as g $$;

create function call_forms.outs(a integer, inout b varchar(30), out c double precision, out d timestamp)
language plpgsql as $$ begin
  raise notice 'a is %', a;
  b := b || '!';
  c := a * 1.5;
  d := '2024-02-03 04:05:06.123';
end $$;

create function call_forms.stat(a integer) returns integer
language plpgsql as $$ begin
  if a < 0 then raise exception 'negative %', a; end if;
  return a;
end $$;

grant execute on all functions in schema call_forms to daq_writer, daq_reader;

notify ringlog_catalogue;
