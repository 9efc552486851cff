-- PostgreSQL's current counts: two samples make sp_sysmon's report.
create function sys.counters() returns table (section text, item text, value numeric)
language plpgsql
as $$
declare
  version constant integer := current_setting('server_version_num')::integer;
begin
  -- otherwise a transaction keeps seeing the same counts
  perform pg_catalog.pg_stat_clear_snapshot();
  return query
  select 'transaction', counted.item, counted.value::numeric
  from pg_catalog.pg_stat_database as known
  cross join lateral (values
    ('Committed', known.xact_commit),
    ('Rolled back', known.xact_rollback),
    ('Deadlocks', known.deadlocks),
    ('Rows inserted', known.tup_inserted),
    ('Rows updated', known.tup_updated),
    ('Rows deleted', known.tup_deleted),
    ('Rows returned', known.tup_returned)
  ) as counted (item, value)
  where known.datname = current_database();

  return query
  select 'cache', counted.item, counted.value::numeric
  from pg_catalog.pg_stat_database as known
  cross join lateral (values ('found', known.blks_hit), ('read', known.blks_read)) as counted (item, value)
  where known.datname = current_database();

  return query
  select 'wal', counted.item, counted.value
  from pg_catalog.pg_stat_wal as known
  cross join lateral (values
    ('records', known.wal_records::numeric), ('pages', known.wal_fpi::numeric), ('bytes', known.wal_bytes)
  ) as counted (item, value);

  -- pg_stat_io: operations since PostgreSQL 16, bytes and the log since 18
  if version >= 180000 then
    return query execute
      'select ''io'', what || '' '' || verb, sum(value) from (
         select case when object = ''wal'' then ''log'' else ''table'' end as what, counted.verb, counted.value
         from pg_catalog.pg_stat_io
         cross join lateral (values
           (''write bytes'', write_bytes), (''write bytes'', extend_bytes), (''read bytes'', read_bytes),
           (''writes'', writes::numeric), (''writes'', extends::numeric), (''reads'', reads::numeric),
           (''syncs'', fsyncs::numeric)
         ) as counted (verb, value)
         where object in (''relation'', ''wal'') and context <> ''init''
       ) as operations
       group by what, verb';
  elsif version >= 160000 then
    return query execute
      'select ''io'', ''table '' || counted.verb, sum(counted.value)
       from pg_catalog.pg_stat_io
       cross join lateral (values
         (''write bytes'', (coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes::numeric),
         (''read bytes'', reads * op_bytes::numeric),
         (''writes'', (coalesce(writes, 0) + coalesce(extends, 0))::numeric), (''reads'', reads::numeric),
         (''syncs'', fsyncs::numeric)
       ) as counted (verb, value)
       where object = ''relation''
       group by counted.verb';
  end if;
  if version between 140000 and 179999 then
    return query execute
      'select ''io'', counted.item, counted.value::numeric
       from pg_catalog.pg_stat_wal
       cross join lateral (values
         (''log write bytes'', wal_bytes), (''log writes'', wal_write::numeric), (''log syncs'', wal_sync::numeric)
       ) as counted (item, value)';
  end if;

  return query execute
    'select ''checkpoint'', counted.item, counted.value::numeric from '
    || case when version >= 170000 then
        'pg_catalog.pg_stat_checkpointer cross join lateral (values
           (''By time'', num_timed), (''Asked for'', num_requested), (''Pages written'', buffers_written)
         ) as counted (item, value)'
      else
        'pg_catalog.pg_stat_bgwriter cross join lateral (values
           (''By time'', checkpoints_timed), (''Asked for'', checkpoints_req), (''Pages written'', buffers_checkpoint)
         ) as counted (item, value)'
      end;

  return query
  select 'table ' || counted.verb, sys.shown_table(known.relid), sum(counted.value)
  from pg_catalog.pg_stat_all_tables as known
  cross join lateral (values
    ('inserted', known.n_tup_ins), ('updated', known.n_tup_upd), ('deleted', known.n_tup_del)
  ) as counted (verb, value)
  where known.schemaname not in ('pg_catalog', 'information_schema', 'pg_toast')
  group by 1, 2;

  return query
  select 'function ' || counted.verb, known.schemaname || '.' || known.funcname, sum(counted.value)
  from pg_catalog.pg_stat_user_functions as known
  cross join lateral (values ('calls', known.calls::numeric), ('ms', known.total_time::numeric)) as counted (verb, value)
  group by 1, 2;
