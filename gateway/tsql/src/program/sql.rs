//! SQL for PostgreSQL and its variables.

use super::Bound;
use crate::translate::place_of;
use std::sync::Arc;

/// How the name of a global temporary table begins.
pub(super) const GLOBAL: &str = "tsql_global.\"##";

/// SQL with `$1`, `$2` … for its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sql {
    /// What stands before, between and behind the variables.
    pieces: Vec<String>,
    /// Which variable stands between two pieces, as an index into `variables`.
    places: Vec<usize>,
    /// By their names with @, or `?1`, in the order of `$n`.
    pub variables: Vec<String>,
    /// It calls functions that are none of T-SQL's, and may change something.
    pub calls: bool,
    /// See [`keeps`](super::keeps).
    pub keeps: bool,
    /// The tables and views that it names, as it names them; functions that look into the catalogue, with ().
    pub tables: Vec<String>,
    /// Conditions in it that name no variables, and fail where it does not fit its tables.
    pub guards: Vec<String>,
    /// The tables that are locked before it runs, so that others do not write to them.
    pub locks: Vec<String>,
    /// It depends on the declarations of its tables.
    pub bound: Option<Arc<Bound>>,
    /// It selects rows of tables, and might select which versions these are.
    row_sources: Option<Arc<RowSources>>,
}

/// A table whose rows a query selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSource {
    /// What its columns are qualified by.
    pub qualifier: String,
    /// In SQL.
    pub table: String,
    /// As the query names it.
    pub shown: String,
}

#[derive(Debug, PartialEq, Eq)]
struct RowSources {
    /// Where the select list ends: a piece, and bytes of it.
    piece: usize,
    byte: usize,
    sources: Vec<RowSource>,
}

