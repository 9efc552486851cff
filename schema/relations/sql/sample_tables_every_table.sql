create or replace view ringlog.every_table as
select table_name, description, rows, cycle, retention, retired, false as is_of_samples
from ringlog.logged_table
union all
-- signals with times of their own have no cycle
select table_name, description, ring, null, retention, false, true from ringlog.sample_table;
comment on view ringlog.every_table is 'tables of rows and of samples of the facility';
comment on column ringlog.every_table.rows is 'rows of the ring, or samples of each signal';
comment on column ringlog.every_table.cycle is 'seconds between two rows; null: a table of samples';
comment on column ringlog.every_table.retention is 'interval for which the log is kept; null: for ever';
comment on column ringlog.every_table.retired is 'not in the facility file';
comment on column ringlog.every_table.is_of_samples is 'its signals have times of their own'
