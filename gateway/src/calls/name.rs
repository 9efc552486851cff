//! The name of a procedure as written by its caller.

use std::borrow::Cow;

/// `procedure`, `schema.procedure`, `schema..procedure`, `schema.owner.procedure`: schema and name. A number in its
/// group (`procedure;2`) other than 1 is part of the name.
pub fn split_name(name: &str) -> (Option<&str>, Cow<'_, str>) {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once(';').filter(|(_, number)| is_number(number)) {
        Some((group, "1")) => {
            let (schema, group) = split_group(group);
            (schema, group.into())
        }
        Some((group, number)) => {
            let (schema, group) = split_group(group);
            (schema, format!("{group};{number}").into())
        }
        None => {
            let (schema, name) = split_group(name);
            (schema, name.into())
        }
    }
}

fn split_group(name: &str) -> (Option<&str>, &str) {
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
        for (name, schema, bare) in [
            ("put_a", None, "put_a"),
            ("[put_a];1", None, "put_a"),
            ("log.[put_a];12", Some("log"), "put_a;12"),
            ("online..put_a", Some("online"), "put_a"),
            ("log.dbo.[put_a]", Some("log"), "put_a"),
            ("dbo.put_a", None, "put_a"),
        ] {
            assert_eq!(split_name(name), (schema, bare.into()), "{name}");
        }
    }
}
