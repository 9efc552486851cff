select table_name, levels, until, period,
  greatest(%(now)s::timestamptz - retention::interval, %(earliest)s),
  (select dropped.until from ringlog.dropped where dropped.table_name = summarised.table_name)
from ringlog.summarised
join (
  select table_name, coalesce(log_period, cycle * log_nth) as period, retention
  from ringlog.logged_table
  union all
  select table_name, null, retention from ringlog.sample_table
) as known using (table_name)
where levels <> '{{}}'
  and (
    until + %(enough)s * levels[1] * interval '1 second' <= %(now)s
    or exists (
      select from ringlog.summary_mark as mark where mark.table_name = summarised.table_name
    )
    -- none yet: the log has, or had, rows, or weeks of it are in the archive
    or until is null and exists (
      select from pg_inherits
      where inhparent = to_regclass(format('weeks.%%I', summarised.table_name))
        and {has_pages}
    )
    or until is null and exists (
      select from ringlog.cold_week as week where week.table_name = summarised.table_name
    )
  )
order by table_name
