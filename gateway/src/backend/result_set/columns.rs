//! The columns of a result set: the format in which PostgreSQL sends them, and their description for the client.

use crate::client::{Reply, TextSize};
use crate::convert::{client_type, copied, declared, from_pg, PgType, SqlType, Zone};
use crate::postgres::message::PgColumn;
use crate::program::{ResultType, Title};
use crate::tds::dialect::Dialect;
use crate::tds::tokens::columns::{self, Changes, Column, Origins, Traits};
use crate::tds::types::{encode_value, put_number, ConvertError, TypeInfo, TypeToken, Value};
use bytes::BytesMut;
use parking_lot::Mutex;
use std::sync::Arc;
use tsql::facts::types::Type;
use tsql::long_names::stored;
use tsql::quoting::{in_quotes, literal, quoted};
use tsql::resolve::names::Relation;

/// Bytes of a text pointer that name the table and the column.
const POINTER_HEAD: usize = 6;

/// One result column: how PostgreSQL sends it and how the client gets it.
#[derive(Debug)]
pub struct SentAs {
    pg_type: PgType,
    type_info: TypeInfo,
    /// A type of unlimited length, which `set textsize` limits.
    is_long: bool,
    /// Bytes of a value that is sent with only its byte order changed.
    number: Option<usize>,
    /// The index of the columns with its row's version, and the first bytes of its pointer.
    pointer: Option<(usize, [u8; POINTER_HEAD])>,
}

impl SentAs {
    fn new(pg_type: PgType, type_info: TypeInfo) -> SentAs {
        let is_long = matches!(pg_type, PgType::Text | PgType::Bytea | PgType::Array(_));
        let number = copied(type_info.token, pg_type).filter(|bytes| *bytes == type_info.size as usize);
        SentAs { pg_type, type_info, is_long, number, pointer: None }
    }

    /// A text or image with a pointer: table and column, then the row's version.
    fn pointing(mut self, column: &PgColumn) -> SentAs {
        let (table, number) = column.origin;
        let has_pointer = self.type_info.has_table_name() && !self.type_info.is_max();
        self.pointer = column.declared.pointer.as_ref().filter(|_| has_pointer).map(|pointer| {
            let mut head = [0; POINTER_HEAD];
            head[..4].copy_from_slice(&table.to_be_bytes());
            head[4..].copy_from_slice(&number.to_be_bytes());
            (pointer.version, head)
        });
        self
    }

    /// Inserts the pointer and the timestamp into the value that `out` ends with, from `start` on. `versions`: ctid and
    /// xmin of the row in each table.
    pub fn point(&self, start: usize, versions: &[Option<&[u8]>], out: &mut BytesMut) {
        let Some((version, head)) = self.pointer else { return };
        let (Some(Some(ctid)), Some(Some(xmin))) = (versions.get(2 * version), versions.get(2 * version + 1))
        else {
            return;
        };
        let pointer = [&head[..], ctid, xmin, &[0; 4], xmin].concat();
        // NULL has no pointer
        if let Some(value) = out.get_mut(start + 1..start + 1 + pointer.len()) {
            value.copy_from_slice(&pointer);
        }
    }

    /// A value of a row, None for NULL.
    pub fn value(&self, raw: Option<&[u8]>, zone: &Zone) -> Result<Value<'static>, ConvertError> {
        match raw {
            None => Ok(Value::Null),
            Some(raw) => from_pg(self.pg_type, raw, zone).map(Value::into_owned),
        }
    }

    /// Appends a value of a row, None for NULL.
    pub fn put(
        &self,
        raw: Option<&[u8]>,
        zone: &Zone,
        limit: TextSize,
        dialect: &Dialect,
        out: &mut BytesMut,
    ) -> Result<(), ConvertError> {
        let Some(raw) = raw else { return encode_value(&Value::Null, &self.type_info, dialect, out) };
        if Some(raw.len()) == self.number {
            put_number(&self.type_info, raw, dialect, out);
            return Ok(());
        }
        let value = from_pg(self.pg_type, raw, zone)?;
        let value = if self.is_long { limit.cut(value) } else { value };
        encode_value(&value, &self.type_info, dialect, out)
    }
}

/// The description of the last result set of a query; the next one mostly repeats it.
#[derive(Debug, Default)]
pub struct LastDescription(Mutex<Option<Description>>);

#[derive(Debug)]
struct Description {
    titles: Option<Box<[Title]>>,
    /// All other parts of a session's dialect never change.
    text_size: u32,
    tokens: Box<[u8]>,
    sent_as: Arc<[SentAs]>,
}