impl Sql {
    /// The error names a `$n` that is no variable.
    pub fn read(text: &str, variables: Vec<String>) -> Result<Sql, String> {
        let mut sql = Sql { variables, calls: true, ..Sql::default() };
        let mut piece = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '\'', '"']) {
            let (before, found) = rest.split_at(at);
            piece.push_str(before);
            let Some(quote) = found.chars().next().filter(|character| *character != '$') else {
                let digits = found[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(found.len() - 1);
                let (place, tail) = found.split_at(1 + digits);
                let index: Option<usize> = place[1..].parse().ok();
                let index = index.and_then(|number| number.checked_sub(1));
                let index = index.filter(|index| *index < sql.variables.len());
                sql.places.push(index.ok_or_else(|| format!("'{place}' is not a variable"))?);
                sql.pieces.push(std::mem::take(&mut piece));
                rest = tail;
                continue;
            };
            // a quote that is doubled begins the next text at once, which makes no difference
            let end = found[1..].find(quote).map_or(found.len(), |end| end + 2);
            piece.push_str(&found[..end]);
            rest = &found[end..];
        }
        piece.push_str(rest);
        sql.pieces.push(piece);
        Ok(sql)
    }

    /// SQL that names no variable.
    pub fn plain(text: impl Into<String>) -> Sql {
        Sql { pieces: vec![text.into()], calls: true, ..Sql::default() }
    }

    /// The same without so many bytes at its beginning, in which no variable stands.
    pub fn behind(&self, head: usize) -> Sql {
        let mut sql = self.part();
        if let Some(first) = sql.pieces.first_mut() {
            *first = first.get(head..).unwrap_or_default().to_owned();
        }
        sql
    }

    /// The same as a part of other SQL.
    fn part(&self) -> Sql {
        Sql { bound: None, row_sources: None, ..self.clone() }
    }

    /// Notes the tables whose rows it selects. `list_end`: where its select list ends, in bytes.
    pub fn note_sources(&mut self, list_end: usize, sources: Vec<RowSource>) {
        let mut start = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            if list_end <= start + piece.len() {
                let (piece, byte) = (index, list_end - start);
                self.row_sources = Some(Arc::new(RowSources { piece, byte, sources }));
                return;
            }
            let place = self.places.get(index).map_or(0, |variable| format!("${}", variable + 1).len());
            start += piece.len() + place;
        }
    }

    /// The same with two more columns for each table whose rows it selects: the row's place and its writer.
    pub fn with_versions(&self) -> Option<(Sql, &[RowSource])> {
        self.with_columns(|qualifier| format!(", {qualifier}.ctid, {qualifier}.xmin"))
    }

    /// The same with one more column for each of them, as `where current of` finds the row by.
    pub fn with_places(&self) -> Option<(Sql, &[RowSource])> {
        self.with_columns(|qualifier| format!(", {}", place_of(qualifier)))
    }

    fn with_columns(&self, of: impl Fn(&str) -> String) -> Option<(Sql, &[RowSource])> {
        let sources = self.row_sources();
        let columns: String = sources.iter().map(|source| of(&source.qualifier)).collect();
        Some((self.with_items(&columns)?, sources))
    }

    /// The same with more columns behind those of its select list: `, a, b`.
    pub fn with_items(&self, items: &str) -> Option<Sql> {
        let RowSources { piece, byte, .. } = self.row_sources.as_deref()?;
        let mut sql = self.part();
        sql.pieces.get_mut(*piece)?.insert_str(*byte, items);
        Some(sql)
    }

    /// The tables whose rows it selects, where they are rows of tables.
    pub fn row_sources(&self) -> &[RowSource] {
        self.row_sources.as_deref().map_or(&[], |of| &of.sources)
    }

    /// Whether it names the variable of this place in `variables`.
    pub fn uses(&self, variable: usize) -> bool {
        self.places.contains(&variable)
    }

    /// The same behind other words.
    pub fn following(&self, words: &str) -> Sql {
        let mut sql = self.part();
        if let Some(first) = sql.pieces.first_mut() {
            first.insert_str(0, words);
        }
        sql
    }

    /// The same before other words.
    pub fn followed_by(&self, words: &str) -> Sql {
        let mut sql = self.part();
        if let Some(last) = sql.pieces.last_mut() {
            last.push_str(words);
        }
        sql
    }

    /// The SQL with `$n` for variable n, followed by what `cast` says of it.
    pub fn text(&self, cast: impl Fn(usize) -> String) -> String {
        let mut text = String::with_capacity(self.pieces.iter().map(|piece| piece.len() + 4).sum());
        for (index, piece) in self.pieces.iter().enumerate() {
            text.push_str(piece);
            if let Some(variable) = self.places.get(index) {
                text.push_str(&format!("${}{}", variable + 1, cast(*variable)));
            }
        }
        text
    }

    /// The SQL with `$n` for variable n.
    pub fn numbered(&self) -> String {
        self.text(|_| String::new())
    }

    /// Bytes of it, nearly.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(String::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it holds, nearly.
    pub fn size(&self) -> usize {
        self.len() + self.bound.as_ref().map_or(0, |bound| bound.size())
    }

    /// Whether it begins so, letter by letter.
    pub fn starts_with(&self, text: &str) -> bool {
        self.pieces.first().is_some_and(|piece| piece.starts_with(text))
    }

    /// Whether this stands in it, not around a variable.
    pub fn contains(&self, text: &str) -> bool {
        self.pieces.iter().any(|piece| piece.contains(text))
    }

    /// The global temporary tables that it names, without ##.
    pub fn globals(&self) -> impl Iterator<Item = &str> {
        let named = self.pieces.iter().flat_map(|piece| piece.split(GLOBAL).skip(1));
        named.filter_map(|rest| rest.split('"').next())
    }

    /// Whether this is its first word.
    pub fn begins_with(&self, word: &str) -> bool {
        let first = self.pieces.first().and_then(|piece| words(piece).next());
        first.is_some_and(|first| first.eq_ignore_ascii_case(word))
    }

    /// Whether it looks at tables: it has a FROM that is no part of an expression, as in `extract(year from a)`
    /// and `a is distinct from b`.
    pub fn reads_tables(&self) -> bool {
        let mut before = "";
        for piece in &self.pieces {
            for word in words(piece) {
                if word.eq_ignore_ascii_case("from") && !before.eq_ignore_ascii_case("distinct") {
                    return true;
                }
                before = word;
            }
        }
        false
    }

    /// The variable that is all it selects.
    pub fn as_variable(&self) -> Option<&str> {
        let ([before, after], [place]) = (self.pieces.as_slice(), self.places.as_slice()) else {
            return None;
        };
        let is_bare = before.trim() == "select" && after.trim().is_empty();
        self.variables.get(*place).filter(|_| is_bare).map(String::as_str)
    }
}

