//! Streams and buckets of NATS JetStream.
//!
//! A *stream* gets every event under the subject `STREAM.PREFIX`, the prefix being that of the key (`names.rs`); what
//! concerns all keys under `STREAM._feed`. A *bucket* is a copy of the store: every key with its value, which any NATS
//! client can read and watch.
//!
//! **Position.** Every message says in a header where the feed was behind it, so the last message of the stream has the
//! position, in the same step as the data.
//!
//! **Order.** Every message also says which sequence the one before it must have (`Nats-Expected-Last-Sequence`). If
//! the server refuses one, it refuses all behind it that are under way; what an abandoned connection still had to say
//! is refused as well, and so is a second feed into the same stream. So a batch needs no wait between its messages.
//!
//! **Repetitions.** The identifier of a message is store, version and key: what a repair after a crash has published
//! twice, the server drops within its window. It does not count a dropped message, so the sequences behind it do not
//! fit; the batch is then sent again, message by message.

mod bucket;
mod names;
mod wire;

use crate::sink::{Position, Sink, SinkError};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use hashmere_feed::Event;
use hashmere_tls::ClientTls;
use serde_json::{json, Value as Json};
use std::io::Write;
use wire::{Client, Login, Reply};

/// The header with the position.
const POSITION: &str = "Hashmere-Position";
/// Last part of the subject of what concerns all keys.
const FEED: &[u8] = b"_feed";
/// Room for headers beside a payload.
const HEAD: usize = 2048;

/// What is at the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatsKind {
    /// A stream: every event.
    #[default]
    Stream,
    /// A key/value bucket: what the store has now.
    Bucket,
}

/// Where a stream or bucket is, and how it is made if it is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsOptions {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User, or alone: token.
    pub user: Option<String>,
    /// Password, or alone: token.
    pub password: Option<String>,
    /// Stream or bucket.
    pub kind: NatsKind,
    /// Its name.
    pub name: String,
    /// Most bytes of the stream, and most messages; older ones go. `None`: no limit. Not of a bucket.
    pub max_bytes: Option<u64>,
    /// Most messages.
    pub max_len: Option<u64>,
    /// Servers of a cluster that have it; 0: 1.
    pub replicas: u32,
    /// TLS behind the server's greeting; `None`: none.
    pub tls: Option<ClientTls>,
}

impl NatsOptions {
    fn stream(&self) -> String {
        match self.kind {
            NatsKind::Stream => self.name.clone(),
            NatsKind::Bucket => format!("KV_{}", self.name),
        }
    }

    /// What all subjects begin with.
    fn subject(&self) -> String {
        match self.kind {
            NatsKind::Stream => format!("{}.", self.name),
            NatsKind::Bucket => format!("$KV.{}.", self.name),
        }
    }

    fn config(&self) -> Json {
        let limit = |limit: Option<u64>| limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
        let mut config = json!({
            "name": self.stream(), "subjects": [format!("{}>", self.subject())], "retention": "limits",
            "storage": "file", "num_replicas": self.replicas.max(1), "allow_direct": true, "discard": "old",
            "max_bytes": limit(self.max_bytes), "max_msgs": limit(self.max_len), "duplicate_window": 120_000_000_000u64,
        });
        if self.kind == NatsKind::Bucket {
            // As clients make one.
            config["max_msgs_per_subject"] = 1.into();
            config["allow_rollup_hdrs"] = true.into();
            config["deny_delete"] = true.into();
            config["discard"] = "new".into();
            config["max_bytes"] = (-1).into();
            config["max_msgs"] = (-1).into();
        }
        config
    }
}

/// See the module.
#[derive(Debug)]
pub struct NatsSink {
    options: NatsOptions,
    stream: String,
    subject: Vec<u8>,
    client: Option<Client>,
    /// Sequence of the last message, when all that was written is stored.
    last: u64,
    /// Number of the next message.
    number: u64,
    /// Messages of before the last batch, and of that: below and from `boundary`, which are not acknowledged yet.
    boundary: u64,
    missing: [usize; 2],
    /// A message that was dropped as a repetition breaks the sequences of a batch.
    repeated: bool,
    one_by_one: bool,
    /// Text of the last position that was written.
    position: Vec<u8>,
    out: Vec<u8>,
    payload: Vec<u8>,
    /// Headers of a message, and what was said of one.
    lines: Vec<u8>,
    reply: Reply,
}

