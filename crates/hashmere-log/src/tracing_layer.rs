//! Events of the crate `tracing`.

use crate::error::LogError;
use crate::line::Level;
use crate::log::{FieldWriter, Log};
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// A layer of `tracing-subscriber` that takes events into a [`Log`]. The message becomes the text; the target, the
/// fields of the spans around it (outermost first) and its own become fields, the spans themselves one field `spans`
/// such as `request>query`. An event that is too long goes without fields. Events that the log refuses go to standard
/// error.
#[derive(Debug)]
pub struct TracingLayer(Log);

impl TracingLayer {
    /// On this log.
    pub fn new(log: Log) -> TracingLayer {
        TracingLayer(log)
    }
}

fn level_of(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// The fields of a span, encoded as in a writer.
struct SpanFields(Vec<(&'static str, Owned)>);

enum Owned {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Truth(bool),
}

impl Owned {
    fn put(&self, key: &str, writer: &mut FieldWriter<'_>) {
        let value = match self {
            Owned::Text(text) => text.as_str().into(),
            Owned::Signed(number) => (*number).into(),
            Owned::Unsigned(number) => (*number).into(),
            Owned::Float(number) => (*number).into(),
            Owned::Truth(truth) => (*truth).into(),
        };
        writer.field(key.as_bytes(), value);
    }
}

#[derive(Default)]
struct Visitor {
    message: String,
    fields: Vec<(&'static str, Owned)>,
}

impl Visitor {
    fn put(&mut self, field: &Field, value: Owned) {
        match value {
            Owned::Text(text) if field.name() == "message" => self.message = text,
            value => self.fields.push((field.name(), value)),
        }
    }
}

impl Visit for Visitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Owned::Text(format!("{value:?}")));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Owned::Text(value.to_owned()));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Owned::Signed(value));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Owned::Unsigned(value));
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Owned::Float(value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Owned::Truth(value));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut visitor = Visitor::default();
        attributes.record(&mut visitor);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(SpanFields(visitor.fields));
        }
    }

    fn on_record(&self, id: &Id, values: &SpanRecord<'_>, context: Context<'_, S>) {
        let mut visitor = Visitor::default();
        values.record(&mut visitor);
        if let Some(span) = context.span(id) {
            if let Some(SpanFields(fields)) = span.extensions_mut().get_mut() {
                fields.retain(|(key, _)| visitor.fields.iter().all(|(new, _)| new != key));
                fields.append(&mut visitor.fields);
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let level = level_of(*event.metadata().level());
        if !self.0.enabled(level) {
            return;
        }
        let mut visitor = Visitor::default();
        event.record(&mut visitor);
        let done = self.0.line_fields_with(level, visitor.message.as_bytes(), |writer| {
            writer.field(b"target", event.metadata().target().into());
            let mut spans = String::new();
            for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
                if !spans.is_empty() {
                    spans.push('>');
                }
                spans.push_str(span.name());
                if let Some(SpanFields(fields)) = span.extensions().get() {
                    fields.iter().for_each(|(key, value)| value.put(key, writer));
                }
            }
            if !spans.is_empty() {
                writer.field(b"spans", spans.as_str().into());
            }
            visitor.fields.iter().for_each(|(key, value)| value.put(key, writer));
        });
        let done = match done {
            // Text alone can be split.
            Err(LogError::TooLong { .. }) => self.0.line(level, &visitor.message),
            other => other,
        };
        if let Err(error) = done {
            eprintln!("{level:<5} {} (not in the log: {error})", visitor.message);
        }
    }
}
