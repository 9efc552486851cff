create or replace function ringlog.mark_summaries(table_name text, place regclass, start timestamptz, finish timestamptz)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  level constant integer := (
    select known.levels[1] from ringlog.summarised as known where known.table_name = mark_summaries.table_name
  );
begin
  if level is not null then
    execute format(
      'insert into ringlog.summary_mark (table_name, "time")'
      ' select distinct %L, date_bin(%L, moved."time", ''epoch'') from %s as moved'
      ' where moved."time" >= %L and moved."time" < %L',
      mark_summaries.table_name, make_interval(secs => level), place, start, finish
    );
  end if;
end
$$;
comment on function ringlog.mark_summaries is
$$Marks the summaries of rows that have moved to another partition, so that they are made again: a snapshot from before
the move finds the rows in neither partition.$$;
