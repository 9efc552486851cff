//! The digest that links a procedure to its text; the same as PostgreSQL's md5().

use md5::{Digest, Md5};

pub fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn as_rfc_1321_has_it() {
        assert_eq!(super::md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
    }
}
