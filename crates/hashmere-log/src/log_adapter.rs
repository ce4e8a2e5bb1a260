//! Lines of the crate `log`.

use crate::error::LogError;
use crate::line::{Level, Value};
use crate::log::Log;
use log::kv::{self, VisitSource, VisitValue};
use std::time::Duration;

/// Takes what a program logs through the crate `log` into a [`Log`]. Key-value pairs become fields, and the target
/// becomes the field `target`. A line that is too long goes without them. Lines that the log refuses go to standard
/// error.
#[derive(Debug)]
pub struct LogAdapter(Log);

impl LogAdapter {
    /// On this log.
    pub fn new(log: Log) -> LogAdapter {
        LogAdapter(log)
    }

    /// Makes it the logger of this program. Which levels are wanted is decided by [`Log::set_level`].
    ///
    /// # Errors
    /// The crate's, if there is one already.
    pub fn install(self) -> Result<(), log::SetLoggerError> {
        log::set_boxed_logger(Box::new(self))?;
        log::set_max_level(log::LevelFilter::Trace);
        Ok(())
    }

    fn write(&self, record: &log::Record<'_>, level: Level) -> Result<bool, LogError> {
        let formatted;
        let text = match record.args().as_str() {
            Some(text) => text,
            None => {
                formatted = record.args().to_string();
                &formatted
            }
        };
        let done = self.0.line_fields_with(level, text.as_bytes(), |writer| {
            writer.field(b"target", record.target().into());
            // The visitor never fails.
            let _ = record.key_values().visit(&mut Visitor(writer));
        });
        match done {
            // Text alone can be split.
            Err(LogError::TooLong { .. }) => self.0.line(level, text),
            other => other,
        }
    }
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warn,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::Debug,
        log::Level::Trace => Level::Trace,
    }
}

impl log::Log for LogAdapter {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        self.0.enabled(level_of(metadata.level()))
    }

    fn log(&self, record: &log::Record<'_>) {
        let level = level_of(record.level());
        if !self.0.enabled(level) {
            return;
        }
        if let Err(error) = self.write(record, level) {
            eprintln!("{level:<5} {}: {} (not in the log: {error})", record.target(), record.args());
        }
    }

    fn flush(&self) {
        let _ = self.0.flush(Duration::from_secs(5));
    }
}

struct Visitor<'a, 'b>(&'a mut crate::log::FieldWriter<'b>);

impl<'kvs> VisitSource<'kvs> for Visitor<'_, '_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        value.visit(One { key: key.as_str().as_bytes(), writer: self.0 })
    }
}

struct One<'a, 'b> {
    key: &'a [u8],
    writer: &'a mut crate::log::FieldWriter<'b>,
}

impl One<'_, '_> {
    fn put<'v>(&mut self, value: impl Into<Value<'v>>) -> Result<(), kv::Error> {
        self.writer.field(self.key, value.into());
        Ok(())
    }
}

impl<'v> VisitValue<'v> for One<'_, '_> {
    fn visit_any(&mut self, value: kv::Value<'_>) -> Result<(), kv::Error> {
        self.put(value.to_string().as_str())
    }
    fn visit_u64(&mut self, value: u64) -> Result<(), kv::Error> {
        self.put(value)
    }
    fn visit_i64(&mut self, value: i64) -> Result<(), kv::Error> {
        self.put(value)
    }
    fn visit_f64(&mut self, value: f64) -> Result<(), kv::Error> {
        self.put(value)
    }
    fn visit_bool(&mut self, value: bool) -> Result<(), kv::Error> {
        self.put(value)
    }
    fn visit_str(&mut self, value: &str) -> Result<(), kv::Error> {
        self.put(value)
    }
}
