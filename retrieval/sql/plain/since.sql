-- rows of a ring that are newer than an instant, oldest first
select ring."time", {columns}
from {ring} as ring
where ring."time" > {start}
order by ring."time", ring.seq_no
limit 10000
