select
  (select count(*) from {log}),
  (select count(*) from {ring} where time is not null),
  (select count(*) from (select seq_no, max(time) as time from {log} group by seq_no) as latest
    join {ring} using (seq_no, time))
