create schema site;
grant usage on schema site to daq_writer, ringlog_owner;
create table site.entry (id integer);
grant insert on site.entry to daq_writer, ringlog_owner;
create function site.enter_alone(id integer) returns integer language plpgsql as $$
begin
  insert into site.entry values (id);
  return 0;
end $$;
create function site.enter(id integer) returns integer language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into site.entry values (id);
  return 0;
end $$;
grant create on schema site to ringlog_owner;
alter function site.enter owner to ringlog_owner;
grant execute on all functions in schema site to daq_writer;
