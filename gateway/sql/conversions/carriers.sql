-- Assignment of values to columns. The compiler does not know the columns' types: it wraps a value in a carrier type, and
-- PostgreSQL assigns it by a cast that converts as T-SQL does.

create or replace function tsql.fitted(moment timestamp, digits integer) returns timestamp
language sql immutable parallel safe
return case digits when 4 then tsql.to_datetime(moment) when 1 then tsql.to_smalldatetime(moment) else moment end;
comment on function tsql.fitted(timestamp, integer) is
  'A time rounded for its column: datetime has 4 digits here, smalldatetime 1.';

create or replace function tsql.stored(moment timestamp, digits integer) returns timestamp
language sql immutable parallel safe
return case when digits in (1, 4) then tsql.fitted(moment, digits)
  else pg_catalog."timestamp"(tsql.fitted_datetime2(moment, digits), digits) end;
comment on function tsql.stored(timestamp, integer) is
  'A time as stored in a column of the given digits: 4 for datetime, 1 for smalldatetime, others for datetime2.';

create or replace function tsql.conversion_class(type_ regtype) returns text
language sql immutable parallel safe
return case format_type(type_, null)
  when 'boolean' then 'bit'
  when 'smallint' then 'int' when 'integer' then 'int' when 'bigint' then 'int' when 'tsql.tinyint' then 'int'
  when 'tsql.usmallint' then 'int' when 'tsql.uint' then 'int' when 'tsql.ubigint' then 'numeric'
  when 'numeric' then 'numeric' when 'tsql.money' then 'numeric' when 'tsql.smallmoney' then 'numeric'
  when 'real' then 'float' when 'double precision' then 'float'
  when 'bytea' then 'varbinary'
  when 'uuid' then 'uniqueidentifier'
  when 'date' then 'date'
  when 'time without time zone' then 'time'
  when 'timestamp without time zone' then 'datetime' when 'timestamp with time zone' then 'datetime'
  when 'tsql.datetimeoffset' then 'datetime2'
  when 'tsql.datetime' then 'datetime' when 'tsql.smalldatetime' then 'datetime'
  when 'xml' then 'xml'
  when 'tsql.sql_variant' then 'sql_variant'
  else 'varchar'
end;
comment on function tsql.conversion_class(regtype) is 'The class of a type, as tsql.assignment_error names it.';

create or replace function tsql.assigned(value anyelement, target text, sybase boolean) returns anyelement
language plpgsql immutable parallel safe
as $$
declare
  source text := tsql.conversion_class(pg_typeof(value));
  error integer := tsql.assignment_error(source, target, sybase);
begin
  if error is not null then
    perform tsql.fail_assignment(error, source, target);
  end if;
  return value;
end
$$;
comment on function tsql.assigned(anyelement, text, boolean) is
  'The value, if its type converts implicitly to the types of a class; error 206 or 257 otherwise.';

create or replace function tsql.fail_assignment(number integer, source text, target text, digits integer) returns timestamp
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail_assignment(number, source, target);
  return null;
end
$$;
comment on function tsql.fail_assignment(integer, text, text, integer) is
  'The error for one of two branches. It depends on the digits, so that PostgreSQL does not raise it while planning.';

create or replace function tsql.image_of(value bytea, is_image boolean) returns bytea
language plpgsql immutable parallel safe
as $$
begin
  if not is_image then
    perform tsql.fail_assignment(257, 'varchar', 'varbinary');
  end if;
  return value;
end
$$;
comment on function tsql.image_of(bytea, boolean) is
  'The bytes of a text for an image column; error 257 for any other column.';

do $$
declare
  source record;
  target record;
  dialect record;
  carrier text;
  body text;
  -- properties of carrier types: the digits of a time; whether a column for bytes is national; whether a column for a
  -- text is an image or money; in ASE whether a column for a decimal is money
  says text;
  says_type text;
  carry text;
  -- the value without a column's typmod, with which PostgreSQL would not recognise the field of the row
  plain text;
  refused integer;
  refused_fine integer;
  volatility text;
  arguments text;
