-- tables that are not written any more
alter table ringlog.logged_table add column if not exists retired boolean not null default false;
comment on column ringlog.logged_table.retired is 'nobody writes it any more; what it has can be read';