impl LastDescription {
    /// Like `put_columns` for the query's columns.
    pub fn put_columns(
        &self,
        pg_columns: &[PgColumn],
        names: Option<&[Title]>,
        reply: &mut Reply,
    ) -> Arc<[SentAs]> {
        if reply.gathering.is_some() {
            // the client gets no description
            return put_columns(pg_columns, names, reply);
        }
        let text_size = reply.dialect.text_size;
        let mut last = self.0.lock();
        if let Some(last) = &*last {
            if last.text_size == text_size && last.titles.as_deref() == names {
                reply.tokens.extend_from_slice(&last.tokens);
                reply.open_rows = Some(0);
                return last.sent_as.clone();
            }
        }
        let before = reply.tokens.len();
        let sent_as = put_columns(pg_columns, names, reply);
        let tokens = reply.tokens[before..].into();
        *last =
            Some(Description { titles: names.map(Into::into), text_size, tokens, sent_as: sent_as.clone() });
        sent_as
    }
}

/// Describes a result set that will have these columns.
pub fn put_description(columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) {
    put_columns(columns, names, reply);
}

/// How the rows of a server cursor are sent to the client.
#[derive(Clone, Copy)]
pub struct Fetched<'a> {
    /// The names of its columns, where they differ from PostgreSQL's.
    pub titles: Option<&'a [Title]>,
    /// The columns are described before the rows.
    pub described: bool,
    /// For rows of one table that the cursor may change: the last column, which is not sent, contains the version of
    /// each row; NULL for a deleted row.
    pub keyed: Option<&'a KeyedColumns>,
}

/// The columns of rows that a cursor may change.
#[derive(Debug)]
pub struct KeyedColumns {
    /// The table, and the column of it that each is.
    pub origins: Origins,
    /// The columns of the cursor's query.
    pub columns: Arc<[PgColumn]>,
}

/// Puts the description of a result set of these columns.
pub fn put_columns(pg_columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) -> Arc<[SentAs]> {
    let (sent_as, columns) = sent_columns(pg_columns, names, &reply.dialect);
    if let Some(gathering) = &mut reply.gathering {
        let titled = pg_columns.iter().enumerate();
        let gathered = titled.map(|(index, column)| gathered_type(column, title_of(names, index)));
        gathering.begin_set(gathered.collect());
        return sent_as;
    }
    columns::put(&mut reply.tokens, &columns, &reply.dialect);
    reply.open_rows = Some(0);
    sent_as
}

/// The columns of rows that are browsed: the last ones are hidden parts of keys.
#[derive(Debug)]
pub struct BrowsedColumns {
    pub origins: Origins,
    pub hidden: usize,
    /// Which columns are parts of keys.
    pub keys: Vec<bool>,
}

/// The same for browsed rows.
pub fn put_browsed_columns(
    pg_columns: &[PgColumn],
    names: Option<&[Title]>,
    browsed: &BrowsedColumns,
    reply: &mut Reply,
) -> Arc<[SentAs]> {
    let dialect = reply.dialect;
    let (sent_as, mut columns) = sent_columns(pg_columns, names, &dialect);
    let shown = columns.len().saturating_sub(browsed.hidden);
    for (index, column) in columns.iter_mut().enumerate() {
        column.traits.hidden = index >= shown;
        column.traits.key = browsed.keys.get(index) == Some(&true);
    }
    columns::put(&mut reply.tokens, &columns, &dialect);
    columns::put_colinfo(&mut reply.tokens, &columns, &browsed.origins, &dialect);
    reply.open_rows = Some(0);
    sent_as
}

/// The same for a server cursor. At 7.x its rows end with a hidden column with the status of the row (sp_cursorfetch,
/// RPC Considerations).
pub fn put_cursor_columns(pg_columns: &[PgColumn], fetched: Fetched<'_>, reply: &mut Reply) -> Arc<[SentAs]> {
    let dialect = reply.dialect;
    let pg_columns = fetched.keyed.map_or(pg_columns, |keyed| &keyed.columns);
    let (sent_as, mut columns) = sent_columns(pg_columns, fetched.titles, &dialect);
    let none = Origins::default();
    let origins = fetched.keyed.map_or(&none, |keyed| &keyed.origins);
    for (column, origin) in columns.iter_mut().zip(&origins.columns) {
        let is_own = origin.is_some() && !column.traits.identity && !column.traits.computed;
        column.traits.changes = if is_own { Changes::Yes } else { Changes::No };
    }
    let out = &mut reply.tokens;
    match (fetched.described, dialect.is_tds7()) {
        (true, true) => {
            columns.push(Column {
                name: String::from("rowstat"),
                type_info: TypeInfo::new(TypeToken::Int4, 4),
                traits: Traits { not_null: true, hidden: true, ..Traits::default() },
                table: None,
            });
            columns::put(out, &columns, &dialect);
            columns::put_colinfo(out, &columns, origins, &dialect);
        }
        (true, false) => columns::put(out, &columns, &dialect),
        (false, true) => columns::put_none(out, &dialect),
        // the client received them when the cursor was opened
        (false, false) => {}
    }
    reply.open_rows = Some(0);
    sent_as
}