begin
  for source in select * from (values
    ('bit', 'boolean', 'bit'), ('tinyint', 'tsql.tinyint', 'int'), ('smallint', 'smallint', 'int'), ('int', 'integer', 'int'),
    ('bigint', 'bigint', 'int'), ('numeric', 'numeric', 'numeric'), ('money', 'tsql.money', 'numeric'),
    ('smallmoney', 'tsql.smallmoney', 'numeric'), ('real', 'real', 'float'),
    ('float', 'double precision', 'float'), ('text', 'text', 'varchar'), ('char', 'character', 'varchar'),
    ('timestamp', 'timestamp', 'datetime'), ('timestamptz', 'timestamptz', 'datetime'),
    ('datetime2', 'timestamp', 'datetime2'), ('datetimeoffset', 'tsql.datetimeoffset', 'datetime2'), ('date', 'date', 'date'), ('time', 'time', 'time'),
    ('bytea', 'bytea', 'varbinary'), ('uuid', 'uuid', 'uniqueidentifier'), ('xml', 'xml', 'xml'),
    ('sql_variant', 'tsql.sql_variant', 'sql_variant'),
    -- texts known to be national, which are not converted to bytes
    ('national', 'text', 'varchar'), ('national_char', 'character', 'varchar')
  ) as sources (name, type, class)
  loop
    plain := case when source.type in ('timestamp', 'timestamptz', 'time')
      then format('pg_catalog.%I(value, -1)', source.type) else 'value' end;
    for dialect in select * from (values (false, '', ''), (true, 'sybase_', '_sybase')) as dialects (sybase, prefix, suffix)
    loop
      carrier := 'carried_' || dialect.prefix || source.name;
      says := case
        when source.name in ('timestamp', 'datetime2', 'time') then 'digits'
        when source.name = 'bytea' then 'wide'
        when source.class = 'varchar' and not dialect.sybase then 'image'
        when source.name = 'numeric' and dialect.sybase then 'money'
      end;
      says_type := case when says = 'digits' then 'integer' when says is not null then 'boolean' end;
      if dialect.sybase and source.name in ('datetime2', 'national', 'national_char') then
        continue;
      elsif dialect.sybase and source.class not in ('bit', 'int', 'numeric', 'float', 'varchar') then
        -- as in SQL Server
        execute format('create or replace function tsql.carry_sybase(value %s) returns tsql.carried_%s'
          ' language sql immutable parallel safe return row(%3$s%4$s)::tsql.carried_%2$s', source.type, source.name,
          plain, ', null::' || says_type);
        execute format('create or replace function tsql.carry_sybase(value %s, digits integer, wide boolean) returns'
          ' tsql.carried_%s language sql immutable parallel safe return tsql.carry_sybase(value)', source.type, source.name);
        continue;
      end if;
      if to_regtype('tsql.' || carrier) is null then
        execute format('create type tsql.%s as (value %s%s)', carrier,
          case source.type when 'character' then 'bpchar' else source.type end, ', ' || says || ' ' || says_type);
      end if;
      carry := case when source.name = 'datetime2' then 'carry_datetime2' when source.name like 'national%' then 'carry_national'
        else 'carry' || dialect.suffix end;
      execute format('create or replace function tsql.%s(value %s) returns tsql.%s'
        ' language sql immutable parallel safe return row(%4$s%5$s)::tsql.%3$s', carry, source.type, carrier,
        plain, ', null::' || says_type);
      if carry in ('carry', 'carry_sybase') or says is not null then
        -- for a column of any type; `wide` is the property for bytes, for texts and in ASE for decimals
        execute format('create or replace function tsql.%s(value %s, digits integer, wide boolean) returns tsql.%s'
          ' language sql immutable parallel safe return row(%4$s%5$s)::tsql.%3$s', carry, source.type, carrier, plain,
          case when says = 'digits' then ', digits' when says is not null then ', wide' end);
      end if;
      for target in select * from (values
        ('boolean', 'to_bit', 'bit'), ('smallint', 'to_smallint', 'int'), ('integer', 'to_int', 'int'),
        ('bigint', 'to_bigint', 'int'), ('numeric', 'to_numeric', 'numeric'), ('real', 'to_real', 'float'),
        ('double precision', 'to_float', 'float'), ('text', 'text_of', 'varchar'), ('varchar', 'text_of', 'varchar'),
        ('bpchar', 'text_of', 'varchar'), ('timestamp', 'moment', 'datetime'), ('timestamptz', 'moment', 'datetime2'),
        ('tsql.datetimeoffset', '', 'datetime2'),
        ('date', 'to_date', 'date'), ('time', 'to_time', 'time'), ('bytea', 'varbytes', 'varbinary'),
        ('uuid', 'to_guid', 'uniqueidentifier'), ('xml', '', 'xml'),
        ('tsql.sql_variant', 'to_sql_variant', 'sql_variant')
      ) as targets (type, reader, class)
      loop
        volatility := 'immutable';
        body := null;
        refused := tsql.assignment_error(source.class, target.class, dialect.sybase);
        if source.name like 'national%' and target.type = 'bytea' then
          -- an nvarchar is converted to varbinary only by CONVERT, and never to image
          body := 'tsql.fail_assignment(257, ''nvarchar'', ''varbinary'')::bytea';
        elsif says = 'image' and target.type = 'bytea' then
          -- bytea may be an image, to which a text converts implicitly ('' before a writetext), or varbinary, which
          -- needs CONVERT
          body := 'tsql.image_of(tsql.varbytes((carried).value), (carried).image)';
        elsif says = 'image' and target.type = 'numeric' then
          -- numeric may be money, whose texts may have symbols and commas
          body := 'case when (carried).image then tsql.to_money((carried).value) else tsql.to_numeric((carried).value) end';
        elsif refused is not null then
          body := format('tsql.fail_assignment(%s, %L, %L)::%s', refused, source.class, target.class, target.type);
        elsif source.type = target.type then
          body := '(carried).value';
        elsif says = 'digits' and target.reader = 'text_of' then
          body := case source.type
            when 'time' then 'tsql.time_text((carried).value, 121, coalesce((carried).digits, 7))'
            else 'coalesce(tsql.datetime2_text((carried).value, 121, (carried).digits), tsql.text_of((carried).value))' end;
        elsif says = 'wide' and target.reader = 'text_of' then
          body := 'case when (carried).wide then tsql.wide_text((carried).value) else tsql.text_of((carried).value) end';
        elsif target.type = 'timestamptz' and source.type in ('timestamp', 'date', 'text', 'character') then
          body := 'tsql.instant(tsql.moment((carried).value))';
          volatility := 'stable';
        elsif target.type = 'tsql.datetimeoffset' and source.class in ('datetime', 'datetime2', 'date', 'time', 'varchar') then
          body := 'tsql.to_datetimeoffset((carried).value, 7)';
          if source.type = 'timestamptz' then
            volatility := 'stable';
          end if;
        elsif (source.type, target.type) = ('tsql.datetimeoffset', 'timestamptz') then
          body := '((carried).value).moment';
        elsif (source.type, target.type) in (('text', 'xml'), ('character', 'xml')) then
          body := '(carried).value::xml';
        elsif target.reader <> '' and exists (
          select from pg_proc
          where pronamespace = 'tsql'::regnamespace and proname = target.reader and pronargs = 1
            -- a char(n) is assigned as a text without its trailing blanks
            and (proargtypes[0] = to_regtype(source.type)
              or source.type = 'character' and proargtypes[0] = 'text'::regtype
              or source.name = 'tinyint' and proargtypes[0] = 'smallint'::regtype)
        ) and target.type <> 'timestamptz' then
          body := format('tsql.%I((carried).value)', target.reader);
          if source.type = 'timestamptz' then
            volatility := 'stable';
          end if;
        elsif target.type = 'timestamp' and (source.type like 'tsql.%' or source.type in ('smallint', 'bigint')) then
          body := 'tsql.moment((carried).value::numeric)';
        elsif (source.type, target.type) = ('real', 'timestamp') then
          body := 'tsql.moment((carried).value::double precision)';
        end if;
        continue when body is null;
        if dialect.sybase and source.class = 'numeric' and target.class = 'int' and source.name = 'numeric' then
          body := replace(body, '(carried).value', format('tsql.scaled((carried).value, 38, 0, %L)',
            case target.type when 'integer' then 'INT' else upper(target.type) end));
        end if;
        if target.type = 'timestamp' then
          -- numbers of digits other than those of datetime and smalldatetime are datetime2's
          refused_fine := tsql.assignment_error(source.class, 'datetime2', dialect.sybase);
          execute format('create or replace function tsql.carried_to_timestamp(carried tsql.%s, digits integer)'
            ' returns timestamp language sql %s parallel safe return %s', carrier, volatility, case
            -- a body that uses its argument once is inlined
            when source.type = 'timestamp' then format('tsql.stored(%s, digits)', body)
            else format('case when digits in (1, 4) then %s else %s end',
              case
                when refused is not null then body
                when source.class = 'varchar' then 'case digits when 4 then tsql.to_datetime((carried).value)'
                  ' else tsql.to_smalldatetime((carried).value) end'
                else format('tsql.fitted(%s, digits)', body)
              end,
              -- a cast with a typmod rounds by itself
              case when refused_fine is null
                then format('pg_catalog."timestamp"(tsql.fitted_datetime2(%s, digits), digits)', body)
                else format('tsql.fail_assignment(%s, %L, ''datetime2'', digits)', refused_fine, source.class)
              end) end);
          arguments := format('tsql.%s, integer', carrier);
        elsif target.type = 'time' then
          execute format('create or replace function tsql.carried_to_time(carried tsql.%s, digits integer) returns time'
            ' language sql %s parallel safe return pg_catalog."time"(tsql.fitted_time(%s, digits), digits)',
            carrier, volatility, body);
          arguments := format('tsql.%s, integer', carrier);
        elsif target.type in ('varchar', 'bpchar') and source.class in ('varchar', 'varbinary', 'xml', 'sql_variant') then
          -- these types count characters of two units; a cast with a typmod cuts or refuses by itself
          execute format('create or replace function tsql.%I(carried tsql.%s, typmod integer) returns %s'
            ' language sql %s parallel safe return pg_catalog.%3$I(tsql.fitting(%5$s, typmod - 4)::%3$s, typmod, false)',
            'carried_to_' || target.type, carrier, target.type, volatility, body);
          arguments := format('tsql.%s, integer', carrier);
        elsif dialect.sybase and source.class = 'numeric' and target.type = 'numeric' then
          execute format('create or replace function tsql.carried_to_numeric(carried tsql.%s, typmod integer) returns numeric'
            ' language sql %s parallel safe return tsql.stored(%s, typmod, %s)', carrier, volatility, body,
            case source.name when 'numeric' then '(carried).money' else 'true' end);
          arguments := format('tsql.%s, integer', carrier);
        else
          execute format('create or replace function tsql.%I(carried tsql.%s) returns %s'
            ' language sql %s parallel safe return %s',
            'carried_to_' || replace(target.type, ' ', '_'), carrier, target.type, volatility, body);
          arguments := 'tsql.' || carrier;
        end if;
        if not exists (
          select from pg_cast
          where castsource = to_regtype('tsql.' || carrier) and casttarget = to_regtype(target.type)
        ) then
          -- also for arguments of functions
          execute format('create cast (tsql.%s as %s) with function tsql.%I(%s) as implicit',
            carrier, target.type, 'carried_to_' || replace(target.type, ' ', '_'), arguments);
        end if;
      end loop;
    end loop;
  end loop;
