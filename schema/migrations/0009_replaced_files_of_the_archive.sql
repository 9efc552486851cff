alter table ringlog.history add column keep_replaced text not null default '30 days';

comment on column ringlog.history.keep_replaced is
'interval that files stay after they have left the manifest';
