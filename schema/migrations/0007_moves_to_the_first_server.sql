-- null is the first server, as for the source
alter table ringlog.move alter column target drop not null;
comment on column ringlog.move.target is 'the node that gets it; null: the first server';