end
$$;

create or replace function tsql.demand_values(relation regclass, number integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  columns integer;
  identities integer;
begin
  -- identity and computed columns accept no value
  select count(*) filter (where attidentity = ''), count(*) filter (where attidentity <> '')
  into columns, identities
  from pg_attribute
  where attrelid = relation and attnum > 0 and not attisdropped and attgenerated = '';
  if identities > 0 and columns + identities = number then
    perform tsql.fail(8101, format('An explicit value for the identity column in table ''%s'' can only be specified '
      'when a column list is used and IDENTITY_INSERT is ON.', (select relname from pg_class where oid = relation)));
  elsif columns <> number then
    perform tsql.fail(213, 'Column name or number of supplied values does not match table definition.');
  end if;
end
$$;
comment on function tsql.demand_values(regclass, integer) is
'Error 213 if an INSERT without a column list cannot give a table this number of values; 8101 if the number includes the
identity column. It is volatile: it sees what has been committed while PostgreSQL waited for the table.';

create or replace function tsql.takes(relation regclass, number integer) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.demand_values(relation, number);
  return true;
end
$$;
comment on function tsql.takes(regclass, integer) is
'True, or the error of tsql.demand_values. It is immutable, and its arguments are constants: PostgreSQL evaluates it when it
plans the INSERT, and again after a change of the table.';

create or replace function tsql.takes_output(target regclass) returns boolean
language plpgsql stable
as $$
declare
  shown text;
  found name;
begin
  select relname into shown from pg_class where oid = target;
  if exists (select from pg_class where oid = target and relkind = 'v') then
    perform tsql.fail(330, format('The target ''%s'' of the OUTPUT INTO clause cannot be a view or common table expression.',
      shown));
  end if;
  -- constraints that implement a type are not T-SQL's
  if exists (
    select from pg_trigger
    where tgrelid = target and not tgisinternal and tgenabled <> 'D'
      and tgname not like 'T-SQL %'
  ) then
    perform tsql.fail(331, format('The target table ''%s'' of the OUTPUT INTO clause cannot have any enabled triggers.',
      shown));
  end if;
  select conname into found from pg_constraint where contype = 'f' and target in (conrelid, confrelid) limit 1;
  if found is not null then
    perform tsql.fail(332, format('The target table ''%s'' of the OUTPUT INTO clause cannot be on either side of a '
      '(primary key, foreign key) relationship. Found reference constraint ''%s''.', shown, found));
  end if;
  select conname into found from pg_constraint where contype = 'c' and target = conrelid limit 1;
  if found is not null then
    perform tsql.fail(333, format('The target table ''%s'' of the OUTPUT INTO clause cannot have any enabled check '
      'constraints or any enabled rules. Found check constraint or rule ''%s''.', shown, found));
  end if;
  return true;
end
$$;
comment on function tsql.takes_output(regclass) is
  'True for a table that OUTPUT INTO may fill; errors 330 to 333 for views and tables with triggers, foreign keys and checks.';