impl NatsSink {
    /// Connects when it is asked for its position.
    pub fn new(options: NatsOptions) -> NatsSink {
        NatsSink {
            stream: options.stream(),
            subject: options.subject().into_bytes(),
            options,
            client: None,
            last: 0,
            number: 0,
            boundary: 0,
            missing: [0; 2],
            repeated: false,
            one_by_one: false,
            position: Vec::new(),
            out: Vec::new(),
            payload: Vec::new(),
            lines: Vec::new(),
            reply: Reply::default(),
        }
    }

    fn client(&mut self) -> Result<&mut Client, SinkError> {
        self.client.as_mut().ok_or_else(|| SinkError::lost("there is no connection"))
    }

    fn connect(&mut self) -> Result<Option<Position>, SinkError> {
        self.client = None;
        self.one_by_one |= std::mem::take(&mut self.repeated);
        (self.boundary, self.missing) = (self.number, [0; 2]);
        let options = &self.options;
        let login = Login { user: options.user.as_deref(), password: options.password.as_deref() };
        let mut client = Client::open(&options.host, options.port, &login, options.tls.as_ref())?;
        let mut info = client.ask(&format!("$JS.API.STREAM.INFO.{}", self.stream), &Json::Null)?;
        if info["error"]["code"].as_u64() == Some(404) {
            info = client.ask(&format!("$JS.API.STREAM.CREATE.{}", self.stream), &options.config())?;
        }
        let state = &checked(&info)?["state"];
        self.last = state["last_seq"].as_u64().unwrap_or(0);
        self.position.clear();
        if state["messages"].as_u64() != Some(0) {
            let question = json!({ "seq": self.last });
            let got = client.ask(&format!("$JS.API.STREAM.MSG.GET.{}", self.stream), &question)?;
            if got["error"]["code"].as_u64() != Some(404) {
                let headers = checked(&got)?["message"]["hdrs"].as_str().and_then(|text| BASE64.decode(text).ok());
                let headers = headers.unwrap_or_default();
                let Some(text) = wire::header(&headers, POSITION) else {
                    let text = format!("the last message of the stream {} is of another client", self.stream);
                    return Err(SinkError::Foreign(text));
                };
                self.position.extend_from_slice(text);
            }
        }
        self.client = Some(client);
        Position::from_text(&self.position)
    }

    /// Appends a message to what is written next. `subject` is what is behind the prefix of all.
    fn append(&mut self, subject: &[u8], id: &[u8], head: &[u8]) -> Result<(), SinkError> {
        let client = self.client.as_ref().ok_or_else(|| SinkError::lost("there is no connection"))?;
        if self.payload.len() + HEAD > client.max_payload {
            return Err(SinkError::Refused(format!(
                "an event has {} bytes, and the server takes {}: raise `max_payload` in its configuration",
                self.payload.len(),
                client.max_payload
            )));
        }
        let lines = &mut self.lines;
        lines.clear();
        if !id.is_empty() {
            lines.extend_from_slice(b"Nats-Msg-Id: ");
            lines.extend_from_slice(id);
            lines.extend_from_slice(b"\r\n");
        }
        // Memory takes all of it.
        let _ = write!(lines, "Nats-Expected-Last-Sequence: {}\r\n{POSITION}: ", self.last);
        lines.extend_from_slice(&self.position);
        lines.extend_from_slice(b"\r\n");
        lines.extend_from_slice(head);
        let subject = [self.subject.as_slice(), subject];
        wire::publish(subject, &client.inbox, self.number, lines, &self.payload, &mut self.out);
        self.number += 1;
        self.missing[1] += 1;
        self.last += 1;
        Ok(())
    }

