//! A data file of bcp, which is read in parts.

use super::bcp::Rows;
use super::columns::Made;
use super::{ReadError, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of one read.
const READ: usize = 4 << 20;
/// The most bytes of a row.
const LARGEST_ROW: usize = 256 << 20;

pub struct BcpFile {
    file: File,
    rows: Rows,
    /// Bytes of the file from `at` on.
    buffer: Vec<u8>,
    at: usize,
    is_all: bool,
    /// Bytes of the decoded rows.
    done: u64,
}

impl BcpFile {
    pub fn open(path: &Path, rows: Rows) -> Result<BcpFile> {
        Ok(BcpFile { file: File::open(path)?, rows, buffer: Vec::new(), at: 0, is_all: false, done: 0 })
    }

    pub fn columns(&self) -> Vec<(String, String)> {
        self.rows.columns()
    }

    pub fn done(&self) -> u64 {
        self.done
    }

    /// The next rows, no more after `bytes` bytes. None at the end.
    pub fn read(&mut self, bytes: usize) -> Result<Option<(usize, Vec<Made>)>> {
        loop {
            let input = self.buffer.get(self.at..).unwrap_or_default();
            let used = self.rows.read(input, self.is_all, bytes)?;
            self.at += used;
            self.done += used as u64;
            if self.is_all || self.rows.is_full(bytes) {
                return Ok((self.rows.rows() > 0).then(|| self.rows.take()));
            }
            self.fill()?;
        }
    }

    /// Doubles the buffered bytes, so that the end of a long row is not searched for too often.
    fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let kept = self.buffer.len();
        if kept > LARGEST_ROW {
            return Err(ReadError::Other(format!(
                "has a row of more than {} MB: the format file is another one",
                LARGEST_ROW >> 20
            )));
        }
        let most = READ.max(kept);
        let read = (&self.file).take(most as u64).read_to_end(&mut self.buffer)?;
        self.is_all = read < most;
        Ok(())
    }
}
