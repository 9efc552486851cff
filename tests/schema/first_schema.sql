SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA log;
ALTER SCHEMA log OWNER TO ringlog_owner;
CREATE SCHEMA online;
ALTER SCHEMA online OWNER TO ringlog_owner;
CREATE SCHEMA ringlog;
ALTER SCHEMA ringlog OWNER TO ringlog_owner;
CREATE FUNCTION ringlog.find_signals(pattern text DEFAULT '%'::text) RETURNS TABLE(signal text, table_name text, column_name text, type text, unit text, description text, limit_low double precision, limit_high double precision)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  select
    found.signal,
    found.table_name,
    found.column_name,
    found.type,
    found.unit,
    found.description,
    found.limit_low,
    found.limit_high
  from ringlog.signal as found
  where found.valid_to is null and found.signal like find_signals.pattern
  order by found.signal
$$;
ALTER FUNCTION ringlog.find_signals(pattern text) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.find_signals(pattern text) IS 'The signals of today whose name is like the pattern (% is any text, _ any character), by name.';
CREATE FUNCTION ringlog.get_latest(name text) RETURNS TABLE("time" timestamp with time zone, value double precision)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
  place record;
begin
  select signal.table_name, signal.column_name, signal.type into place
  from ringlog.signal
  where signal.signal = name and signal.valid_to is null;
  if not found then
    raise exception 'get_latest: there is no signal ''%'' now', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  if place.type like 'varchar%' then
    raise exception 'get_latest: signal ''%'' is text (%), not a number', name, place.type
      using errcode = 'datatype_mismatch', hint = format('Call get_%s.', place.table_name);
  end if;
  return query execute format(
    'select ring."time", ring.%I%s::double precision '
    'from online.%I as ring where ring."time" is not null '
    'order by ring."time" desc, ring.seq_no desc limit 1',
    place.column_name,
    case place.type when 'bit' then '::integer' end,
    place.table_name
  );
