//! SQL for PostgreSQL and its variables.

use super::Bound;
use crate::bind::location_of;
use crate::fragments::{self, Facts, Fragment, RowSource};
use std::sync::Arc;

/// SQL with `$1`, `$2` … for its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sql {
    pub(crate) fragments: Vec<Fragment>,
    /// By their names with @, or `?1`, in the order of `$n`.
    pub variables: Vec<String>,
    pub facts: Box<Facts>,
    /// It depends on the declarations of its tables.
    pub bound: Option<Arc<Bound>>,
    /// The tables whose rows it selects, if its rows are rows of tables.
    pub row_sources: Vec<RowSource>,
}

impl Sql {
    /// SQL with marks (`fragments`), which may have any effect.
    pub fn written(text: &str, variables: Vec<String>) -> Sql {
        let facts = Box::new(Facts { calls: true, reads: true, ..Facts::default() });
        Sql { fragments: fragments::split(text), variables, facts, ..Sql::default() }
    }

    /// The same without variables.
    pub fn plain(text: impl AsRef<str>) -> Sql {
        Sql::written(text.as_ref(), Vec::new())
    }

    /// This SQL is unique: it names a cursor.
    pub fn once(mut self) -> Sql {
        (self.facts.once, self.facts.adds_nulls) = (true, true);
        self
    }

    /// Removes the text of SQL whose tables do not exist yet: it is written when it runs.
    pub(crate) fn clear(&mut self) {
        (self.fragments, self.variables) = (Vec::new(), Vec::new());
    }

    /// Whether it is written when it runs.
    pub fn is_deferred(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The query of a `create table … as`.
    pub fn query(&self) -> Sql {
        let mut sql = self.part();
        let start = sql.fragments.iter().position(|fragment| *fragment == Fragment::Query);
        sql.fragments.drain(..start.unwrap_or(0));
        sql
    }

    /// The same as part of other SQL.
    fn part(&self) -> Sql {
        let facts = Box::new(Facts { created: None, ..(*self.facts).clone() });
        Sql { bound: None, row_sources: Vec::new(), facts, ..self.clone() }
    }

    /// The same with two more columns for each table whose rows it selects: the row's ctid and xmin.
    pub fn with_versions(&self) -> Option<(Sql, &[RowSource])> {
        self.with_columns(|qualifier| format!(", {qualifier}.ctid, {qualifier}.xmin"))
    }

    /// The same with one more column for each of them, by which `where current of` finds the row.
    pub fn with_locations(&self) -> Option<(Sql, &[RowSource])> {
        self.with_columns(|qualifier| format!(", {}", location_of(qualifier)))
    }

    fn with_columns(&self, of: impl Fn(&str) -> String) -> Option<(Sql, &[RowSource])> {
        let columns: String = self.row_sources.iter().map(|source| of(&source.qualifier)).collect();
        Some((self.with_items(columns)?, &self.row_sources))
    }

    /// The same with more columns after its select list: `, a, b`.
    pub fn with_items(&self, items: String) -> Option<Sql> {
        if self.row_sources.is_empty() {
            return None;
        }
        let mut sql = self.part();
        *sql.fragments.iter_mut().find(|fragment| **fragment == Fragment::ListEnd)? = Fragment::Text(items);
        Some(sql)
    }

    /// Whether it names the variable with this index in `variables`.
    pub fn uses(&self, variable: usize) -> bool {
        self.fragments.contains(&Fragment::Variable(variable))
    }

    /// The same after other SQL.
    pub fn following(&self, words: &str) -> Sql {
        let mut sql = self.part();
        sql.fragments.insert(0, Fragment::Text(words.to_owned()));
        sql
    }

    /// The same before other SQL.
    pub fn followed_by(&self, words: &str) -> Sql {
        let mut sql = self.part();
        sql.fragments.push(Fragment::Text(words.to_owned()));
        sql
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.fragments.iter().filter_map(|fragment| match fragment {
            Fragment::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The SQL with `$n` for variable n, followed by the result of `cast`.
    pub fn text(&self, cast: impl Fn(usize) -> String) -> String {
        let mut text = String::with_capacity(self.len() + 4 * self.fragments.len());
        for fragment in &self.fragments {
            match fragment {
                Fragment::Text(part) => text.push_str(part),
                Fragment::Variable(location) => {
                    text.push_str(&format!("${}{}", location + 1, cast(*location)))
                }
                Fragment::ListEnd | Fragment::Query => {}
            }
        }
        text
    }

    /// The SQL with `$n` for variable n.
    pub fn numbered(&self) -> String {
        self.text(|_| String::new())
    }

    /// Its approximate bytes.
    pub fn len(&self) -> usize {
        self.texts().map(str::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its approximate bytes.
    pub fn size(&self) -> usize {
        self.len() + self.bound.as_ref().map_or(0, |bound| bound.size())
    }

    /// The variable, if it selects only that.
    pub fn as_variable(&self) -> Option<&str> {
        match self.fragments.as_slice() {
            [Fragment::Text(select), Fragment::Variable(location)] if select == "select " => {
                self.variables.get(*location).map(String::as_str)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragments::{variable, LIST_END};

    fn sql(text: &str) -> Sql {
        Sql::written(text, vec!["@a".into(), "@b".into()])
    }

    #[test]
    fn only_marks_are_variables() {
        let [a, b] = [0, 1].map(variable);
        let read = sql(&format!("select {b}, '$1', \"$1\" from t where a={a} and b = {b}"));
        let cast = |index: usize| if index == 0 { String::from("::int") } else { String::new() };
        assert_eq!(read.text(cast), "select $2, '$1', \"$1\" from t where a=$1::int and b = $2");
    }

    #[test]
    fn versions_of_rows_stand_behind_the_list() {
        let [a, b] = [0, 1].map(variable);
        let mut read = sql(&format!("select a, {a}{LIST_END} from t as x, u where a = {b}"));
        assert_eq!(read.with_versions(), None);
        read.row_sources = ["x", "u"]
            .map(|name| RowSource { qualifier: name.into(), table: name.into(), shown: name.into() })
            .to_vec();
        let expected = "select a, $1, x.ctid, x.xmin, u.ctid, u.xmin from t as x, u where a = $2";
        assert_eq!(read.with_versions().unwrap().0.numbered(), expected);
        assert_eq!(read.followed_by(" limit 1").with_versions(), None);
    }

    #[test]
    fn a_bare_variable() {
        let [a, b] = [0, 1].map(variable);
        assert_eq!(sql(&format!("select {b}")).as_variable(), Some("@b"));
        for text in
            [format!("select {b} + 1"), format!("select {a}, {b}"), format!("select -{a}"), "select 1".into()]
        {
            assert_eq!(sql(&text).as_variable(), None, "{text}");
        }
    }
}
