//! PB files, in which the Archiver Appliance stores the samples of a PV, ordered by time. A file is read in parts;
//! `encode::pb` decodes its lines.

mod python;
#[cfg(test)]
mod tests;

pub use encode::pb::{header, Samples};
pub use python::{PbError, PyPbFile};

use encode::pb::Header;
use memchr::{memchr, memchr_iter};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of one read.
const READ: usize = 1 << 20;
/// Bytes of one read during a search for a sample; smaller intervals are not halved.
const SOUGHT: usize = 64 << 10;
/// The most damaged lines that are described.
const DAMAGES: usize = 5;
/// The most bytes of a line.
const LONGEST_LINE: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("line {line} at byte {at}: {what}")]
    Line { line: u64, at: u64, what: &'static str },
}

type Result<T> = std::result::Result<T, Wrong>;

/// A file from `at` on.
pub struct PbFile {
    file: File,
    pub header: Header,
    /// The position of the first sample.
    begin: u64,
    pub at: u64,
    /// The time of the last sample, in nanoseconds since 1970.
    pub last: Option<i64>,
    /// Whether damaged lines are skipped; else they are errors.
    skips: bool,
    /// The number of lines that were skipped.
    pub skipped: u64,
    /// Messages of the first of them.
    pub damages: Vec<String>,
}

/// Bytes of a file, and their position.
struct Part {
    at: u64,
    bytes: Vec<u8>,
    /// Whether the file ends with them.
    is_last: bool,
}

impl PbFile {
    /// `skips`: damaged lines are skipped and counted.
    pub fn open(path: &Path, skips: bool) -> Result<PbFile> {
        let file = File::open(path)?;
        let part = Part::read(&file, 0, SOUGHT)?;
        let wrong = |what| Wrong::Line { line: 1, at: 0, what };
        let line = part.line(0).ok_or_else(|| wrong("there is no line of a header"))?;
        let header = header(line).map_err(wrong)?;
        let begin = line.len() as u64 + 1;
        Ok(PbFile { file, header, begin, at: begin, last: None, skips, skipped: 0, damages: Vec::new() })
    }

    /// Moves to a position before all samples at or after this time: times only increase.
    pub fn seek(&mut self, since: i64) -> Result<()> {
        let mut samples = Samples::new(&self.header, &[]);
        let (mut low, mut high) = (self.begin, self.file.metadata()?.len());
        while high.saturating_sub(low) > SOUGHT as u64 {
            let middle = low + (high - low) / 2;
            match self.first_after(middle, high, &mut samples)? {
                Some((at, time)) if time < since => low = at,
                _ => high = middle,
            }
        }
        self.at = low;
        Ok(())
    }

    /// The position and the time of the first whole sample between two positions.
    fn first_after(&self, at: u64, before: u64, samples: &mut Samples) -> Result<Option<(u64, i64)>> {
        let mut size = SOUGHT;
        loop {
            let part = Part::read(&self.file, at, size)?;
            let mut offset = part.line(0).map(|line| line.len() + 1);
            while let Some(begin) = offset.filter(|begin| at + (*begin as u64) < before) {
                let Some(line) = part.line(begin) else { break };
                if let Ok(time) = samples.add(line, i64::MIN, i64::MIN, Some(i64::MIN)) {
                    return Ok(Some((at + begin as u64, time)));
                }
                offset = Some(begin + line.len() + 1);
            }
            if part.is_last || size >= LONGEST_LINE || at + size as u64 >= before {
                return Ok(None);
            }
            size *= 4;
        }
    }

    /// The samples from `since` to before `until`, about `bytes` bytes at most, and whether there may be more.
    pub fn read(
        &mut self,
        since: i64,
        until: i64,
        bytes: usize,
        fields: &[String],
    ) -> Result<(Samples, bool)> {
        let mut samples = Samples::new(&self.header, fields);
        let (first, mut size) = (self.at, READ);
        while self.at - first < bytes as u64 {
            let part = Part::read(&self.file, self.at, size)?;
            let mut offset = 0;
            while let Some(line) = part.line(offset) {
                let at = part.at + offset as u64;
                match samples.add(line, since, until, self.last) {
                    Ok(time) if time >= until => {
                        self.at = at;
                        return Ok((samples, false));
                    }
                    Ok(time) => self.last = Some(time),
                    Err(what) => self.damaged(at, what)?,
                }
                offset += line.len() + 1;
            }
            self.at += offset as u64;
            if part.is_last {
                if offset < part.bytes.len() {
                    self.damaged(self.at, "the last line has no end")?;
                    self.at += (part.bytes.len() - offset) as u64;
                }
                return Ok((samples, false));
            }
            if offset == 0 && size >= LONGEST_LINE {
                return Err(self.wrong(self.at, "a line has more than 64 MB")?);
            }
            size = if offset == 0 { size * 4 } else { READ };
        }
        Ok((samples, true))
    }

    fn damaged(&mut self, at: u64, what: &'static str) -> Result<()> {
        if !self.skips {
            return Err(self.wrong(at, what)?);
        }
        self.skipped += 1;
        if self.damages.len() < DAMAGES {
            self.damages.push(self.wrong(at, what)?.to_string());
        }
        Ok(())
    }

    /// The error of the line at this position.
    fn wrong(&self, at: u64, what: &'static str) -> Result<Wrong> {
        let (mut line, mut position) = (1, 0);
        while position < at {
            let part = Part::read(&self.file, position, READ.min((at - position) as usize))?;
            if part.bytes.is_empty() {
                break;
            }
            line += memchr_iter(b'\n', &part.bytes).count() as u64;
            position += part.bytes.len() as u64;
        }
        Ok(Wrong::Line { line, at, what })
    }
}

impl Part {
    fn read(mut file: &File, at: u64, size: usize) -> Result<Part> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.take(size as u64).read_to_end(&mut bytes)?;
        Ok(Part { at, is_last: bytes.len() < size, bytes })
    }

    /// The line at a position, without its end; None: its end is missing.
    #[inline]
    fn line(&self, offset: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(offset..)?;
        rest.get(..memchr(b'\n', rest)?)
    }
}
