-- Functions of 1.0.0 that no compiled procedure calls: forms for procedures of earlier versions, and the gateway's own.
do $$
declare
  -- in one statement, because they depend on one another
  former constant text := (
    select string_agg(oid::regprocedure::text, ', ') from pg_proc
    where pronamespace = 'tsql'::regnamespace
      and (proname, pronargs) in (('divided', 7), ('own_state', 4), ('tell_caught', 5), ('filled_columns', 1),
        ('place_of', 2), ('alter_table', 21), ('create_index', 6), ('create_global', 6), ('share_global', 1),
        ('keep_global', 1))
  );
begin
  if former is not null then
    execute 'drop routine ' || former;
  end if;
end
$$;
