-- byteasend returns the bytes of its argument, whatever its declared type
create function ringlog.array_bytes("array" anyarray) returns bytea
language internal stable strict parallel safe
as 'byteasend';
comment on function ringlog.array_bytes(anyarray) is
$$An array's bytes as PostgreSQL has them in memory, without its length. It takes a fifth of the time of array_send. Only
a superuser can create such a function: if another role installs ringlog, readers use array_send.$$;

alter function ringlog.array_bytes(anyarray) owner to ringlog_owner;
revoke all on function ringlog.array_bytes(anyarray) from public;
grant execute on function ringlog.array_bytes(anyarray) to daq_reader, daq_table_reader;