/// The words outside of texts, names in quotes, and the parentheses of functions that have a FROM of their own.
fn words(piece: &str) -> impl Iterator<Item = &str> {
    const WITH_FROM: [&str; 5] = ["extract", "substring", "trim", "overlay", "position"];
    let mut rest = piece;
    let mut function = false;
    // the depths of parentheses at which such a function began
    let (mut depth, mut inside) = (0usize, Vec::new());
    std::iter::from_fn(move || loop {
        let first = rest.chars().next()?;
        if let '\'' | '"' = first {
            let end = rest[1..].find(first).map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            rest = tail;
            function = WITH_FROM.iter().any(|known| known.eq_ignore_ascii_case(word));
            let is_its_own = word.eq_ignore_ascii_case("from") && inside.last() == Some(&depth);
            if !is_its_own {
                return Some(word);
            }
        } else {
            match first {
                '(' => {
                    depth += 1;
                    if std::mem::take(&mut function) {
                        inside.push(depth);
                    }
                }
                ')' => {
                    if inside.last() == Some(&depth) {
                        inside.pop();
                    }
                    depth = depth.saturating_sub(1);
                }
                _ => {}
            }
            rest = &rest[first.len_utf8()..];
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_by_a_from_that_is_no_expression_s() {
        for (text, expected) in [
            ("select $1 > 0", false),
            ("select extract(year from $1), 'from t', \"from\"", false),
            ("select $1 is distinct from $2", false),
            ("select (select count(*) from t)", true),
            ("select * FROM t where a = $1", true),
            ("select extract(year from (select d from t))", true),
        ] {
            assert_eq!(sql(text).unwrap().reads_tables(), expected, "{text}");
        }
    }

    fn sql(text: &str) -> Result<Sql, String> {
        Sql::read(text, vec!["@a".into(), "@b".into()])
    }

    #[test]
    fn variables_are_found_outside_of_texts_and_names() {
        let read = sql("select $2, '$1 it''s $1', \"$1\" from t where a=$1 and b = $2").unwrap();
        let cast = |index: usize| if index == 0 { String::from("::int") } else { String::new() };
        assert_eq!(read.text(cast), "select $2, '$1 it''s $1', \"$1\" from t where a=$1::int and b = $2");
        assert_eq!(sql("select 'ä$1").unwrap().text(|_| String::new()), "select 'ä$1");
    }

    #[test]
    fn versions_of_rows_stand_behind_the_list() {
        let text = "select a, $1 from t as x, u where a = $2";
        let sources = ["x", "u"].map(|name| RowSource {
            qualifier: name.into(),
            table: name.into(),
            shown: name.into(),
        });
        for (end, expected) in [
            (12, "select a, $1, x.ctid, x.xmin, u.ctid, u.xmin from t as x, u where a = $2"),
            (8, "select a, x.ctid, x.xmin, u.ctid, u.xmin, $1 from t as x, u where a = $2"),
        ] {
            let mut read = sql(text).unwrap();
            assert_eq!(read.with_versions(), None);
            read.note_sources(end, sources.to_vec());
            assert_eq!(read.with_versions().unwrap().0.numbered(), expected);
            assert_eq!(read.followed_by(" limit 1").with_versions(), None);
        }
    }

    #[test]
    fn a_place_without_a_variable_is_named() {
        for text in ["select $3", "select $0", "select $", "select $x"] {
            assert!(sql(text).unwrap_err().contains('$'), "{text}");
        }
    }

    #[test]
    fn a_bare_variable() {
        assert_eq!(sql("select $2 ").unwrap().as_variable(), Some("@b"));
        for text in ["select $2 + 1", "select $1, $2", "select -$1", "select 1"] {
            assert_eq!(sql(text).unwrap().as_variable(), None, "{text}");
        }
    }
}
