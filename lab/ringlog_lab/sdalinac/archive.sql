-- The archive of Control System Studio in PostgreSQL: channels, and one narrow table of samples.
create schema css;
create table css.channel (channel_id bigint primary key, name varchar(100) not null unique);
create table css.severity (severity_id bigint primary key, name varchar(100) not null unique);
create table css.status (status_id bigint primary key, name varchar(100) not null unique);
insert into css.channel select n, 'channel ' || n from generate_series(1, 200) as n;
insert into css.severity values (1, 'NO_ALARM'), (2, 'MINOR'), (3, 'MAJOR'), (4, 'INVALID');
insert into css.status values (1, 'NO_ALARM'), (2, 'HIGH'), (3, 'HIHI'), (4, 'LOW'), (5, 'LOLO');

-- Plain, and with the keys that say that every sample's channel, severity and status exist.
create table css.plain (
  channel_id bigint not null,
  smpl_time timestamp not null,
  nanosecs bigint not null,
  severity_id bigint not null,
  status_id bigint not null,
  num_val integer,
  float_val double precision,
  str_val varchar(120),
  datatype char(1) default ' ',
  array_val bytea
);
create table css.keys (
  like css.plain including defaults,
  foreign key (channel_id) references css.channel on delete cascade,
  foreign key (severity_id) references css.severity on delete cascade,
  foreign key (status_id) references css.status on delete cascade
);
create index on css.plain (channel_id, smpl_time, nanosecs);
create index on css.keys (channel_id, smpl_time, nanosecs);

-- Partitions by inheritance: a trigger sends each row to the table of its week, and makes that table.
create table css.inherited (like css.plain including defaults);
create table css.keys_inherited (like css.plain including defaults);
create function css.to_its_week() returns trigger language plpgsql as $$
declare
  week timestamp := date_trunc('week', new.smpl_time);
  part text := tg_table_name || to_char(week, '_IYYY_IW');
begin
  if to_regclass('css.' || part) is null then
    execute format(
      'create table css.%I (check (smpl_time >= %L and smpl_time < %L)) inherits (css.%I)',
      part, week, week + interval '1 week', tg_table_name);
    execute format('create index on css.%I (channel_id, smpl_time, nanosecs)', part);
    if tg_table_name like 'keys%' then
      execute format(
        'alter table css.%I'
        '  add foreign key (channel_id) references css.channel on delete cascade,'
        '  add foreign key (severity_id) references css.severity on delete cascade,'
        '  add foreign key (status_id) references css.status on delete cascade', part);
    end if;
  end if;
  execute format('insert into css.%I select ($1).*', part) using new;
  return null;
end $$;
create trigger to_its_week before insert on css.inherited for each row execute function css.to_its_week();
create trigger to_its_week before insert on css.keys_inherited for each row execute function css.to_its_week();

-- Partitions as PostgreSQL declares them since version 10: a year of weeks, and one for all other times.
create table css.declared (like css.plain including defaults) partition by range (smpl_time);
create table css.keys_declared (
  like css.plain including defaults,
  foreign key (channel_id) references css.channel on delete cascade,
  foreign key (severity_id) references css.severity on delete cascade,
  foreign key (status_id) references css.status on delete cascade
) partition by range (smpl_time);
do $$
declare
  week timestamp;
  parent text;
begin
  foreach parent in array array['declared', 'keys_declared'] loop
    for week in select generate_series(
        date_trunc('week', now() at time zone 'UTC') - interval '53 weeks',
        date_trunc('week', now() at time zone 'UTC') + interval '1 week', interval '1 week') loop
      execute format(
        'create table css.%I partition of css.%I for values from (%L) to (%L)',
        parent || to_char(week, '_IYYY_IW'), parent, week, week + interval '1 week');
    end loop;
    execute format('create table css.%I partition of css.%I default', parent || '_else', parent);
    execute format('create index on css.%I (channel_id, smpl_time, nanosecs)', parent);
  end loop;
end $$;
