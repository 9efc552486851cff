//! The log: a line on standard error for each event, as text or JSON. Python's lines have the same form
//! (ringlog/logs.py).

use parking_lot::Mutex;
use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::prelude::*;

/// Starts logging of events of this level and above; once per process.
pub fn start(level: LevelFilter, json: bool) {
    // continue if standard error is closed
    let lines = fmt::layer().with_writer(Limited::default()).with_ansi(false).log_internal_errors(false);
    let lines =
        if json { lines.json().flatten_event(true).with_span_list(false).boxed() } else { lines.boxed() };
    if tracing_subscriber::registry().with(lines.with_filter(level)).try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| {
            let trace = Backtrace::force_capture();
            tracing::error!(%trace, "{}", panic.to_string().replace('\n', " "));
        }));
    }
}

/// Lines of one callsite within `WINDOW`.
const MOST: u32 = 20;
const WINDOW: Duration = Duration::from_secs(20);

/// Limits warnings and errors, which strangers can cause as often as they connect. The next line after those left out
/// has their number.
#[derive(Default)]
struct Limited {
    windows: Mutex<HashMap<Identifier, Window>>,
}

struct Window {
    begun: Instant,
    lines: u32,
}

impl Limited {
    /// The number of lines left out before this one; None: this one is left out too.
    fn admit(&self, callsite: Identifier) -> Option<u32> {
        let mut windows = self.windows.lock();
        let window = windows.entry(callsite).or_insert_with(|| Window { begun: Instant::now(), lines: 0 });
        let mut left_out = 0;
        if window.begun.elapsed() > WINDOW {
            left_out = window.lines.saturating_sub(MOST);
            *window = Window { begun: Instant::now(), lines: 0 };
        }
        window.lines = window.lines.saturating_add(1);
        (window.lines <= MOST).then_some(left_out)
    }
}

impl MakeWriter<'_> for Limited {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line::Whole
    }

    fn make_writer_for(&self, event: &Metadata<'_>) -> Line {
        if *event.level() > Level::WARN {
            return Line::Whole;
        }
        match self.admit(event.callsite()) {
            Some(0) => Line::Whole,
            Some(left_out) => Line::After(left_out),
            None => Line::LeftOut,
        }
    }
}

enum Line {
    Whole,
    /// after so many lines that were left out
    After(u32),
    LeftOut,
}

impl Write for Line {
    /// Writes a line, which tracing-subscriber passes as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut error = io::stderr().lock();
        match self {
            Self::Whole => error.write_all(line)?,
            Self::After(left_out) => {
                let text = line.strip_suffix(b"\n").unwrap_or(line);
                match text.strip_suffix(b"}").filter(|_| text.starts_with(b"{")) {
                    Some(fields) => {
                        error.write_all(fields)?;
                        writeln!(error, ",\"left_out\":{left_out}}}")?;
                    }
                    None => {
                        error.write_all(text)?;
                        writeln!(error, " left_out={left_out}")?;
                    }
                }
            }
            Self::LeftOut => {}
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
