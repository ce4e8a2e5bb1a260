//! Requests and answers of Kafka's protocol, in the versions of it that have no tagged fields.

use crate::net::Connection;
use crate::sink::SinkError;

/// Longest answer that is read: that to a question for one topic.
const ANSWER: usize = 16 << 20;
/// What servers know this client as.
const CLIENT: &str = "hashmere";

/// A request: its number in the protocol, and the version of its form.
#[derive(Clone, Copy, Debug)]
pub struct Api(pub i16, pub i16);

pub const PRODUCE: Api = Api(0, 7);
pub const METADATA: Api = Api(3, 4);
pub const OFFSET_FETCH: Api = Api(9, 4);
pub const FIND_COORDINATOR: Api = Api(10, 1);
pub const SASL_HANDSHAKE: Api = Api(17, 1);
pub const CREATE_TOPICS: Api = Api(19, 4);
pub const INIT_PRODUCER_ID: Api = Api(22, 1);
pub const ADD_PARTITIONS_TO_TXN: Api = Api(24, 1);
pub const ADD_OFFSETS_TO_TXN: Api = Api(25, 1);
pub const END_TXN: Api = Api(26, 1);
pub const TXN_OFFSET_COMMIT: Api = Api(28, 1);
pub const SASL_AUTHENTICATE: Api = Api(36, 0);

/// The bytes of a request's body. Numbers are big-endian.
#[derive(Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn i8(&mut self, value: i8) -> &mut Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn i16(&mut self, value: i16) -> &mut Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn i32(&mut self, value: i32) -> &mut Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn i64(&mut self, value: i64) -> &mut Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Body {
        self.i16(text.len() as i16);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Body {
        self.i32(bytes.len() as i32);
        self.0.extend_from_slice(bytes);
        self
    }
}

/// The body of an answer, read from its beginning.
#[derive(Debug)]
pub struct Answer<'a>(&'a [u8]);

fn short() -> SinkError {
    SinkError::lost("the server's answer is shorter than its form")
}

impl<'a> Answer<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], SinkError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SinkError> {
        self.take(N)?.try_into().map_err(|_| short())
    }

    pub fn i16(&mut self) -> Result<i16, SinkError> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, SinkError> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, SinkError> {
        self.array().map(i64::from_be_bytes)
    }

    pub fn skip(&mut self, len: usize) -> Result<(), SinkError> {
        self.take(len).map(drop)
    }

    /// One that may be absent is empty then.
    pub fn text(&mut self) -> Result<String, SinkError> {
        let len = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    /// What each element of an array is.
    pub fn each<T>(
        &mut self,
        mut read: impl FnMut(&mut Answer<'a>) -> Result<T, SinkError>,
    ) -> Result<Vec<T>, SinkError> {
        let len = self.i32()?;
        // An element has a byte at least: what is longer ends with an error.
        (0..len.max(0)).map(|_| read(self)).collect()
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    asked: i32,
    out: Vec<u8>,
}

impl Link {
    pub fn new(connection: Connection) -> Link {
        Link { connection, asked: 0, out: Vec::new() }
    }

    /// Asks, waits, and reads the answer.
    pub fn ask<T>(
        &mut self,
        Api(number, version): Api,
        body: &Body,
        read: impl FnOnce(&mut Answer<'_>) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        self.asked = self.asked.wrapping_add(1);
        let mut head = Body::default();
        head.i16(number).i16(version).i32(self.asked).text(CLIENT);
        self.out.clear();
        self.out.extend_from_slice(&((head.0.len() + body.0.len()) as u32).to_be_bytes());
        self.out.extend_from_slice(&head.0);
        self.out.extend_from_slice(&body.0);
        self.connection.write(&self.out)?;
        let len = u32::from_be_bytes(self.connection.bytes(4)?.try_into().map_err(|_| short())?) as usize;
        if len > ANSWER {
            return Err(SinkError::Refused(format!("it is no server of Kafka: its answer has {len} bytes")));
        }
        let mut answer = Answer(self.connection.bytes(len)?);
        if answer.i32()? != self.asked {
            return Err(SinkError::lost("the server has answered another question"));
        }
        read(&mut answer)
    }

    /// Whether the server has said something that it was not asked for, such as that the connection is over.
    pub fn has_input(&mut self) -> std::io::Result<bool> {
        self.connection.has_input()
    }
}

/// What passes within milliseconds.
pub const NOT_OVER: &str = "the transaction before is not over yet";

/// An error code of the protocol; 0 is none. `what`: what was asked for.
pub fn succeeded(code: i16, what: &str) -> Result<(), SinkError> {
    let again = |why: &str| Err(SinkError::again(format!("{what}: {why}")));
    let passing = |why: &str| Err(SinkError::lost(format!("{what}: {why}")));
    let refused = |why: &str| Err(SinkError::Refused(format!("{what}: {why}")));
    match code {
        0 => Ok(()),
        3 => passing("the topic is not there yet"),
        5 | 6 => passing("the partition has no leader, or another one"),
        7 => passing("the servers took too long"),
        14..=16 => passing("the coordinator is not there yet"),
        19 | 20 => passing("too few replicas are there"),
        51 => passing(NOT_OVER),
        56 => passing("the server cannot write to its disk"),
        // The transaction was ended by another process, or by the server.
        45..=49 | 59 | 90 => again("another process has taken over, or it took too long"),
        10 => refused("an event is longer than the topic takes; raise its max.message.bytes"),
        17 => refused("no topic can have this name"),
        29 | 30 | 31 | 53 => refused("this account may not do that"),
        37 => refused("a topic needs one partition or more"),
        38 => refused("there are fewer servers than replicas are wanted"),
        58 => refused("the server does not know this name with this password"),
        33 => refused("the server does not take names with passwords (SASL PLAIN)"),
        35 => refused("the server is older than Kafka 2.1, or newer than this program"),
        code => refused(&format!("error {code} of Kafka")),
    }
}
