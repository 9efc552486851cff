create or replace function ringlog.resume_signal(signal text) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select ringlog.set_signal_state(signal, 'active', 'resume') $$;
comment on function ringlog.resume_signal is
$$The signal of a table of samples is written again after pause_signal. Error: no such signal now (42704).$$;
grant execute on function ringlog.resume_signal to signal_archivist;
