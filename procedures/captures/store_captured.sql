create or replace function ringlog.store_captured(table_name text, is_of_samples boolean, out columns text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  source constant regclass := format(
    case when is_of_samples then 'log.%I' else 'online.%I' end, ringlog.table_now(table_name)
  )::regclass;
  known record;
begin
  if to_regclass(format('capture.%I', table_name)) is null then
    execute format('create table capture.%I (capture integer)', table_name);
    execute format('alter table capture.%I enable row level security', table_name);
    execute format(
      'create policy log on capture.%I for select using ((select ringlog.reads_captured(%L)))', table_name, table_name
    );
    execute format('grant select on capture.%I to daq_reader, daq_table_reader', table_name);
    execute format('comment on table capture.%I is %L', table_name, 'rows kept around events: see capture_event');
  end if;
  for known in
    select
      wanted.attname as name,
      format_type(wanted.atttypid, wanted.atttypmod) as type,
      format_type(there.atttypid, there.atttypmod) as stored
    from pg_attribute as wanted
    left join pg_attribute as there
      on there.attrelid = format('capture.%I', table_name)::regclass and there.attname = wanted.attname
      and not there.attisdropped
    where wanted.attrelid = source and wanted.attnum > 0 and not wanted.attisdropped
      and wanted.attname not in ('block_begins', 'block_ends')
    order by wanted.attnum
  loop
    if known.name = 'capture' or known.stored <> known.type then
      raise exception 'capture.% cannot take the rows of %: its column % is %, not %',
        table_name, source, known.name, coalesce(known.stored, 'integer'), known.type
        using errcode = 'datatype_mismatch', hint = 'Export the earlier captures of the table, and forget them.';
    elsif known.stored is null then
      execute format('alter table capture.%I add column %I %s', table_name, known.name, known.type);
    end if;
    columns := concat_ws(', ', columns, format('%I', known.name));
  end loop;
  if not exists (select from pg_index where indrelid = format('capture.%I', table_name)::regclass) then
    execute format(
      'alter table capture.%I add primary key (capture, %s)',
      table_name,
      case when is_of_samples then 'number, "time", nanoseconds' else '"time", seq_no' end
    );
  end if;
end
$$;
comment on function ringlog.store_captured is
$$Makes capture.<table>, or adds the columns that its table has now. Returns the columns to copy, quoted. Error: a column
of earlier captures has another type (42804).$$;
