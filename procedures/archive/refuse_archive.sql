create or replace function ringlog.refuse_archive() returns setof boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'SQL does not reach the archive: this PostgreSQL has no postgres_fdw, or only a superuser may create it'
    using
      errcode = 'feature_not_supported',
      hint = 'Install PostgreSQL''s contrib modules; as a superuser of this database: create extension postgres_fdw; '
        'grant usage on foreign data wrapper postgres_fdw to ringlog_owner. Then install the facility again.';
end
$$;
comment on function ringlog.refuse_archive is
$$The views of schema archive read it where PostgreSQL cannot reach the archive server: they fail with the reason.$$;
grant execute on function ringlog.refuse_archive to daq_reader, daq_table_reader;
