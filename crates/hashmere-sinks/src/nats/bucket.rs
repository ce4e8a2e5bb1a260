//! A bucket of NATS as a copy of the store: a key is a subject, the value its last message.
//!
//! What is removed gets a message that says so, as every client of a bucket writes it. A clear, and a reset when all
//! keys were read, remove what has no message since: a consumer of the bucket lists the last message of every key. What
//! has no place in a bucket is left out: touches, flags, expiry times. The key `_feed` has what happened to all keys.

use super::{checked, wire, NatsSink, FEED};
use crate::sink::SinkError;
use hashmere_feed::{Change, Event, Operation, Value};
use serde_json::json;

use super::names;
use crate::sink::Position;

const DELETED: &[u8] = b"KV-Operation: DEL\r\n";
/// Messages that are listed, and deleted, at a time.
const AT_ONCE: usize = 1000;

impl NatsSink {
    pub(super) fn append_to_bucket(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Read(change) | Event::Change(change) => self.append_key(change, event),
            Event::Clear { .. } => {
                self.delete_older(self.last + 1)?;
                self.append_feed(event)
            }
            Event::Synced { .. } => {
                let since = self.last_of_feed()?;
                self.delete_older(since)?;
                self.append_feed(event)
            }
            _ => self.append_feed(event),
        }
    }

    fn append_key(&mut self, change: &Change, event: &Event) -> Result<(), SinkError> {
        let is_removal = change.operation.removes();
        let bytes = match &change.value {
            _ if is_removal => &[],
            Value::Bytes(bytes) => bytes.as_slice(),
            // A later event has it. A touch changes nothing that a bucket has.
            Value::Superseded => return Ok(()),
            _ if change.operation == Operation::Touch => return Ok(()),
            _ => {
                let text = "a bucket needs values: follow the feed with them";
                return Err(SinkError::Refused(text.into()));
            }
        };
        if change.operation == Operation::Touch {
            return Ok(());
        }
        self.payload.clear();
        self.payload.extend_from_slice(bytes);
        self.set_position(event);
        let (mut subject, mut id) = (Vec::new(), Vec::new());
        names::bucket_key(&change.key, &mut subject);
        names::message_id(change, &mut id);
        self.append(&subject, &id, if is_removal { DELETED } else { b"" })
    }

    fn append_feed(&mut self, event: &Event) -> Result<(), SinkError> {
        self.set_position(event);
        self.payload.clear();
        event.write_json(&mut self.payload);
        self.append(FEED, b"", b"")
    }

    fn set_position(&mut self, event: &Event) {
        self.position.clear();
        Position::text(Position::behind(event), &mut self.position);
    }

    /// Sequence of the last event that concerned all keys.
    fn last_of_feed(&mut self) -> Result<u64, SinkError> {
        self.write()?;
        self.acknowledged(true)?;
        let subject = String::from_utf8_lossy(&[&self.subject, FEED].concat()).into_owned();
        let question = json!({ "last_by_subj": subject });
        let place = format!("$JS.API.STREAM.MSG.GET.{}", self.stream);
        let got = self.client()?.ask(&place, &question)?;
        if got["error"]["code"].as_u64() == Some(404) {
            return Ok(0);
        }
        Ok(checked(&got)?["message"]["seq"].as_u64().unwrap_or(0))
    }

    /// Deletes every key whose last message is older than this sequence. The position stays that of the event before.
    fn delete_older(&mut self, sequence: u64) -> Result<(), SinkError> {
        self.write()?;
        self.acknowledged(true)?;
        let keys = self.older(sequence)?;
        for keys in keys.chunks(AT_ONCE) {
            self.next_batch();
            for key in keys {
                self.payload.clear();
                self.append(key, b"", DELETED)?;
            }
            self.write()?;
            self.acknowledged(true)?;
        }
        self.next_batch();
        Ok(())
    }

    fn older(&mut self, sequence: u64) -> Result<Vec<Vec<u8>>, SinkError> {
        let (stream, prefix) = (self.stream.clone(), self.subject.clone());
        let client = self.client()?;
        let config = json!({
            "stream_name": stream, "config": {
                "deliver_policy": "last_per_subject", "ack_policy": "none", "headers_only": true,
                "filter_subject": format!("{}>", String::from_utf8_lossy(&prefix)),
                "inactive_threshold": 60_000_000_000u64, "mem_storage": true,
            },
        });
        let made = client.ask(&format!("$JS.API.CONSUMER.CREATE.{stream}"), &config)?;
        let name = checked(&made)?["name"].as_str().unwrap_or_default().to_owned();
        let mut keys = Vec::new();
        'all: loop {
            let number = client.next_request();
            let question = json!({ "batch": AT_ONCE, "no_wait": true }).to_string();
            let line = format!(
                "PUB $JS.API.CONSUMER.MSG.NEXT.{stream}.{name} {}{number} {}\r\n{question}\r\n",
                client.inbox,
                question.len()
            );
            client.write(line.as_bytes())?;
            for _ in 0..AT_ONCE {
                let message = client.reply()?;
                if message.number.is_some() {
                    // No messages, or no more.
                    break 'all;
                }
                let is_deleted = wire::header(&message.headers, "KV-Operation").is_some();
                let key = message.subject.as_bytes().strip_prefix(prefix.as_slice()).unwrap_or_default();
                let (at, rest) = place(&message.reply);
                if at < sequence && !is_deleted && !key.is_empty() && key != FEED {
                    keys.push(key.to_vec());
                }
                if rest == 0 {
                    break 'all;
                }
            }
        }
        client.ask(&format!("$JS.API.CONSUMER.DELETE.{stream}.{name}"), &serde_json::Value::Null)?;
        Ok(keys)
    }
}

/// Sequence of a delivered message, and how many there are behind it: from its subject of reply, which is
/// `$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.CONSUMER-SEQUENCE.TIME.PENDING`, or in later servers with a domain and
/// an account before the stream.
fn place(reply: &str) -> (u64, u64) {
    let parts: Vec<_> = reply.split('.').collect();
    let shift = if parts.len() > 9 { 2 } else { 0 };
    let number = |at: usize| parts.get(at + shift).and_then(|part| part.parse().ok());
    (number(5).unwrap_or(u64::MAX), number(8).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        assert_eq!(place("$JS.ACK.KV_b.c.1.42.3.1600000000.7"), (42, 7));
        assert_eq!(place("$JS.ACK._.hash.KV_b.c.1.42.3.1600000000.7.random"), (42, 7));
        assert_eq!(place(""), (u64::MAX, u64::MAX));
    }
}
