alter table ringlog.history add column if not exists keep_replaced text not null default '30 days';

comment on column ringlog.history.keep_replaced is
'interval that files stay after they have left the manifest';

alter table ringlog.cold_week add column if not exists footer text;

comment on column ringlog.cold_week.footer is
'SHA-256 of the file''s footer, which readers check; null: of a file of an earlier version';