/// The columns as they are sent to the client, and how each is encoded.
fn sent_columns(
    pg_columns: &[PgColumn],
    names: Option<&[Title]>,
    dialect: &Dialect,
) -> (Arc<[SentAs]>, Vec<Column>) {
    let columns = described_as(pg_columns, names, dialect);
    let sent_as = |(index, (pg_column, column)): (usize, (&PgColumn, &Column))| {
        let sent = sent_type(pg_column, title_of(names, index));
        SentAs::new(PgType::from_oid(sent.oid), column.type_info).pointing(pg_column)
    };
    (pg_columns.iter().zip(&columns).enumerate().map(sent_as).collect(), columns)
}

/// The columns as described to a client of the dialect.
pub fn described_as(pg_columns: &[PgColumn], names: Option<&[Title]>, dialect: &Dialect) -> Vec<Column> {
    let described = |(index, column): (usize, &PgColumn)| {
        let title = title_of(names, index);
        let SqlType { oid, typmod } = sent_type(column, title);
        let mut traits = column.declared.traits;
        if column.origin.0 != 0 && !traits.identity && !traits.computed {
            traits.changes = Changes::Unknown;
        }
        traits.not_null |= result_type(column, title).is_some_and(|known| known.not_null);
        Column {
            name: shown(column, title),
            type_info: client_type(PgType::from_oid(oid), typmod, own_type(column, title, dialect), dialect),
            traits,
            table: column.declared.pointer.as_ref().map(|pointer| pointer.table.clone()),
        }
    };
    pg_columns.iter().enumerate().map(described).collect()
}

/// The type of the values of a column whose rows are kept.
fn gathered_type(column: &PgColumn, title: Option<&Title>) -> SqlType {
    let sent = sent_type(column, title);
    match PgType::from_oid(sent.oid) {
        PgType::Text | PgType::Array(_) => SqlType::TEXT,
        _ => sent,
    }
}

/// The type in which PostgreSQL sends the column, with its modifier: types without an encoding here are sent as text.
/// Texts of all types are sent alike, and one that is computed has the length that T-SQL gives it.
fn sent_type(column: &PgColumn, title: Option<&Title>) -> SqlType {
    let pg_type = PgType::from_oid(column.oid);
    match result_type(column, title) {
        _ if pg_type.wants_text() => SqlType::TEXT,
        Some(ResultType { of, .. }) if of.is_text() && of.length.is_some() && pg_type.is_text() => {
            SqlType { oid: of.oid, typmod: of.typmod() }
        }
        _ => SqlType { oid: column.oid, typmod: column.typmod },
    }
}

fn title_of(titles: Option<&[Title]>, index: usize) -> Option<&Title> {
    titles.and_then(|titles| titles.get(index))
}

/// The T-SQL type, if it differs from that of PostgreSQL's type.
fn own_type(column: &PgColumn, title: Option<&Title>, dialect: &Dialect) -> Option<Type> {
    match result_type(column, title) {
        None => column.declared.of,
        Some(ResultType { of, .. }) if of.is_text() && title.is_some_and(|title| title.is_wide) => {
            declared::of_expression(&of.twin(), dialect)
        }
        Some(ResultType { of, .. }) => declared::of_expression(&of, dialect),
    }
}

/// The type of an expression, if known.
fn result_type(column: &PgColumn, title: Option<&Title>) -> Option<ResultType> {
    // the types of columns determine more expressions
    column.declared.result_type.or(title.and_then(|title| title.result_type))
}

/// Titles with the names and types of the columns' declarations.
pub fn own_titles(columns: &[PgColumn], titles: Option<&[Title]>) -> Vec<Title> {
    let own = |(index, column): (usize, &PgColumn)| {
        let title = title_of(titles, index);
        let declared = column.declared.of.map(|of| ResultType { of, not_null: false });
        Title {
            text: shown(column, title),
            is_own: false,
            result_type: result_type(column, title).or(declared),
            is_wide: title.is_some_and(|title| title.is_wide),
        }
    };
    columns.iter().enumerate().map(own).collect()
}

/// The heading of a column.
fn shown(column: &PgColumn, title: Option<&Title>) -> String {
    // a column of a derived table may be named otherwise than the table's column
    let shown = column.declared.shown.as_ref().filter(|shown| stored(shown) == column.name);
    match (title, shown) {
        (Some(title), None) => title.text.clone(),
        (Some(title), Some(_)) if !title.is_own => title.text.clone(),
        (_, Some(shown)) => shown.to_string(),
        // PostgreSQL's name of an unnamed column is empty in T-SQL
        (None, None) if column.name == "?column?" => String::new(),
        (None, None) => column.name.clone(),
    }
}

