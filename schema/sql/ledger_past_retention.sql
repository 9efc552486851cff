with kept as materialized (
  select
    each.table_name,
    least(
      date_trunc('week', cast(:now as timestamptz) - cast(each.retention as interval), 'UTC'),
      (select min(aside.begins) from ringlog.set_aside as aside where aside.table_name = each.table_name)
    ) as since
  from ringlog.every_table as each
  where each.retention is not null
),
events as (
  delete from ringlog.event as event using kept
  where event.table_name = kept.table_name and coalesce(event.until, event."time") < kept.since
    -- of these the last one may last
    and (event.kind not in ('disconnected', 'connected', 'clock', 'unfit') or exists (
      select from ringlog.event as later
      where later.table_name = event.table_name and later.kind = event.kind and later.message = event.message
        and later."time" > event."time" and later."time" <= kept.since
    ))
),
runs as (
  delete from ringlog.writer_run as run using kept where run.table_name = kept.table_name and run.until < kept.since
),
samples as (
  delete from ringlog.dropped_sample as sample using kept
  where sample.table_name = kept.table_name and sample.until < kept.since
)
delete from ringlog.how_taken as taken using kept
where taken.table_name = kept.table_name and exists (
  select from ringlog.how_taken as later
  where later.table_name = taken.table_name and later.valid_from > taken.valid_from and later.valid_from <= kept.since
)
