-- Procedures of SQL Server and ASE that change nothing here; a message reports that.
do $$
declare
  keys constant text := 'PostgreSQL''s keys are those of create table and alter table';
  each record;
begin
  for each in
    select * from (values
      ('sp_procxmode', 'procname tranmode', 'a procedure runs in chained and in unchained transactions'),
      ('sp_configure', 'configname configvalue', 'the operator sets the options of ringlog serve'),
      ('sp_primarykey', 'tabname col1 col2 col3 col4 col5 col6 col7 col8', keys),
      ('sp_foreignkey', 'tabname pktabname col1 col2 col3 col4 col5 col6 col7 col8', keys),
      ('sp_commonkey', 'tabaname tabbname col1a col1b col2a col2b col3a col3b col4a col4b col5a col5b col6a col6b col7a col7b'
        ' col8a col8b', keys),
      ('sp_dropkey', 'keytype tabname deptabname', keys),
      ('sp_recompile', 'objname', 'plans are made again when their tables change'),
      ('sp_updatestats', 'resample', 'PostgreSQL keeps its statistics up to date')
    ) as listed (name, parameters, reason)
  loop
    execute format(
      'create function sys.%I(%s) returns integer language plpgsql as %L', each.name,
      (select string_agg(format('%I text default null', parameter), ', ') from unnest(string_to_array(each.parameters, ' ')) as parameter),
      format('begin raise notice using message = %L; return 0; end',
        format('%s: %s. Nothing has changed.', each.name, each.reason))
    );
    execute format('comment on function sys.%I is %L', each.name, 'SQL Server and ASE. Changes nothing; a message reports that.');
  end loop;
end
$$;

-- Procedures that define another server are refused.
do $$
declare
  each record;
begin
  for each in
    select * from (values
      ('sp_addserver', 'server class network_name'),
      ('sp_addlinkedserver', 'server srvproduct provider datasrc location provstr catalog'),
      ('sp_dropserver', 'server droplogins')
    ) as listed (name, parameters)
  loop
    execute format(
      'create function sys.%I(%s) returns integer language plpgsql as %L', each.name,
      (select string_agg(format('%I text default null', parameter), ', ') from unnest(string_to_array(each.parameters, ' ')) as parameter),
      format('begin perform tsql.raise(102, 15, 1, %L); return 1; end',
        format('''%s'' is not supported: ringlog calls no other servers.', each.name))
    );
    execute format('comment on function sys.%I is %L', each.name, 'SQL Server and ASE. Refused: there are no other servers.');
  end loop;
end
$$;

create function sys.sp_dboption(
  dbname text default null, optname text default null, optvalue text default null, dockpt text default null
) returns integer
language plpgsql
as $$
declare
  wanted constant text := replace(lower(optname), '.', '');
begin
  if dbname is not null and sys.db_id(dbname) is null then
    perform tsql.raise(15010, 16, 1, format('The database ''%s'' does not exist. Supply a valid database name.', dbname));
  end if;
  if lower(optvalue) in ('true', 'on') and not exists (
    select from unnest(array[
      'abort tran on log full', 'async log service', 'auto create statistics', 'auto update statistics', 'autoclose', 'autoshrink',
      'ddl in tran', 'merge publish', 'no chkpt on recovery', 'no free space acctg', 'published', 'select into/bulkcopy',
      'select into/bulkcopy/pllsort', 'subscribed', 'torn page detection', 'trunc log on chkpt'
    ]) as known where starts_with(known, wanted)
  ) then
    perform tsql.raise(102, 15, 1, format('''sp_dboption %s'' is not supported: it would have an effect, which PostgreSQL does not '
      'have.', optname));
  end if;
  raise notice 'sp_dboption: nothing here depends on this option. Nothing has changed.';
  return 0;
end
$$;
comment on function sys.sp_dboption(text, text, text, text) is
$$SQL Server and ASE: sp_dboption. Changes nothing; a message reports that. Errors: no such database (15010), an option that
would have an effect (102).$$;