end
$$;
ALTER FUNCTION ringlog.get_latest(name text) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.get_latest(name text) IS 'Time and value of a signal in the latest row of its ring; no row when the ring was never written. A value
null is a row without a reading; a bit is 0 or 1; a bigint beyond 2^53 is rounded.
Errors: no such signal now (42704), a varchar signal (42804).';
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE online.magnets (
    seq_no integer NOT NULL,
    "time" timestamp with time zone,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE online.magnets OWNER TO ringlog_owner;
CREATE FUNCTION ringlog.get_magnets(n integer DEFAULT 1) RETURNS SETOF online.magnets
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  select ring.*
  from "online"."magnets" as ring
  where ring."time" is not null
  order by ring."time" desc, ring.seq_no desc
  limit "get_magnets".n
$$;
ALTER FUNCTION ringlog.get_magnets(n integer) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.get_magnets(n integer) IS 'The latest n rows of the ring, newest first; rows never written are left out. n null: all of them.';
CREATE FUNCTION ringlog.get_magnets_at(at timestamp with time zone) RETURNS SETOF online.magnets
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  select in_force.*
  from (
    (
      select "ring"."seq_no", "ring"."time", "ring"."current", "ring"."on", "ring"."state"
      from "online"."magnets" as ring
      where ring."time" <= "get_magnets_at".at
      order by ring."time" desc, ring.seq_no desc
      limit 1
    )
    union all
    (
      select "logged"."seq_no", "logged"."time", "logged"."current", "logged"."on", "logged"."state"
      from "log"."magnets" as logged
      where logged."time" <= "get_magnets_at".at
      order by logged."time" desc, logged.seq_no desc
      limit 1
    )
  ) as in_force
  order by in_force."time" desc, in_force.seq_no desc
  limit 1
$$;
ALTER FUNCTION ringlog.get_magnets_at(at timestamp with time zone) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.get_magnets_at(at timestamp with time zone) IS 'The row in force at a time: of ring and log the newest that is not newer than this. No row when the table
has none that old.';
CREATE TABLE log.magnets (
    seq_no integer NOT NULL,
    "time" timestamp with time zone NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
)
PARTITION BY RANGE ("time");
ALTER TABLE log.magnets OWNER TO ringlog_owner;
CREATE FUNCTION ringlog.get_magnets_range(from_time timestamp with time zone DEFAULT NULL::timestamp with time zone, to_time timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT NULL::integer) RETURNS SETOF log.magnets
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  select logged.*
  from "log"."magnets" as logged
  where logged."time" >= coalesce("get_magnets_range".from_time, '-infinity')
    and logged."time" < coalesce("get_magnets_range".to_time, 'infinity')
  order by logged."time", logged.seq_no
  limit "get_magnets_range".max_rows
$$;
ALTER FUNCTION ringlog.get_magnets_range(from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.get_magnets_range(from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) IS 'The rows of the log from from_time on and before to_time, oldest first, and no more than max_rows of them.
A bound left out or null is none.';
CREATE FUNCTION ringlog.get_signal(name text, from_time timestamp with time zone DEFAULT NULL::timestamp with time zone, to_time timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT NULL::integer) RETURNS TABLE("time" timestamp with time zone, value double precision)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_variable
declare
  place record;
  rows_left integer := max_rows;
  rows_got integer;
begin
  if not exists (select from ringlog.signal where signal.signal = name) then
    raise exception 'get_signal: there is no signal ''%''', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  for place in
    select
      signal.table_name,
      signal.column_name,
      signal.type,
      -- the first signal of a column has all rows from before too, such as rows brought in late
      greatest(from_time, case when exists (
        select from ringlog.signal as earlier
        where earlier.table_name = signal.table_name
          and earlier.column_name = signal.column_name
          and earlier.valid_from < signal.valid_from
      ) then signal.valid_from else '-infinity' end) as begins,
      least(to_time, signal.valid_to, 'infinity') as ends
    from ringlog.signal
    where signal.signal = name
    order by signal.valid_from
  loop
    if place.type like 'varchar%' then
      raise exception 'get_signal: signal ''%'' is text (%), not a number', name, place.type
        using errcode = 'datatype_mismatch', hint = format('Call get_%s_range.', place.table_name);
    end if;
    return query execute format(
      'select logged."time", logged.%I%s::double precision '
      'from log.%I as logged where logged."time" >= $1 and logged."time" < $2 '
      'order by logged."time", logged.seq_no limit $3',
      place.column_name,
      case place.type when 'bit' then '::integer' end,
      place.table_name
    ) using place.begins, place.ends, rows_left;
    get diagnostics rows_got = row_count;
    rows_left := rows_left - rows_got;
  end loop;
end
$_$;
ALTER FUNCTION ringlog.get_signal(name text, from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.get_signal(name text, from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) IS 'What the log has of a signal from from_time on and before to_time, oldest first, and no more than max_rows
rows; a bound left out or null is none. It follows the signal through the columns it has had (see
ringlog.signal). A value null is a row without a reading; a bit is 0 or 1; a bigint beyond 2^53 is rounded.
Errors: a signal that never was (42704), a varchar signal (42804).';
CREATE FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) RETURNS record
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  select newest.seq_no, newest."time"
  from "online"."magnets" as newest
  where newest."time" = (select max(ring."time") from "online"."magnets" as ring)
  -- of several rows with this time, the one where the ring goes on
  order by
    (select next."time" from "online"."magnets" as next where next.seq_no = newest.seq_no % 5 + 1)
      is distinct from newest."time" desc,
    newest.seq_no desc
  limit 1
$$;
ALTER FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) IS 'seq_no and time of the latest row of the ring, null for a ring never written: where a writer goes on.';
CREATE FUNCTION ringlog.put_magnets(r online.magnets) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
  latest integer;
  period timestamptz;
begin
  if isfinite(r."time") is not true then
    if r."time" is null then
      raise exception '%: time must not be null', 'put_magnets' using errcode = 'not_null_violation';
    end if;
    raise exception '%: time must not be %', 'put_magnets', r."time" using errcode = 'datetime_field_overflow';
  end if;
  if r.seq_no is null then
    -- two callers that leave seq_no out must not take the same row
    perform pg_advisory_xact_lock(1919512167, '"online"."magnets"'::regclass::oid::integer);
    select newest.seq_no into latest
    from "online"."magnets" as newest
    where newest."time" = (select max(ring."time") from "online"."magnets" as ring)
    order by
      (select next."time" from "online"."magnets" as next where next.seq_no = newest.seq_no % 5 + 1)
        is distinct from newest."time" desc,
      newest.seq_no desc
    limit 1;
    r.seq_no := latest;
    if not exists (
      select from "online"."magnets" as ring
      where ring.seq_no = latest and ring."time" = r."time" and (ring.*) *= r
    ) then
      r.seq_no := coalesce(latest % 5 + 1, 1);
    end if;
  elsif r.seq_no not between 1 and 5 then
    raise exception '%: seq_no % is outside 1 to %', 'put_magnets', r.seq_no, 5
      using errcode = 'check_violation';
  end if;
  update "online"."magnets" as ring
  set ("time", "current", "on", "state") = row (r."time", "r"."current", "r"."on", "r"."state")
  where ring.seq_no = r.seq_no and (ring."time" <= r."time" or ring."time" is null);
  if (r.seq_no - 1) % 1 <> 0 then
    return 0;
  end if;
  if NULL::interval is not null then
    -- of two callers in one period only the first is logged
    perform pg_advisory_xact_lock(1919512167, '"online"."magnets"'::regclass::oid::integer);
    period := date_bin(NULL::interval, r."time", timestamptz '2000-01-01 00:00+00');
    if exists (
      select from "log"."magnets" as logged
      where logged."time" >= period and logged."time" < period + NULL::interval
    ) then
      return 0;
    end if;
  end if;
  insert into "log"."magnets" (seq_no, "time", "current", "on", "state")
  values (r.seq_no, r."time", "r"."current", "r"."on", "r"."state")
  on conflict ("time", seq_no) do nothing;
  if not found and not exists (
    select from "log"."magnets" as logged
    where logged."time" = r."time" and logged.seq_no = r.seq_no
      and row ("logged"."seq_no", "logged"."time", "logged"."current", "logged"."on", "logged"."state")::"online"."magnets" *= r
  ) then
    raise exception '%: the log has another row of seq_no % at %', 'put_magnets', r.seq_no, r."time"
      using errcode = 'unique_violation';
  end if;
  return 0;
end
$$;
ALTER FUNCTION ringlog.put_magnets(r online.magnets) OWNER TO ringlog_owner;
COMMENT ON FUNCTION ringlog.put_magnets(r online.magnets) IS 'Stores a row: in the ring unless the row there has a newer time, and in the log as the
table''s log policy says, both in one transaction. Returns 0.
seq_no left out is the row after the latest; a row that equals the latest is that row again.
The same row may be sent any number of times and is stored once.
Errors, which write nothing: time null (23502) or infinite (22008), seq_no outside the ring (23514),
another row of this seq_no and time in the log (23505).';
CREATE TABLE log.magnets_2026w47 (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_2026w47 OWNER TO ringlog_owner;
CREATE TABLE log.magnets_2026w48 (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_2026w48 OWNER TO ringlog_owner;
CREATE TABLE log.magnets_2026w49 (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_2026w49 OWNER TO ringlog_owner;
CREATE TABLE log.magnets_2026w50 (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_2026w50 OWNER TO ringlog_owner;
CREATE TABLE log.magnets_2026w51 (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_2026w51 OWNER TO ringlog_owner;
CREATE TABLE log.magnets_default (
    seq_no integer CONSTRAINT magnets_seq_no_not_null NOT NULL,
    "time" timestamp with time zone CONSTRAINT magnets_time_not_null NOT NULL,
    current real,
    "on" boolean,
    state character varying(8)
);
ALTER TABLE log.magnets_default OWNER TO ringlog_owner;
CREATE TABLE ringlog.logged_table (
    table_name text NOT NULL,
    description text NOT NULL,
    rows integer NOT NULL,
    cycle double precision NOT NULL,
    log_nth integer NOT NULL,
    log_period double precision,
    retention text
);
ALTER TABLE ringlog.logged_table OWNER TO ringlog_owner;
COMMENT ON TABLE ringlog.logged_table IS 'tables of the facility';
COMMENT ON COLUMN ringlog.logged_table.rows IS 'size of the ring';
COMMENT ON COLUMN ringlog.logged_table.cycle IS 'seconds from row to row';
COMMENT ON COLUMN ringlog.logged_table.log_nth IS 'rows 1, 1 + n, … of the ring go to the log';
COMMENT ON COLUMN ringlog.logged_table.log_period IS 'seconds; one row a period goes to the log';
COMMENT ON COLUMN ringlog.logged_table.retention IS 'interval that log rows are kept; null: for ever';
CREATE TABLE ringlog.procedure (
    name text NOT NULL,
    source text NOT NULL,
    definition text NOT NULL
);
ALTER TABLE ringlog.procedure OWNER TO ringlog_owner;
COMMENT ON TABLE ringlog.procedure IS 'what the installer has made, so that it can renew what is not so any more';
COMMENT ON COLUMN ringlog.procedure.source IS 'digest of the text it was made of';
COMMENT ON COLUMN ringlog.procedure.definition IS 'digest of what PostgreSQL made of it';
CREATE TABLE ringlog.signal (
    signal text NOT NULL,
    table_name text NOT NULL,
    column_name text NOT NULL,
    type text NOT NULL,
    unit text NOT NULL,
    description text NOT NULL,
    limit_low double precision,
    limit_high double precision,
    valid_from timestamp with time zone DEFAULT now() NOT NULL,
    valid_to timestamp with time zone
);
ALTER TABLE ringlog.signal OWNER TO ringlog_owner;
COMMENT ON TABLE ringlog.signal IS 'where each signal is and has been, with what unit, description and limits';
COMMENT ON COLUMN ringlog.signal.type IS 'as in the facility file';
COMMENT ON COLUMN ringlog.signal.valid_to IS 'null: now';
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_2026w47 FOR VALUES FROM ('2026-11-16 09:00:00+09') TO ('2026-11-23 09:00:00+09');
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_2026w48 FOR VALUES FROM ('2026-11-23 09:00:00+09') TO ('2026-11-30 09:00:00+09');
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_2026w49 FOR VALUES FROM ('2026-11-30 09:00:00+09') TO ('2026-12-07 09:00:00+09');
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_2026w50 FOR VALUES FROM ('2026-12-07 09:00:00+09') TO ('2026-12-14 09:00:00+09');
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_2026w51 FOR VALUES FROM ('2026-12-14 09:00:00+09') TO ('2026-12-21 09:00:00+09');
ALTER TABLE ONLY log.magnets ATTACH PARTITION log.magnets_default DEFAULT;
INSERT INTO log.magnets_default VALUES (1, '2026-01-05 09:00:00+09', 0.5, true, 'ready');
INSERT INTO log.magnets_default VALUES (2, '2026-01-05 09:00:01+09', 1.5, true, 'ready');
INSERT INTO log.magnets_default VALUES (3, '2026-01-05 09:00:02+09', 2.5, true, 'ready');
INSERT INTO log.magnets_default VALUES (4, '2026-01-05 09:00:03+09', 3.5, true, 'ready');
INSERT INTO online.magnets VALUES (5, NULL, NULL, NULL, NULL);
INSERT INTO online.magnets VALUES (1, '2026-01-05 09:00:00+09', 0.5, true, 'ready');
INSERT INTO online.magnets VALUES (2, '2026-01-05 09:00:01+09', 1.5, true, 'ready');
INSERT INTO online.magnets VALUES (3, '2026-01-05 09:00:02+09', 2.5, true, 'ready');
INSERT INTO online.magnets VALUES (4, '2026-01-05 09:00:03+09', 3.5, true, 'ready');
INSERT INTO ringlog.logged_table VALUES ('magnets', '', 5, 1, 1, NULL, NULL);
INSERT INTO ringlog.procedure VALUES ('get_signal', 'aa2c3baca5911bcd695d2e675ad1b9f4f4b5ecf633ab2f123443f0832f57fe50', '3890769ae97467c73aeeb8bc615668ce95f8e9c5df3fb824290edb2e28c0aaad');
INSERT INTO ringlog.procedure VALUES ('get_latest', '6919f5437ce6ca73ce1cff435f076609fd5cbf56663190cb8e4434992184da5f', '68318a8e292debeca143f1806b138a3a841ec1ca3a6a8af34ef43857c746434e');
INSERT INTO ringlog.procedure VALUES ('find_signals', '92b0bf4962cb7435d68c0af40e51ab5676a7bec52bee3df06f495179fce711df', 'df45190b3a66f10c087ec96adb8b4564bf66c940bd8bdef4e80d31569e62d0d1');
INSERT INTO ringlog.procedure VALUES ('put_magnets', '998a904a29c7f2973c1d883d80e7763dc914fbcefd84658eff1a320c35219ec1', 'ce2fa9cf85609b15c6b5ca7536df088adb2e09bb36cb80311401f5e2395a389f');
INSERT INTO ringlog.procedure VALUES ('get_magnets', '83799dc2fed4364ef0037c0a97a603ca8de8ec05b3c68fc8e20fcad6d20d15b6', '998b0d9bb6b34a6dc6ea8a199b6d5db4d453ed2637dcd3adaecf40038031ddcc');
INSERT INTO ringlog.procedure VALUES ('get_magnets_at', '66ca647101569e5c4b2f660e0d07d240a9fea6ca16ab34aa91f99ad5ad42e5b5', '54a1baef353fbc5ad15b3c81fd9e92861b935c453c3c5b5828806b79075f751d');
INSERT INTO ringlog.procedure VALUES ('get_magnets_range', 'e9fa7a997b6bd51fc6a96ff20034c8b19d3564a4cadd24df3fd067370cbb85ba', 'a6b126609a9b55a62fa0d8ef82da60ab566311011cbfb13d6e97fcc967a7aea2');
INSERT INTO ringlog.procedure VALUES ('last_magnets', 'e6af64312fe147c60bdd215916de6e3b11d0166e4c83a7e5e6655d26e7a3f665', '1d48c9861356d1bdb8121938ca818f065cf58e8d4ab337d9dc2a67a09d88854d');
INSERT INTO ringlog.signal VALUES ('magnets/current_adc', 'magnets', 'current', 'real', 'A', 'all magnets', -500, 500, '2026-11-21 01:39:32.644726+09', NULL);
INSERT INTO ringlog.signal VALUES ('magnets/on', 'magnets', 'on', 'bit', '', '', NULL, NULL, '2026-11-21 01:39:32.644726+09', NULL);
INSERT INTO ringlog.signal VALUES ('magnets/state', 'magnets', 'state', 'varchar(8)', '', '', NULL, NULL, '2026-11-21 01:39:32.644726+09', NULL);
ALTER TABLE ONLY log.magnets
    ADD CONSTRAINT magnets_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_2026w47
    ADD CONSTRAINT magnets_2026w47_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_2026w48
    ADD CONSTRAINT magnets_2026w48_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_2026w49
    ADD CONSTRAINT magnets_2026w49_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_2026w50
    ADD CONSTRAINT magnets_2026w50_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_2026w51
    ADD CONSTRAINT magnets_2026w51_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY log.magnets_default
    ADD CONSTRAINT magnets_default_pkey PRIMARY KEY ("time", seq_no);
ALTER TABLE ONLY online.magnets
    ADD CONSTRAINT magnets_pkey PRIMARY KEY (seq_no);
ALTER TABLE ONLY ringlog.logged_table
    ADD CONSTRAINT logged_table_pkey PRIMARY KEY (table_name);
ALTER TABLE ONLY ringlog.procedure
    ADD CONSTRAINT procedure_pkey PRIMARY KEY (name);
ALTER TABLE ONLY ringlog.signal
    ADD CONSTRAINT signal_pkey PRIMARY KEY (signal, valid_from);
CREATE INDEX magnets_time_idx ON online.magnets USING btree ("time", seq_no);
CREATE UNIQUE INDEX signal_now ON ringlog.signal USING btree (signal) WHERE (valid_to IS NULL);
CREATE INDEX signal_place ON ringlog.signal USING btree (table_name, column_name, valid_from);
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_2026w47_pkey;
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_2026w48_pkey;
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_2026w49_pkey;
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_2026w50_pkey;
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_2026w51_pkey;
ALTER INDEX log.magnets_pkey ATTACH PARTITION log.magnets_default_pkey;
GRANT USAGE ON SCHEMA log TO daq_writer;
GRANT USAGE ON SCHEMA log TO daq_reader;
GRANT USAGE ON SCHEMA online TO daq_writer;
GRANT USAGE ON SCHEMA online TO daq_reader;
GRANT USAGE ON SCHEMA ringlog TO daq_writer;
GRANT USAGE ON SCHEMA ringlog TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.find_signals(pattern text) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.find_signals(pattern text) TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.get_latest(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.get_latest(name text) TO daq_reader;
GRANT SELECT ON TABLE online.magnets TO daq_reader;
GRANT SELECT(seq_no) ON TABLE online.magnets TO daq_writer;
GRANT SELECT("time") ON TABLE online.magnets TO daq_writer;
REVOKE ALL ON FUNCTION ringlog.get_magnets(n integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.get_magnets(n integer) TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.get_magnets_at(at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.get_magnets_at(at timestamp with time zone) TO daq_reader;
GRANT SELECT ON TABLE log.magnets TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.get_magnets_range(from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.get_magnets_range(from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.get_signal(name text, from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.get_signal(name text, from_time timestamp with time zone, to_time timestamp with time zone, max_rows integer) TO daq_reader;
REVOKE ALL ON FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) TO daq_reader;
GRANT ALL ON FUNCTION ringlog.last_magnets(OUT seq_no integer, OUT "time" timestamp with time zone) TO daq_writer;
REVOKE ALL ON FUNCTION ringlog.put_magnets(r online.magnets) FROM PUBLIC;
GRANT ALL ON FUNCTION ringlog.put_magnets(r online.magnets) TO daq_writer;
GRANT SELECT ON TABLE ringlog.logged_table TO daq_reader;
GRANT SELECT ON TABLE ringlog.signal TO daq_reader;
