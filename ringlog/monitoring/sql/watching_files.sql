with recursive
  heap as materialized (
    select oid, reltoastrelid from pg_class
    where oid in ({weeks}) and {has_pages}
  ),
  stored (oid) as (
    select oid from heap
    union all
    select reltoastrelid from heap where reltoastrelid <> 0
  ),
  part (oid) as (
    select oid from stored
    union all
    select indexrelid from pg_index join stored on indrelid = stored.oid
  ),
  segment (path, number, size) as (
    select path, 0, (pg_stat_file(path, true)).size
    from part
    cross join unnest('{{"", _fsm, _vm}}'::text[]) as fork
    cross join lateral concat(pg_relation_filepath(part.oid), fork) as path
    union all
    select path, number + 1, (pg_stat_file(format('%s.%s', path, number + 1), true)).size
    from segment where size = pg_size_bytes(current_setting('segment_size'))
  )
select sum(size) from segment
