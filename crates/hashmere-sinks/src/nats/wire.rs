//! The protocol of NATS, as far as a publisher to JetStream needs it: lines of text, and blocks behind two of them.

use crate::net::Connection;
use crate::sink::SinkError;
use hashmere_tls::ClientTls;
use serde_json::{json, Value as Json};
use std::io::{self, Write};

/// A connection to a server, with one subscription: to the subjects that replies come to.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    /// Subjects of replies begin with this; a number is behind it.
    pub inbox: String,
    /// Longest message that the server takes.
    pub max_payload: usize,
    requests: u64,
}

/// A message that came to the inbox.
#[derive(Debug, Default)]
pub struct Reply {
    /// The number behind the inbox's prefix; `None`: it was delivered there by a consumer, with its own subject.
    pub number: Option<u64>,
    /// Its subject, of what a consumer delivered.
    pub subject: String,
    /// Its subject of reply: of what a consumer delivered, where it was in the stream.
    pub reply: String,
    /// Headers as they came; empty: none.
    pub headers: Vec<u8>,
    /// What it says.
    pub payload: Vec<u8>,
}

/// Numbers of requests are from here on; below are those of messages.
const REQUESTS: u64 = 1 << 62;

/// User and password; one alone is a token.
#[derive(Debug)]
pub struct Login<'a> {
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
}

impl Client {
    /// Connects and subscribes.
    pub fn open(host: &str, port: u16, login: &Login<'_>, tls: Option<&ClientTls>) -> Result<Client, SinkError> {
        let mut connection = Connection::open(host, port)?;
        let hello = connection.line()?;
        let info: Json = hello
            .strip_prefix(b"INFO ")
            .and_then(|text| serde_json::from_slice(text).ok())
            .ok_or_else(|| SinkError::Refused(format!("{host}:{port} is no NATS server")))?;
        if info["headers"].as_bool() != Some(true) {
            return Err(SinkError::Refused("the server has no headers: NATS 2.2 or later is needed".into()));
        }
        match tls {
            Some(tls) => connection = connection.secured(tls, host)?,
            None if info["tls_required"].as_bool() == Some(true) => {
                let text = "the server demands TLS: write tls://HOST/STREAM?ca=FILE, or tls-kv://";
                return Err(SinkError::Refused(text.into()));
            }
            None => {}
        }
        let mut connect = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "lang": "rust",
            "name": "hashmere feed", "version": env!("CARGO_PKG_VERSION"), "protocol": 1,
        });
        match (login.user, login.password) {
            (Some(user), Some(password)) => {
                connect["user"] = user.into();
                connect["pass"] = password.into();
            }
            (Some(token), None) | (None, Some(token)) => connect["auth_token"] = token.into(),
            (None, None) => {}
        }
        let inbox = format!("_INBOX.{}.", unique());
        connection.write(format!("CONNECT {connect}\r\nSUB {inbox}* 1\r\nPING\r\n").as_bytes())?;
        let max_payload = info["max_payload"].as_u64().and_then(|max| max.try_into().ok()).unwrap_or(1 << 20);
        let mut client = Client { connection, inbox, max_payload, requests: REQUESTS };
        while client.control(&mut Reply::default())? != Control::Pong {}
        Ok(client)
    }

    /// Sends bytes that were made by [`publish`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        Ok(self.connection.write(bytes)?)
    }

    /// Answers what the server has asked, without waiting; a connection on which nothing is read is closed in the end.
    pub fn keep_alive(&mut self) -> Result<(), SinkError> {
        while self.connection.has_input()? {
            self.control(&mut Reply::default())?;
        }
        Ok(())
    }

    /// The next message of the inbox.
    pub fn reply(&mut self) -> Result<Reply, SinkError> {
        let mut reply = Reply::default();
        self.reply_into(&mut reply)?;
        Ok(reply)
    }

    /// The same in place of another one, whose memory it takes: an acknowledgement comes for every message.
    pub fn reply_into(&mut self, reply: &mut Reply) -> Result<(), SinkError> {
        while self.control(reply)? != Control::Message {}
        Ok(())
    }

    /// Asks and waits for the answer, as JSON.
    pub fn ask(&mut self, subject: &str, question: &Json) -> Result<Json, SinkError> {
        let question = if question.is_null() { String::new() } else { question.to_string() };
        let number = self.next_request();
        let out = format!("PUB {subject} {}{number} {}\r\n{question}\r\n", self.inbox, question.len());
        self.connection.write(out.as_bytes())?;
        loop {
            let reply = self.reply()?;
            if reply.number != Some(number) {
                continue;
            }
            if reply.headers.starts_with(b"NATS/1.0 503") {
                return Err(SinkError::lost("the server does not answer for JetStream; is it enabled there (-js)?"));
            }
            return serde_json::from_slice(&reply.payload).map_err(|error| SinkError::lost(error.to_string()));
        }
    }

    /// A number for a question whose answers are read one by one.
    pub fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// What the server says next; of a message the reply.
    fn control(&mut self, reply: &mut Reply) -> Result<Control, SinkError> {
        let line = self.connection.line()?;
        if line.starts_with(b"MSG ") || line.starts_with(b"HMSG ") {
            let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a message is not as the protocol has it");
            let (headers, len) = reply.begin(line, self.inbox.as_bytes()).ok_or_else(invalid)?;
            let block = self.connection.block(len)?;
            reply.headers.extend_from_slice(&block[..headers]);
            reply.payload.extend_from_slice(&block[headers..]);
            return Ok(Control::Message);
        }
        if line == b"PING" {
            self.connection.write(b"PONG\r\n")?;
            return Ok(Control::Other);
        }
        if line == b"PONG" {
            return Ok(Control::Pong);
        }
        match line.strip_prefix(b"-ERR ") {
            Some(text) => Err(refused(String::from_utf8_lossy(text).trim_matches('\'').to_owned())),
            // INFO, +OK.
            None => Ok(Control::Other),
        }
    }
}

