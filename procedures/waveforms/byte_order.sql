create or replace function ringlog.byte_order() returns table (byte_order text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select split_part(setting, '=', 2)
      from pg_db_role_setting
      join pg_database on pg_database.oid = setdatabase
      cross join unnest(setconfig) as setting
      where datname = current_database() and setrole = 0 and setting like 'tsql.byte\_order=%'
    ),
    'little'
  )
$$;
comment on function ringlog.byte_order is
$$The byte order, little or big, of packed waveforms that clients send and receive: byte_order of the facility file.$$;
grant execute on function ringlog.byte_order to daq_reader, daq_table_reader, daq_writer, daq_table_writer;