end
$$;

create function sys.shown_table(relation oid) returns text
language sql stable
as $$
  -- a partition counts for its table, and that of a log is known by the log's name
  select
    case relations.relnamespace when 'weeks'::regnamespace then 'log' else relations.relnamespace::regnamespace::text end
      || '..' || relations.relname
  from pg_catalog.pg_class as relations
  where relations.oid = coalesce(pg_catalog.pg_partition_root(relation), relation)
$$;

create function sys.sp_sysmon("interval" text, section text default null) returns integer
language plpgsql
as $$
declare
  parts constant text[] := regexp_match("interval", '^(\d\d):([0-5]\d):([0-5]\d)$');
  sections constant text[] := array['xactsum', 'diskio', 'dcache', 'recovery', 'tables', 'procs', 'netio', 'commits'];
  wanted constant text := lower(section);
  begun timestamptz;
  before jsonb;
  -- the counts of the interval
  counted jsonb;
  seconds numeric;
  committed numeric;
  part record;
  rows refcursor;
begin
  if parts is null then
    raise exception 'sp_sysmon: the interval ''%'' is not of the form ''hh:mm:ss''.', "interval"
      using errcode = 'invalid_parameter_value';
  end if;
  if wanted <> all (sections) then
    raise exception 'sp_sysmon: there is no section ''%'': there are %.', section, array_to_string(sections, ', ')
      using errcode = 'invalid_parameter_value';
  end if;

  begun := clock_timestamp();
  select jsonb_object_agg(counters.section || '/' || counters.item, counters.value) into before
  from sys.counters() as counters;
  perform pg_catalog.pg_sleep_for("interval"::interval);
  select jsonb_agg(jsonb_build_object(
    'section', counters.section,
    'item', counters.item,
    'count', counters.value - coalesce((before ->> (counters.section || '/' || counters.item))::numeric, 0)
  )) into counted
  from sys.counters() as counters;
  seconds := round(extract(epoch from clock_timestamp() - begun), 3);
  committed := sys.counted(counted, 'transaction', 'Committed');
  raise notice 'sp_sysmon: % s from % on, % transactions committed', seconds,
    to_char(begun, 'YYYY-MM-DD HH24:MI:SS'), committed;

  for part in
    select listed.title, array_agg(listed.item order by listed.number) as items,
      array_agg(sys.counted(counted, listed.kind, listed.counter) / listed.unit order by listed.number) as counts
    from (values
      (1, 'xactsum', 'Transactions', 'Committed', 'transaction', 'Committed', 1),
      (2, 'xactsum', 'Transactions', 'Rolled back', 'transaction', 'Rolled back', 1),
      (3, 'xactsum', 'Rows changed', 'Inserted', 'transaction', 'Rows inserted', 1),
      (4, 'xactsum', 'Rows changed', 'Updated', 'transaction', 'Rows updated', 1),
      (5, 'xactsum', 'Rows changed', 'Deleted', 'transaction', 'Rows deleted', 1),
      (6, 'diskio', 'Disk I/O (KB)', 'Log written', 'io', 'log write bytes', 1024),
      (7, 'diskio', 'Disk I/O (KB)', 'Tables and indexes written', 'io', 'table write bytes', 1024),
      (8, 'diskio', 'Disk I/O (KB)', 'Tables and indexes read', 'io', 'table read bytes', 1024),
      (9, 'diskio', 'Disk I/O (operations)', 'Log writes', 'io', 'log writes', 1),
      (10, 'diskio', 'Disk I/O (operations)', 'Log syncs', 'io', 'log syncs', 1),
      (11, 'diskio', 'Disk I/O (operations)', 'Table and index writes', 'io', 'table writes', 1),
      (12, 'diskio', 'Disk I/O (operations)', 'Table and index reads', 'io', 'table reads', 1),
      (13, 'dcache', 'Data cache (pages)', 'Found in cache', 'cache', 'found', 1),
      (14, 'dcache', 'Data cache (pages)', 'Not found', 'cache', 'read', 1),
      (15, 'recovery', 'Checkpoints', 'By time', 'checkpoint', 'By time', 1),
      (16, 'recovery', 'Checkpoints', 'Asked for', 'checkpoint', 'Asked for', 1)
    ) as listed (number, section, title, item, kind, counter, unit)
    where listed.section = coalesce(wanted, listed.section)
    group by listed.title
    order by min(listed.number)
  loop
    perform sys.announce_section(part.title, part.items, part.counts, seconds, committed);
  end loop;
  if coalesce(wanted, 'tables') = 'tables' then
    perform sys.announce_fitted($query$
    select
      listed.item::varchar(%s) as "Table",
      listed.inserted::bigint as inserted,
      listed.updated::bigint as updated,
      listed.deleted::bigint as deleted,
      (listed.written / $2)::numeric(18, 1) as "per sec",
      (100 * listed.written / sum(listed.written) over ())::numeric(5, 1) as "%% of total"
    from (
      select
        changes.item,
        sum(changes.count) filter (where changes.section = 'table inserted') as inserted,
        sum(changes.count) filter (where changes.section = 'table updated') as updated,
        sum(changes.count) filter (where changes.section = 'table deleted') as deleted,
        sum(changes.count) as written
      from jsonb_to_recordset($1) as changes (section text, item text, count numeric)
      where changes.section like 'table %%'
      group by changes.item
      having sum(changes.count) > 0
    ) as listed
    order by listed.written desc, listed.item
    $query$, counted, seconds, 'Table');
  end if;
  -- PostgreSQL counts calls only with track_functions; the gateway's own counts always follow
  if coalesce(wanted, 'procs') = 'procs' and exists (
    select from jsonb_to_recordset(counted) as changes (section text, count numeric)
    where changes.section = 'function calls' and changes.count > 0
  ) then
    rows := null;
    open rows for
    select
      calls.item::sys.sysname as "Functions in PostgreSQL",
      calls.count::bigint as calls,
      (calls.count / seconds)::numeric(18, 1) as "per sec",
      (times.count / calls.count)::numeric(18, 3) as "ms each"
    from jsonb_to_recordset(counted) as calls (section text, item text, count numeric)
    join jsonb_to_recordset(counted) as times (section text, item text, count numeric) on times.item = calls.item
    where calls.section = 'function calls' and times.section = 'function ms' and calls.count > 0
    order by calls.count desc, calls.item;
    perform sys.announce(rows);
  end if;
  return 0;
