select
  sum(write_bytes) filter (where object = 'wal' and context = 'normal'),
  sum(writes) filter (where object = 'wal' and context = 'normal'),
  sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0) + coalesce(read_bytes, 0))
    filter (where object = 'relation'),
  sum(coalesce(writes, 0) + coalesce(extends, 0) + coalesce(reads, 0)) filter (where object = 'relation')
from pg_stat_io
