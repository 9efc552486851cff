//! How variables are named in the SQL.

use crate::error::Error;

/// Writes a variable, by its name with @, into SQL: `$1`, or the name of a PL/pgSQL variable.
pub trait Variables {
    fn write(&mut self, name: &str, line: u32) -> Result<String, Error>;

    /// The SQL calls a function that is none of T-SQL's, and may change something.
    fn note_call(&mut self) {}
}

/// Variables as $1, $2, …, in the order in which they are first used: for the statements of a batch.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    pub names: Vec<String>,
    /// See `Variables::note_call`.
    pub calls: bool,
}

impl Variables for Numbered {
    fn write(&mut self, name: &str, _: u32) -> Result<String, Error> {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Ok(format!("${}", place + 1))
    }

    fn note_call(&mut self) {
        self.calls = true;
    }
}

/// Where no variable may stand: in definitions.
pub struct NoVariables(pub &'static str);

impl Variables for NoVariables {
    fn write(&mut self, name: &str, line: u32) -> Result<String, Error> {
        Err(Error::refused(name, self.0, line))
    }
}
