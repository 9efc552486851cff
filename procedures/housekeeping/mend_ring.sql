create or replace function ringlog.mend_ring(message text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set client_min_messages = 'warning'
-- a caller whose wait times out gets its original error, and calls again
set lock_timeout = '2s'
as $$
#variable_conflict use_variable
declare
  file constant oid := substring(message from 'base/\d+/(\d+)');
  named oid := coalesce(pg_filenode_relation(0, file), (
    select indexrelid from pg_index join pg_class on pg_class.oid = indexrelid
    where relname = substring(message from 'index "([^"]+)"')
      and relnamespace in (to_regnamespace('online'), to_regnamespace('ring'))
  ));
  ring oid;
  name text;
  block bigint;
  item integer;
  size integer;
  lost bigint;
  sentence text;
begin
  if file is not null and named is null then
    return true;  -- another caller has just mended it
  end if;
  select pg_class.oid, table_name, rows into ring, name, size
  from pg_class join ringlog.logged_table on table_name = relname
  where relnamespace in (to_regnamespace('online'), to_regnamespace('ring')) and relkind = 'r'
    and (
      named in (pg_class.oid, reltoastrelid)
      or named in (select indexrelid from pg_index where indrelid in (pg_class.oid, reltoastrelid))
    );
  if not found then
    return false;
  end if;
  perform ringlog.demand_writer(name);
  if named = ring then
    begin
      -- whole rows: an index would spare their pages
      execute format('select count(whole) from %s as whole', ring::regclass);
      return true;
    exception when others then
      if sqlstate not like 'XX%' then
        raise;
      end if;
    end;
  end if;
  execute format('lock table %s in access exclusive mode', ring::regclass);
  if pg_relation_filenode(named) <> file then
    return true;
  end if;

  -- make the index again: PostgreSQL plans no query of a table with an unreadable index
  if named in (select indexrelid from pg_index where indrelid = ring) then
    begin
      execute format('reindex index %s', named::regclass);
      lost := 0;
    exception when others then
      if sqlstate not like 'XX%' then
        raise;
      end if;
    end;
  end if;
  if lost is null then
    execute format('create temporary table ringlog_sound on commit drop as table %s with no data', ring::regclass);
    <<blocks>>
    for block in 0 .. pg_relation_size(ring) / current_setting('block_size')::integer - 1 loop
      begin
        execute format(
          'insert into pg_temp.ringlog_sound select * from %s where ctid >= %L and ctid < %L',
          ring::regclass, format('(%s,0)', block), format('(%s,0)', block + 1)
        );
        continue blocks;
      exception when others then
        if sqlstate not like 'XX%' then
          raise;
        end if;
        -- the page as a whole
        continue blocks when strpos(sqlerrm, pg_relation_filepath(ring)) > 0;
      end;
      -- the TOAST values of a row may be damaged alone
      for item in 1 .. 291 loop
        begin
          execute format(
            'insert into pg_temp.ringlog_sound select * from %s where ctid = %L',
            ring::regclass, format('(%s,%s)', block, item)
          );
        exception when others then
          if sqlstate not like 'XX%' then
            raise;
          end if;
        end;
      end loop;
    end loop;
    -- new files
    execute format('truncate %s', ring::regclass);
    execute format(
      'insert into %s select distinct on (seq_no) sound.* from pg_temp.ringlog_sound as sound'
      ' where seq_no between 1 and %s order by seq_no, "time" desc nulls last',
      ring::regclass, size
    );
    execute format(
      'insert into %s (seq_no) select wanted.seq_no from generate_series(1, %s) as wanted (seq_no)'
      ' where not exists (select from pg_temp.ringlog_sound as sound where sound.seq_no = wanted.seq_no)',
      ring::regclass, size
    );
    get diagnostics lost = row_count;
    drop table pg_temp.ringlog_sound;
  end if;

  sentence := format(
    '%s was damaged (%s) and has new files without %s of its rows: `ringlog refill %s` makes them again from the log',
    ring::regclass, left(message, 500), lost, name
  );
  insert into ringlog.event (table_name, spool, number, "time", kind, message)
  values (name, 'ring', extract(epoch from clock_timestamp()) * 1000000, now(), 'damaged', sentence)
  on conflict do nothing;
  insert into ringlog.damage as known (work, table_name, message, since)
  values ('ring', name, sentence, now())
  on conflict on constraint damage_pkey do update set message = excluded.message;
  raise log '%', sentence;
  return true;
end
$$;
comment on function ringlog.mend_ring is
$$Gives a ring new files if PostgreSQL's error about a damaged page or index (XX001, XX002) names one of its files; not if
all pages of the named table can be read. Rows that cannot be read are empty until `ringlog refill`. Returns whether the
failed call can be repeated: false if the error names another file. Error: the caller may not write the ring (42501).$$;
grant execute on function ringlog.mend_ring to daq_writer, daq_table_writer;