end
$$;
comment on function sys.sp_sysmon(text, text) is
$$ASE: sp_sysmon interval [, section]. Waits for the interval ('hh:mm:ss', can be cancelled), then reports what PostgreSQL
counted in it. Through the gateway its own counts follow: network, calls of procedures, group commit. Sections: xactsum,
diskio, dcache, recovery, tables, procs, netio, commits. PostgreSQL adds up a busy connection's counts once a second.$$;

create function sys.counted(counted jsonb, section text, item text) returns numeric
language sql immutable
as $$
  select coalesce(sum(listed.count), 0)
  from jsonb_to_recordset(counted) as listed (section text, item text, count numeric)
  where listed.section = counted.section and listed.item = counted.item
$$;

create function sys.announce_section(title text, items text[], counts numeric[], seconds numeric, transactions numeric)
returns void
language plpgsql
as $$
declare
  rows refcursor;
begin
  -- the columns of ASE's report
  open rows for execute format(
    'select
       listed.item::varchar(30) as %I,
       (listed.count / $3)::numeric(18, 1) as "per sec",
       (listed.count / nullif($4, 0))::numeric(18, 2) as "per xact",
       listed.count::bigint as count,
       (100 * listed.count / nullif(sum(listed.count) over (), 0))::numeric(5, 1) as "%% of total"
     from unnest($1, $2) with ordinality as listed (item, count, position)
     order by listed.position',
    title
  ) using items, counts, seconds, transactions;
  perform sys.announce(rows);
end
$$;

-- The gateway's counts: OpenMetrics text (gateway/src/metrics.rs) from before and after the interval.
create function sys.read_metrics(metrics text)
returns table (name text, procedure text, bound double precision, value double precision)
language sql immutable
as $$
  select
    parts.found[1],
    substring(parts.found[2] from 'procedure="([^"]*)"'),
    replace(substring(parts.found[2] from 'le="([^"]*)"'), '+Inf', 'Infinity')::double precision,
    parts.found[3]::double precision
  from string_to_table(metrics, E'\n') as lines (line)
  cross join lateral regexp_match(lines.line, '^ringlog_gateway_(\w+)(\{.*\})? (\S+)$') as parts (found)
  where parts.found is not null
$$;

create function sys.sp_sysmon_gateway(before text, after text, seconds double precision, section text default null)
returns integer
language plpgsql
as $$
declare
  wanted constant text := lower(section);
  rows refcursor;
  counted jsonb;
