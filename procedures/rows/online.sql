create or replace view {ring} as
select ring.seq_no, ring."time", {view_columns}
from {stored} as ring
left join {log} as logged on logged."time" = ring."time" and logged.seq_no = ring.seq_no;
