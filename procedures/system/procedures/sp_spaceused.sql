create function sys.sp_spaceused(objname text default null, updateusage text default 'false') returns integer
language plpgsql
as $$
declare
  id oid;
  rows refcursor;
begin
  if objname is null then
    open rows for
    select
      sys.db_name() as database_name,
      (round(sys.size_of(databases.oid) / 1048576.0, 2) || ' MB')::sys.sysname as database_size,
      '0.00 MB'::sys.sysname as "unallocated space"
    from sys.every_database as databases
    where databases.name = sys.current_database();
    perform sys.announce(rows);
    rows := null;
    open rows for
    select
      sys.kilobytes(sum(total)) as reserved,
      sys.kilobytes(sum(main)) as data,
      sys.kilobytes(sum(indexes)) as index_size,
      sys.kilobytes(sum(total - main - indexes)) as unused
    from sys.every_database as databases
    join pg_catalog.pg_class as relations on relations.relnamespace = databases.oid and relations.relkind in ('r', 'm')
    cross join lateral (
      select
        pg_catalog.pg_total_relation_size(relations.oid) as total,
        pg_catalog.pg_table_size(relations.oid) as main,
        pg_catalog.pg_indexes_size(relations.oid) as indexes
    ) as sizes
    where databases.name = sys.current_database();
    perform sys.announce(rows);
    return 0;
  end if;

  id := sys.demand_object(objname)::oid;
  open rows for
  select
    (select relations.name from sys.every_relation as relations where relations.oid = id)::sys.sysname as name,
    sys.count_of_rows(id)::character(20) as rows,
    sys.kilobytes(sum(pg_catalog.pg_total_relation_size(parts.relid))) as reserved,
    sys.kilobytes(sum(pg_catalog.pg_table_size(parts.relid))) as data,
    sys.kilobytes(sum(pg_catalog.pg_indexes_size(parts.relid))) as index_size,
    sys.kilobytes(0) as unused
  from sys.parts_of(id) as parts;
  perform sys.announce(rows);
  return 0;
end
$$;

create function sys.count_of_rows(relation oid) returns bigint
language plpgsql stable
as $$
declare
  counted bigint;
begin
  if pg_catalog.has_any_column_privilege(relation, 'select') then
    execute pg_catalog.format('select count(*) from %s', relation::regclass) into counted;
  end if;
  return counted;
end
$$;
comment on function sys.count_of_rows(oid) is
'The rows of a table, counted one by one; null if the caller may not read it.';

create function sys.kilobytes(bytes numeric) returns character varying
language sql immutable
as $$ select (coalesce(bytes, 0)::bigint / 1024) || ' KB' $$;
comment on function sys.sp_spaceused(text, text) is
$$SQL Server and ASE: sp_spaceused. The space of a table (of a log with all its weeks) or of the current database. The
rows are counted.$$;