impl Reply {
    /// Takes what a line says, `MSG subject sid [reply] len` or `HMSG subject sid [reply] header-len len`; lengths of
    /// the headers and of all. `None`: it is no such line.
    fn begin(&mut self, line: &[u8], inbox: &[u8]) -> Option<(usize, usize)> {
        self.headers.clear();
        self.payload.clear();
        let mut words = line.split(|&b| b == b' ');
        words.next()?;
        let subject = words.next()?;
        words.next()?;
        let number = |word: Option<&[u8]>| std::str::from_utf8(word?).ok()?.parse::<usize>().ok();
        let len = number(words.next_back()).filter(|len| *len <= 64 << 20)?;
        let headers = if line[0] == b'H' { number(words.next_back()).filter(|headers| *headers <= len)? } else { 0 };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.reply = words.next().map(text).unwrap_or_default();
        self.number = subject.strip_prefix(inbox).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        self.subject = if self.number.is_none() { text(subject) } else { String::new() };
        Some((headers, len))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Control {
    Pong,
    Other,
    Message,
}

fn refused(text: String) -> SinkError {
    let low = text.to_lowercase();
    // Others, such as a stale connection or a server that shuts down, go away.
    if ["authorization", "permissions", "authentication"].iter().any(|word| low.contains(word)) {
        SinkError::Refused(text)
    } else {
        SinkError::lost(text)
    }
}

/// A name that no other client has.
fn unique() -> String {
    let (pid, now) = (std::process::id(), hashmere_os::clock::wall().as_nanos());
    format!("hm{pid}n{now}")
}

/// Appends a message with headers: `head` are its lines, each with its end.
pub fn publish(subject: [&[u8]; 2], inbox: &str, number: u64, head: &[u8], payload: &[u8], out: &mut Vec<u8>) {
    const VERSION: &[u8] = b"NATS/1.0\r\n";
    out.extend_from_slice(b"HPUB ");
    subject.iter().for_each(|part| out.extend_from_slice(part));
    let headers = VERSION.len() + head.len() + 2;
    // Memory takes all of it.
    let _ = write!(out, " {inbox}{number} {headers} {}\r\n", headers + payload.len());
    out.extend_from_slice(VERSION);
    out.extend_from_slice(head);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// The value of a header.
pub fn header<'a>(headers: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let lines = headers.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let values = lines.filter_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"));
    values.map(|value| value.trim_ascii()).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    #[test]
    fn messages_and_headers() {
        let mut out = Vec::new();
        publish([b"s.", b"a"], "_INBOX.x.", 7, b"A: b\r\n", b"xyz", &mut out);
        assert_eq!(out, b"HPUB s.a _INBOX.x.7 18 21\r\nNATS/1.0\r\nA: b\r\n\r\nxyz\r\n");
        assert_eq!(header(b"NATS/1.0\r\nA: b\r\nAB:c\r\n\r\n", "AB"), Some(&b"c"[..]));
        assert_eq!(header(b"NATS/1.0\r\nA: b\r\n\r\n", "B"), None);
    }

    #[test]
    fn a_conversation() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"INFO {\"headers\":true,\"max_payload\":100}\r\n").unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut next = move || lines.next().unwrap().unwrap();
            assert!(next().starts_with("CONNECT {"));
            assert!(next().starts_with("SUB _INBOX."));
            assert_eq!(next(), "PING");
            stream.write_all(b"PONG\r\nPING\r\n").unwrap();
            let request = next();
            let inbox = request.split(' ').nth(2).unwrap().to_owned();
            assert_eq!((next(), next()), ("{\"a\":1}".into(), "PONG".into()));
            write!(stream, "MSG {inbox}9 1 2\r\n{{}}\r\nMSG {inbox} 1 reply 7\r\n{{\"b\":2}}\r\n").unwrap();
            assert!(next().starts_with("PUB x "));
            write!(stream, "\r\n-ERR 'Permissions Violation'\r\n").unwrap();
            // Until the client is gone, so that it has read it.
            while stream.peek(&mut [0]).is_ok_and(|n| n != 0) {
                let _ = std::io::Read::read(&mut stream, &mut [0; 64]);
            }
        });
        let mut client = Client::open("127.0.0.1", port, &Login { user: None, password: None }, None).unwrap();
        assert_eq!(client.max_payload, 100);
        assert_eq!(client.ask("q", &json!({"a": 1})).unwrap(), json!({"b": 2}));
        assert!(matches!(client.ask("x", &Json::Null), Err(SinkError::Refused(_))));
        drop(client);
        server.join().unwrap();
    }
}
