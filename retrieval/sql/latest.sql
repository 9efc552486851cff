-- the newest row of a ring
select ring."time", {columns}
from {ring} as ring
where ring."time" is not null
order by ring."time" desc, ring.seq_no desc
limit 1
