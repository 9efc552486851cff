//! SQL for PostgreSQL and the variables it names.

/// SQL with `$1`, `$2` … for its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sql {
    /// What stands before, between and behind the variables.
    pieces: Vec<String>,
    /// Which variable stands between two pieces, as an index into `variables`.
    places: Vec<usize>,
    /// By their names with @, or `?1`, in the order of `$n`.
    pub variables: Vec<String>,
}

impl Sql {
    /// The error names a `$n` that is no variable.
    pub fn read(text: &str, variables: Vec<String>) -> Result<Sql, String> {
        let mut sql = Sql { pieces: Vec::new(), places: Vec::new(), variables };
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
                sql.places.push(index.ok_or_else(|| format!("'{place}' stands for no variable"))?);
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

    /// The variable that is all it selects.
    pub fn as_variable(&self) -> Option<&str> {
        let ([before, after], [place]) = (self.pieces.as_slice(), self.places.as_slice()) else {
            return None;
        };
        let is_bare = before.trim() == "select" && after.trim().is_empty();
        self.variables.get(*place).filter(|_| is_bare).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
