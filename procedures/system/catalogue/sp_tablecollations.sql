create function sys.sp_tablecollations_100(object text) returns table (
  colid integer, name sys.sysname, tds_collation_100 bytea, collation_100 sys.sysname
)
language sql stable
as $$
  select
    columns.column_id, columns.name,
    -- of the collation that columns are sent with (MS-TDS, 2.2.5.1.2)
    case when columns.collation_name is not null then '\x0904d00034'::bytea end,
    columns.collation_name
  from sys.columns as columns
  -- bulk copies of Microsoft's write no schema before the point
  where columns.object_id = sys.demand_object(ltrim(object, '.'))
  order by columns.column_id
$$;
comment on function sys.sp_tablecollations_100(text) is
'SQL Server: the collations of a table''s columns, which SqlBulkCopy and mssql-python read before they copy into it.';
