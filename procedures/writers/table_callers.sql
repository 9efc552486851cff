create or replace function ringlog.table_callers() returns table (
  table_name text, host text, program text, login text, called timestamptz, failed timestamptz, number integer,
  error text
)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with calls as (
    select known.table_name, call.*
    from (
      select logged_table.table_name, logged_table.table_name as name from ringlog.logged_table
      union all
      select former_table.table_name, former_table.former from ringlog.former_table
    ) as known
    join ringlog.last_call as call
      on call.procedure in ('put_' || name, 'put_' || name || '_claimed', 'put_' || name || '_batch')
  ),
  latest as (
    select distinct on (table_name) * from calls order by table_name, called desc
  ),
  failed as (
    select distinct on (table_name) * from calls where failed is not null order by table_name, failed desc
  )
  select latest.table_name, latest.host, latest.program, latest.login, latest.called,
    failed.failed, failed.number, failed.error
  from latest
  left join failed on failed.table_name = latest.table_name
$$;
comment on function ringlog.table_callers is
$$The last call of a table's put over TDS, from any program: host and program as reported by the client, login and time;
and time, number and text of the last call that was answered by an error. The server records them every ten seconds.$$;
grant execute on function ringlog.table_callers to daq_reader, daq_table_reader;
