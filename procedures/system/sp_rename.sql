create function sys.sp_rename(objname text, newname text, objtype text default null)
returns integer
language plpgsql
as $$
begin
  raise exception 'sp_rename is refused: tables and columns are named by the facility file, and their procedures after them.'
    using errcode = 'feature_not_supported';
end
$$;
