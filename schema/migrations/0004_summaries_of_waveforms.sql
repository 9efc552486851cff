-- summaries have waveforms too: those of tables that have some are made anew, from the first row on
update ringlog.summarised set until = null
where table_name in (
  select table_name from ringlog.signal where type like '%[]' and type not like 'varchar%'
);