begin
  -- dozens of counts for each procedure: only those of called procedures are kept
  with later as materialized (
    select * from sys.read_metrics(after)
  ),
  earlier as materialized (
    select * from sys.read_metrics(before)
  )
  select jsonb_agg(jsonb_build_object(
    'name', later.name, 'procedure', later.procedure, 'bound', later.bound,
    'count', later.value - coalesce(earlier.value, 0)
  )) into counted
  from later
  left join earlier
    on earlier.name = later.name
    and coalesce(earlier.procedure, '') = coalesce(later.procedure, '')
    and coalesce(earlier.bound, '-Infinity') = coalesce(later.bound, '-Infinity')
  where later.procedure is null or later.value > coalesce(earlier.value, 0);

  if coalesce(wanted, 'netio') = 'netio' then
    open rows for
    select
      names.title::varchar(30) as "Network I/O (KB)",
      (listed.count / 1024 / seconds)::numeric(18, 1) as "per sec",
      (listed.count / 1024)::numeric(18, 1) as count,
      (100 * listed.count / nullif(sum(listed.count) over (), 0))::numeric(5, 1) as "% of total"
    from (values ('received_bytes_total', 'Received'), ('sent_bytes_total', 'Sent')) as names (name, title)
    join jsonb_to_recordset(counted) as listed (name text, count double precision) on listed.name = names.name
    order by names.title;
    perform sys.announce(rows);
  end if;
  if coalesce(wanted, 'commits') = 'commits' then
    rows := null;
    open rows for
    select
      (case
        when listed.bound = 1 then '1 call'
        when listed.bound is null then 'more than ' || listed.below || ' calls'
        when listed.bound = listed.below + 1 then listed.bound || ' calls'
        else (listed.below + 1) || ' to ' || listed.bound || ' calls'
      end)::varchar(30) as "Transactions of group commit",
      (listed.count / seconds)::numeric(18, 1) as "per sec",
      listed.count::bigint as count,
      (100 * listed.count / nullif(sum(listed.count) over (), 0))::numeric(5, 1) as "% of total"
    from (
      select
        buckets.bound,
        lag(buckets.bound, 1, 0) over (order by buckets.bound) as below,
        buckets.count - lag(buckets.count, 1, 0) over (order by buckets.bound) as count
      from jsonb_to_recordset(counted) as buckets (name text, bound double precision, count double precision)
      where buckets.name = 'group_commit_calls_bucket'
    ) as listed
    where listed.count > 0
    order by listed.below;
    perform sys.announce(rows);
  end if;
  if coalesce(wanted, 'procs') = 'procs' then
    perform sys.announce_fitted($query$
    with counts as materialized (
      select *
      from jsonb_to_recordset($1)
        as counts (name text, procedure text, bound double precision, count double precision)
      where counts.procedure is not null
    )
    select
      listed.procedure::varchar(%s) as "Procedure",
      listed.calls::bigint as calls,
      (listed.calls / $2)::numeric(18, 1) as "per sec",
      listed.failed::bigint as failed,
      (1000 * listed.took / listed.calls)::numeric(18, 3) as "ms on average",
      (1000 * nullif(within.half, 'Infinity'))::numeric(18, 3) as "50 %% within ms",
      (1000 * nullif(within.most, 'Infinity'))::numeric(18, 3) as "99 %% within ms",
      (1000 * nullif(within.every, 'Infinity'))::numeric(18, 3) as "all within ms"
    from (
      select
        counts.procedure,
        max(counts.count) filter (where counts.name = 'call_seconds_count') as calls,
        max(counts.count) filter (where counts.name = 'call_seconds_sum') as took,
        coalesce(max(counts.count) filter (where counts.name = 'failed_calls_total'), 0) as failed
      from counts
      group by counts.procedure
    ) as listed
    -- the bounds of the buckets; the last has none
    cross join lateral (
      select
        min(buckets.bound) filter (where buckets.count >= 0.5 * listed.calls) as half,
        min(buckets.bound) filter (where buckets.count >= 0.99 * listed.calls) as most,
        min(buckets.bound) filter (where buckets.count >= listed.calls) as every
      from counts as buckets
      where buckets.name = 'call_seconds_bucket' and buckets.procedure = listed.procedure
    ) as within
    where listed.calls > 0
    order by listed.calls desc, listed.procedure
    $query$, counted, seconds::numeric, 'Procedure');
  end if;
  return 0;
end
$$;
