//! Streams of Redis or Valkey: every event is an entry with the fields `key` and `value`, as Debezium Server's Redis
//! sink writes them in its extended form; `value` is the envelope.
//!
//! A batch is one transaction of Redis, with the position as its last command, so the position is that of the entries
//! after every kill: nothing is there twice, nothing is missing. The position's key is watched from before it is read:
//! a transaction of a connection that was given up, or of another process, makes the next one fail, and what is there
//! is looked at again.
//!
//! Redis does not undo the commands of a transaction if one of them fails when it is executed. Of these XADD fails then
//! only for a key of another type; that is looked at on connecting, and the position is put back should it happen.

mod resp;

use crate::net::Connection;
use crate::sink::{Position, Sink, SinkError};
use hashmere_feed::Event;
use hashmere_tls::ClientTls;
use resp::{argument, begin, command, Reply};

/// Where the stream is, and how long it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisOptions {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For `AUTH`; with a password alone it is the default user.
    pub user: Option<String>,
    /// For `AUTH`.
    pub password: Option<String>,
    /// For `SELECT`.
    pub database: u32,
    /// Key of the stream.
    pub stream: String,
    /// About how many entries the stream keeps (`MAXLEN ~`); `None`: all.
    pub max_len: Option<u64>,
    /// TLS from the first byte; `None`: none.
    pub tls: Option<ClientTls>,
}

