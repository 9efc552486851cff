create or replace function {procedure}("time" timestamptz, {optional_key}) returns setof {now}
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
begin
  perform ringlog.await_parameter_changes({this_time});
  return query
    select
      {stored_key},
      stored.version,
      lower(stored.valid),
      begun.login,
      {stored_data}
    from {stored} as stored
    join ringlog.parameter_change as begun on begun.change = stored.change
    where stored.valid @> {this_time} and {key_given}
    order by {stored_key};
end
$$;
comment on function {procedure} is
$$The rows with this key as they were at a time. The result for a past time is always the same: a change in progress is
waited for. A future time is read as now. Errors: no time (22004), another transaction has been changing parameters for
more than 10 s (55P03).$$;
grant execute on function {procedure} to daq_reader, parameter_writer;