    fn append_event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.position.clear();
        Position::text(Position::behind(event), &mut self.position);
        self.payload.clear();
        event.write_json(&mut self.payload);
        let (mut subject, mut id) = (Vec::new(), Vec::new());
        match event {
            Event::Read(change) | Event::Change(change) => {
                names::prefix(&change.key, &mut subject);
                names::message_id(change, &mut id);
            }
            _ => subject.extend_from_slice(FEED),
        }
        self.append(&subject, &id, b"")
    }

    fn write(&mut self) -> Result<(), SinkError> {
        let out = std::mem::take(&mut self.out);
        self.client()?.write(&out)?;
        self.out = out;
        self.out.clear();
        Ok(())
    }

    /// Reads acknowledgements until none is missing of the messages before the last batch, or of all.
    fn acknowledged(&mut self, all: bool) -> Result<(), SinkError> {
        while self.missing[0] != 0 || all && self.missing[1] != 0 {
            let client = self.client.as_mut().ok_or_else(|| SinkError::lost("there is no connection"))?;
            let reply = &mut self.reply;
            client.reply_into(reply)?;
            let Some(number) = reply.number.filter(|number| *number < self.number) else { continue };
            if reply.headers.starts_with(b"NATS/1.0 503") {
                return Err(SinkError::lost("the server does not answer for the stream"));
            }
            let missing = &mut self.missing[usize::from(number >= self.boundary)];
            *missing = missing.saturating_sub(1);
            if let Some(seq) = stored_at(&reply.payload, &self.stream) {
                // Of a message that is sent alone it is where the next one goes on.
                if self.one_by_one && all {
                    self.last = seq;
                }
                continue;
            }
            let ack: Json = serde_json::from_slice(&reply.payload).unwrap_or_default();
            checked(&ack)?;
            if ack["duplicate"].as_bool() == Some(true) {
                self.repeated = true;
                if self.one_by_one && all {
                    self.last -= 1;
                }
            } else if let Some(seq) = ack["seq"].as_u64().filter(|_| self.one_by_one && all) {
                self.last = seq;
            }
        }
        Ok(())
    }

    fn next_batch(&mut self) {
        self.missing = [self.missing[0] + self.missing[1], 0];
        self.boundary = self.number;
    }

    fn send_one_by_one(&mut self, events: &[Event]) -> Result<(), SinkError> {
        self.acknowledged(true)?;
        for event in events {
            self.add(event)?;
            self.write()?;
            self.acknowledged(true)?;
        }
        (self.one_by_one, self.repeated) = (false, false);
        Ok(())
    }

    fn add(&mut self, event: &Event) -> Result<(), SinkError> {
        match self.options.kind {
            NatsKind::Stream => self.append_event(event),
            NatsKind::Bucket => self.append_to_bucket(event),
        }
    }
}

impl Sink for NatsSink {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.connect()
    }

    fn send(&mut self, events: &[Event]) -> Result<(), SinkError> {
        // What an error has left.
        self.out.clear();
        if self.one_by_one {
            return self.send_one_by_one(events);
        }
        self.next_batch();
        for event in events {
            self.add(event)?;
        }
        self.write()?;
        self.acknowledged(false)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.acknowledged(true)?;
        self.repeated = false;
        self.client()?.keep_alive()
    }
}

/// The sequence in the acknowledgement of a message that was stored, as servers write it: `{"stream":"S", "seq":7}`.
/// `None`: it says something else or more, which is parsed as JSON.
fn stored_at(payload: &[u8], stream: &str) -> Option<u64> {
    let rest = payload.strip_prefix(b"{\"stream\":\"")?.strip_prefix(stream.as_bytes())?.strip_prefix(b"\",")?;
    let digits = rest.trim_ascii_start().strip_prefix(b"\"seq\":")?.trim_ascii_start().strip_suffix(b"}")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What an answer of JetStream says, if that is no error.
fn checked(answer: &Json) -> Result<&Json, SinkError> {
    /// Codes of JetStream's errors: a message was refused or dropped before this one.
    const WRONG_SEQUENCE: u64 = 10071;
    /// The message is longer than the stream takes; the name of the stream is invalid, or has other settings, or its
    /// subjects are those of another stream.
    const FINAL: [u64; 5] = [10054, 10056, 10058, 10065, 10094];
    let error = &answer["error"];
    if error.is_null() {
        return Ok(answer);
    }
    let text = error["description"].as_str().unwrap_or("an error without a description").to_owned();
    let code = error["err_code"].as_u64().unwrap_or(0);
    if code == WRONG_SEQUENCE {
        return Err(SinkError::again(format!("{text} (NATS error {code})")));
    }
    if FINAL.contains(&code) {
        Err(SinkError::Refused(format!("{text} (NATS error {code})")))
    } else {
        Err(SinkError::lost(format!("{text} (NATS error {code})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_stored_message() {
        let at = |text: &str| stored_at(text.as_bytes(), "S");
        assert_eq!(at(r#"{"stream":"S", "seq":7}"#), Some(7));
        assert_eq!(at(r#"{"stream":"S","seq": 70}"#), Some(70));
        // Parsed as JSON, for it says more, or is of another stream.
        for more in [
            r#"{"stream":"S","seq":7,"duplicate":true}"#,
            r#"{"stream":"S", "domain":"d", "seq":7}"#,
            r#"{"stream":"ST", "seq":7}"#,
            r#"{"error":{"code":400},"stream":"S","seq":0}"#,
            "",
        ] {
            assert_eq!(at(more), None, "{more}");
        }
    }
}