impl RedisOptions {
    /// Key of the position: in a cluster in the same slot as the stream.
    pub fn position_key(&self) -> String {
        if self.stream.contains('{') {
            format!("{}:position", self.stream)
        } else {
            format!("{{{}}}:position", self.stream)
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct RedisSink {
    options: RedisOptions,
    position_key: Vec<u8>,
    /// XADD up to the first field's name, the same for all entries.
    xadd: Vec<u8>,
    connection: Option<Connection>,
    /// Entries of the transaction whose replies were not read yet.
    under_way: Option<usize>,
    /// Text of the position that is stored, and of the transaction under way.
    stored: Vec<u8>,
    coming: Vec<u8>,
    out: Vec<u8>,
    line: Vec<u8>,
}

impl RedisSink {
    /// Connects when it is asked for its position.
    pub fn new(options: RedisOptions) -> RedisSink {
        let mut xadd = Vec::new();
        begin(if options.max_len.is_some() { 10 } else { 7 }, &mut xadd);
        argument(b"XADD", &mut xadd);
        argument(options.stream.as_bytes(), &mut xadd);
        if let Some(max) = options.max_len {
            argument(b"MAXLEN", &mut xadd);
            argument(b"~", &mut xadd);
            argument(max.to_string().as_bytes(), &mut xadd);
        }
        argument(b"*", &mut xadd);
        argument(b"key", &mut xadd);
        RedisSink {
            position_key: options.position_key().into_bytes(),
            options,
            xadd,
            connection: None,
            under_way: None,
            stored: Vec::new(),
            coming: Vec::new(),
            out: Vec::new(),
            line: Vec::new(),
        }
    }

    fn connect(&mut self) -> Result<Option<Position>, SinkError> {
        self.under_way = None;
        let mut connection = Connection::open(&self.options.host, self.options.port)?;
        if let Some(tls) = &self.options.tls {
            connection = connection.secured(tls, &self.options.host)?;
        }
        let database = self.options.database.to_string();
        let mut ask = |arguments: &[&[u8]]| -> Result<Reply, SinkError> {
            let mut out = Vec::new();
            command(arguments, &mut out);
            connection.write(&out)?;
            succeeded(resp::read(&mut connection)?)
        };
        match (&self.options.user, &self.options.password) {
            (Some(user), Some(password)) => drop(ask(&[b"AUTH", user.as_bytes(), password.as_bytes()])?),
            (None, Some(password)) => drop(ask(&[b"AUTH", password.as_bytes()])?),
            _ => {}
        }
        if self.options.database != 0 {
            ask(&[b"SELECT", database.as_bytes()])?;
        }
        ask(&[b"WATCH", &self.position_key])?;
        let position = ask(&[b"GET", &self.position_key])?;
        let kind = ask(&[b"TYPE", self.options.stream.as_bytes()])?;
        self.stored = match (position, kind) {
            // Without its stream a position says nothing.
            (Reply::Text(text), Reply::Text(kind)) if kind == b"stream" => text,
            (_, Reply::Text(kind)) if kind == b"stream" || kind == b"none" => Vec::new(),
            (_, kind) => {
                let text = format!("`{}` is no stream but {kind:?}: name another one", self.options.stream);
                return Err(SinkError::Refused(text));
            }
        };
        self.connection = Some(connection);
        Position::from_text(&self.stored)
    }

    fn encode(&mut self, events: &[Event]) {
        let out = &mut self.out;
        out.clear();
        command(&[b"MULTI"], out);
        for event in events {
            out.extend_from_slice(&self.xadd);
            match event {
                Event::Read(change) | Event::Change(change) => argument(&change.key, out),
                _ => argument(b"", out),
            }
            argument(b"value", out);
            self.line.clear();
            event.write_json(&mut self.line);
            argument(&self.line, out);
        }
        self.coming.clear();
        Position::text(events.last().and_then(Position::behind), &mut self.coming);
        command(&[b"SET", &self.position_key, &self.coming], out);
        command(&[b"EXEC"], out);
        // Of the next transaction.
        command(&[b"WATCH", &self.position_key], out);
    }

    fn read_replies(&mut self) -> Result<(), SinkError> {
        let Some(entries) = self.under_way.take() else { return Ok(()) };
        let connection = self.connection.as_mut().ok_or_else(not_connected)?;
        let mut refused = None;
        // MULTI, the entries, the position.
        for _ in 0..entries + 2 {
            if let Reply::Error(text) = resp::read(connection)? {
                refused.get_or_insert(text);
            }
        }
        let executed = resp::read(connection)?;
        succeeded(resp::read(connection)?)?;
        match (executed, refused) {
            (Reply::Array, None) => Ok(()),
            (Reply::Nil, _) => Err(SinkError::again("the position was changed by another connection")),
            (Reply::ErrorWithin(text), _) => {
                // The position that the transaction has written counts entries that are not there.
                let mut out = Vec::new();
                command(&[b"SET", &self.position_key, &self.stored], &mut out);
                connection.write(&out)?;
                resp::read(connection)?;
                Err(SinkError::Refused(text))
            }
            (_, Some(text)) | (Reply::Error(text), None) => Err(failed(text)),
            (Reply::Text(_), None) => Err(SinkError::lost("EXEC has answered with a text")),
        }?;
        Ok(())
    }
}

impl Sink for RedisSink {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.connection = None;
        self.connect()
    }

    fn send(&mut self, events: &[Event]) -> Result<(), SinkError> {
        // While the server works at the one before.
        let mut before = std::mem::take(&mut self.coming);
        self.encode(events);
        let is_under_way = self.under_way.is_some();
        self.read_replies()?;
        if is_under_way {
            std::mem::swap(&mut self.stored, &mut before);
        }
        let connection = self.connection.as_mut().ok_or_else(not_connected)?;
        connection.write(&self.out)?;
        self.under_way = Some(events.len());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.under_way.is_some() {
            self.read_replies()?;
            self.stored = self.coming.clone();
        } else if self.connection.as_mut().ok_or_else(not_connected)?.has_input()? {
            return Err(SinkError::lost("the server has sent something unasked"));
        }
        Ok(())
    }
}

fn not_connected() -> SinkError {
    SinkError::lost("there is no connection")
}

fn succeeded(reply: Reply) -> Result<Reply, SinkError> {
    match reply {
        Reply::Error(text) | Reply::ErrorWithin(text) => Err(failed(text)),
        reply => Ok(reply),
    }
}

/// Errors of a server that is starting, full, or not the primary just now go away; others do not.
fn failed(text: String) -> SinkError {
    const PASSING: [&str; 9] =
        ["LOADING", "BUSY", "OOM", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF", "NOREPLICAS"];
    let first = text.split(' ').next().unwrap_or_default();
    if PASSING.contains(&first) {
        SinkError::lost(text)
    } else {
        SinkError::Refused(text)
    }
}
