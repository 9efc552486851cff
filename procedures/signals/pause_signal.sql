create or replace function ringlog.pause_signal(signal text) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select ringlog.set_signal_state(signal, 'paused', 'pause') $$;
comment on function ringlog.pause_signal is
$$Pauses a signal of a table of samples: its samples are dropped, with a message to the caller, until resume_signal.
Error: there is no such signal (42704).$$;
grant execute on function ringlog.pause_signal to signal_archivist;