/// The SQL that gives to the columns of a new table what those of the query have: their T-SQL declarations, NOT NULL, and of
/// one table its identity (SQL Server, "SELECT - INTO Clause").
pub fn declaring(
    created: &Relation,
    columns: &[PgColumn],
    names: Option<&[Title]>,
    of_one_table: bool,
    dialect: &Dialect,
) -> String {
    let (mut named, mut declarations, mut not_null) = (Vec::new(), Vec::new(), Vec::new());
    for (index, column) in columns.iter().enumerate() {
        let title = title_of(names, index);
        let name = shown(column, title);
        let of = own_type(column, title, dialect).and_then(declared::written).unwrap_or_default();
        named.push(literal(&column.name));
        declarations.push(literal(&format!("{} {of}", in_quotes(&name))));
        let demands = column.declared.traits.not_null
            || result_type(column, title).is_some_and(|result| result.not_null);
        not_null.extend(demands.then(|| literal(&column.name)));
    }
    let [named, declarations, not_null] = [named, declarations, not_null].map(|list| list.join(", "));
    let mut identities = columns.iter().filter(|column| column.declared.traits.identity);
    let identity = match (identities.next(), identities.next()) {
        (Some(PgColumn { name, origin: (table, number), .. }), None) if of_one_table => {
            format!("{}, {table}, {number}::smallint", literal(name))
        }
        _ => String::from("null, null, null"),
    };
    let (table, share) = match created.is_global() {
        // its draft
        true => (
            format!("pg_temp.{}", quoted(&created.own)),
            format!("; call tsql.share_draft({})", literal(&created.own)),
        ),
        false => (created.sql.clone(), String::new()),
    };
    let table = literal(&table);
    format!(
        "call tsql.declare_columns({table}, array[{named}]::text[], array[{declarations}]::text[]); \
         call tsql.inherit({table}, array[{not_null}]::text[], {identity}); \
         call tsql.watch_binaries({table}); call tsql.watch_rowversions({table}){share}"
    )
}

/// The formats in which PostgreSQL sends these columns, 0 for text and 1 for binary.
pub fn formats(columns: &[PgColumn]) -> Vec<i16> {
    columns.iter().map(|column| i16::from(!PgType::from_oid(column.oid).wants_text())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Settings;
    use crate::convert::{column_type, Declaration, SqlType};
    use crate::tds::dialect::{Endian, Version};
    use proptest::prelude::*;

    proptest! {
        /// Numbers sent unchanged have the same bytes as their values.
        #[test]
        fn numbers_are_sent_as_their_values(bits: u64) {
            let raw = bits.to_be_bytes();
            for version in [Version::Tds50, Version::Tds74] {
                for endian in [Endian::Big, Endian::Little] {
                    let dialect = Dialect { endian, ..Dialect::new(version) };
                    for pg_type in [PgType::Int2, PgType::Int4, PgType::Int8, PgType::Float4, PgType::Float8] {
                        let type_info = column_type(pg_type, -1, &dialect);
                        let sent_as = SentAs::new(pg_type, type_info);
                        let raw = &raw[..type_info.size as usize];
                        prop_assert_eq!(sent_as.number, Some(raw.len()));
                        let (mut found, mut expected) = (BytesMut::new(), BytesMut::new());
                        let text_size = Settings::new(&dialect, false).text_size;
                        sent_as.put(Some(raw), &Zone::UTC, text_size, &dialect, &mut found).unwrap();
                        let value = from_pg(pg_type, raw, &Zone::UTC).unwrap();
                        encode_value(&value, &type_info, &dialect, &mut expected).unwrap();
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn a_description_is_repeated_for_the_same_titles_and_size() {
        let text = PgColumn {
            name: "a".into(),
            oid: SqlType::TEXT.oid,
            typmod: -1,
            origin: (0, 0),
            declared: Declaration::default(),
        };
        let (last, columns) = (LastDescription::default(), [text]);
        let mut reply = Reply::new(Dialect::new(Version::Tds50));
        let titles = ["a", "A"].map(|title| vec![Title::given(title)]);
        let cases = [(None, 100), (Some(&titles[0]), 100), (Some(&titles[1]), 100), (Some(&titles[1]), 200)];
        for (titles, text_size) in cases.into_iter().flat_map(|case| [case, case]) {
            reply.dialect.text_size = text_size;
            let names = titles.map(Vec::as_slice);
            reply.tokens.clear();
            put_columns(&columns, names, &mut reply);
            let expected = reply.tokens.split();
            reply.open_rows = None;
            let sent_as = last.put_columns(&columns, names, &mut reply);
            assert_eq!((&reply.tokens, reply.open_rows, sent_as.len()), (&expected, Some(0), 1));
        }
    }
}
