//! The log: a line on standard error for each event, as text or JSON. Python's lines have the same form
//! (ringlog/logs.py).

use std::backtrace::Backtrace;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Starts logging of events of this level and above; once per process.
pub fn start(level: LevelFilter, json: bool) {
    // continue if standard error is closed
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false).log_internal_errors(false);
    let lines =
        if json { lines.json().flatten_event(true).with_span_list(false).boxed() } else { lines.boxed() };
    if tracing_subscriber::registry().with(lines.with_filter(level)).try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| {
            let trace = Backtrace::force_capture();
            tracing::error!(%trace, "{}", panic.to_string().replace('\n', " "));
        }));
    }
}
