update {ring} as ring
set {values}
from (
  select distinct on (logged.seq_no) logged.* from {log} as logged
  where logged.seq_no = any({numbers}) and logged."time" >= {start} and logged."time" < {end}
    and logged."time" <= now() + interval '1 minute'
  order by logged.seq_no, logged."time" desc
) as logged
where ring.seq_no = logged.seq_no and ring."time" is null
