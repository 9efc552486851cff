create or replace function ringlog.list_marks(
  from_time timestamptz default '-infinity', to_time timestamptz default 'infinity', names text default null
) returns table (
  mark integer, "time" timestamptz, until timestamptz, text text, signals text[], version integer, login text,
  program text, made timestamptz
)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select each.number, each."time", each.until, each.text, each.signals, each.version, each.login, each.program, each.made
  from ringlog.mark as each
  where each."time" < list_marks.to_time and coalesce(each.until, each."time") >= list_marks.from_time
    and not each.withdrawn
    and (list_marks.names is null or each.signals is null or each.signals && string_to_array(list_marks.names, e'\n'))
    and not exists (select from ringlog.mark as later where later.number = each.number and later.version > each.version)
  order by each."time", each.number
$$;
comment on function ringlog.list_marks is
$$The marks that touch a time, by their time; with `names`, one a line, those of these signals and of all. Login, program and
made are those of the latest version.$$;
grant execute on function ringlog.list_marks to daq_reader, daq_table_reader;
