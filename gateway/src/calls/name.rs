//! The name of a procedure as written by its caller.

/// `procedure`, `schema.procedure`, `schema..procedure`, `schema.owner.procedure`: schema and name.
pub fn split_name(name: &str) -> (Option<&str>, &str) {
    // Sybase's `;number` groups procedures; only the first of a group exists here
    let name = name.strip_suffix(";1").unwrap_or(name);
    match name.split_once('.') {
        None => (None, strip(name)),
        Some((first, rest)) => {
            let bare = rest.rsplit('.').next().unwrap_or(rest);
            let schema = strip(first);
            (
                Some(schema).filter(|schema| !schema.is_empty() && !schema.eq_ignore_ascii_case("dbo")),
                strip(bare),
            )
        }
    }
}

/// A name without its brackets or quotes.
fn strip(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .or_else(|| name.strip_prefix('"').and_then(|name| name.strip_suffix('"')))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::split_name;

    #[test]
    fn names_with_and_without_qualifiers() {
        assert_eq!(split_name("put_a"), (None, "put_a"));
        assert_eq!(split_name("[put_a];1"), (None, "put_a"));
        assert_eq!(split_name("online..put_a"), (Some("online"), "put_a"));
        assert_eq!(split_name("log.dbo.[put_a]"), (Some("log"), "put_a"));
        assert_eq!(split_name("dbo.put_a"), (None, "put_a"));
    }
}
