create role owns_a_site;
create schema recording authorization owns_a_site;
set role owns_a_site;
grant usage on schema recording to public;

create table recording.seen (place text, session_user_ text, current_user_ text, role_ text);
grant select, insert on recording.seen to public;
create function recording.write_down(place text) returns boolean language plpgsql as $$ begin
  insert into recording.seen values (place, session_user, current_user, current_setting('role'));
  return true;
end $$;
-- also where PostgreSQL wants a function that is immutable
create function recording.note(place text, of anyelement default null::integer) returns boolean
language plpgsql immutable as $$ begin return recording.write_down(place); end $$;
create function recording.trap() returns trigger language plpgsql as $$ begin
  perform recording.write_down(tg_argv[0]);
  return new;
end $$;

create domain recording.checked as integer check (recording.note('check of a domain', value));
create type recording.with_checked as (a recording.checked, b integer);
create function recording.with_default() returns integer language plpgsql as $$ begin
  perform recording.write_down('default of an argument');
  return 1;
end $$;
create function recording.to_row(integer) returns recording.with_checked language plpgsql as $$ begin
  perform recording.write_down('cast');
  return row (1, 2);
end $$;
create cast (integer as recording.with_checked) with function recording.to_row (integer) as implicit;
create function recording.compare(integer, integer) returns integer language plpgsql immutable as $$ begin
  perform recording.write_down('operator class');
  return btint4cmp($1, $2);
end $$;

create table recording.stored (
  a integer default recording.with_default() check (recording.note('check of a table', a)),
  b integer generated always as (case when recording.note('generated column', a) then 1 end) stored,
  c recording.checked default 1
);
create index on recording.stored ((case when recording.note('index', a) then a end));
create table recording.noted (noted boolean);
grant insert on recording.noted to public;
create trigger before before insert on recording.stored
  for each row execute function recording.trap('trigger');
create constraint trigger deferred after insert on recording.stored deferrable initially deferred
  for each row execute function recording.trap('deferred trigger');
create rule noted as on insert to recording.stored
  do also insert into recording.noted values (recording.write_down('rule'));
create policy noted on recording.stored
  using (recording.write_down('policy')) with check (recording.write_down('policy'));
alter table recording.stored enable row level security, force row level security;
grant select, insert on recording.stored to public;

create function recording.{name}_domain(p recording.checked) returns integer
{definer} as $$ begin perform recording.write_down('body'); return 0; end $$;
create function recording.{name}_row(r recording.with_checked) returns integer
{definer} as $$ begin perform recording.write_down('body'); return 0; end $$;
create function recording.{name}_default(p integer default recording.with_default()) returns integer
{definer} as $$ begin return 0; end $$;
create function recording.{name}_stores(p integer) returns integer
{definer} as $$ begin insert into recording.stored (a) values (p); return 0; end $$;
create function recording.{name}_out(p integer, out q recording.checked, out r integer)
{definer} as $$ begin q := p; end $$;
create function recording.{name}_any(p anyelement) returns integer
{definer} as $$ begin perform recording.write_down('polymorphic'); return 0; end $$;
create function recording.{name}_variadic(variadic p integer[]) returns integer
{definer} as $$ begin perform recording.write_down('variadic'); return 0; end $$;
create function recording.{name}_rows(p recording.checked) returns table (n integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$ select p $$;
reset role;
create operator class recording.compared for type integer using btree as
  operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >,
  function 1 recording.compare (integer, integer);
create index on recording.stored (a recording.compared);
-- among ringlog's own procedures, but a site's all the same
create function ringlog.{name}_stranger(p recording.checked) returns integer
{definer} as $$ begin perform recording.write_down('stranger'); return 0; end $$;
alter function ringlog.{name}_stranger owner to owns_a_site;
-- ringlog's owner's, with a type of a site
create function ringlog.{name}_with_type(p recording.checked) returns integer
{definer} as $$ begin return 0; end $$;
alter function ringlog.{name}_with_type owner to ringlog_owner;
notify ringlog_catalogue
