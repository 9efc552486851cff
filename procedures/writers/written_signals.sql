create or replace function ringlog.written_signals(table_name text, known bigint default null)
returns table (version bigint, number integer, address text, deadband text, newest bigint, policy text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  latest constant bigint := coalesce((select max(change.number) from ringlog.signal_change as change), 0);
begin
  perform ringlog.demand_table_here(written_signals.table_name);
  perform ringlog.demand_writer(written_signals.table_name);
  if latest is distinct from written_signals.known then
    return query execute format(
      $query$
        select $1, each.number, coalesce(nullif(each.address, ''), each.signal), each.deadband, newest."time",
          each.policy
        from (select) as always
        left join ringlog.sample_signal as each on each.table_name = %1$L and each.state = 'active'
        left join lateral (
          select block.times[block.n] as "time" from weeks.%1$I as block
          where $2 is null and block.signal = each.number
          order by block."time" desc
          limit 1
        ) as newest on true
        order by each.number
      $query$,
      written_signals.table_name
    ) using latest, written_signals.known;
  end if;
end
$$;
comment on function ringlog.written_signals is
$$The signals that the writer of a table of samples takes, with their names at the source, and the version of this list;
no row where known is still that version. Where known is null, newest is the time of the newest sample of each in
nanoseconds. Without signals the number of the only row is null. Error: the caller may not write the table (42501).$$;
grant execute on function ringlog.written_signals to daq_writer, daq_table_writer;
