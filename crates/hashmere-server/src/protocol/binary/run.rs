//! The loop over packets of the binary protocol, and the operations that are not about storing.

use super::{Context, Next, Session, OUTPUT_MAX};
use crate::protocol::binary::{self, opcode, status, Header, Reply, HEADER};
use crate::protocol::classic::LEN_MAX;
use crate::protocol::KEY_MAX;
use crate::stats::{self, Answer};
use hashmere_engine::{Framed, StoreHandle};
use std::sync::atomic::Ordering;

/// Largest body of a request that stores nothing.
const BODY_MAX: usize = 64 << 10;

/// One request, whole.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header,
    /// Its operation, loud.
    pub opcode: u8,
    /// Whether replies that say nothing new are left out.
    pub quiet: bool,
    /// Its extras.
    pub extras: &'a [u8],
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

impl Session {
    pub(super) fn feed_binary(&mut self, cx: &mut Context<'_>, input: &[u8]) -> (usize, Next) {
        let mut at = 0;
        loop {
            if cx.out.len() >= OUTPUT_MAX {
                return (at, Next::Output);
            }
            let rest = &input[at..];
            let Some(bytes) = rest.first_chunk::<HEADER>() else { return (at, Next::Input(HEADER)) };
            let Some(header) = Header::read(bytes) else { return (at, Next::Close) };
            let (opcode, quiet) = header.quiet();
            let refused = |key, extras, value| Packet { header, opcode, quiet, extras, key, value };
            // What such a client sends next cannot be trusted to begin where a packet does.
            if !is_well_formed(opcode, &header) {
                cx.fail(&refused(b"", b"", b""), status::INVALID);
                return (at + HEADER, Next::Close);
            }
            let value_len = (header.body - header.key - header.extras) as u64;
            let stores = matches!(opcode, opcode::SET..=opcode::REPLACE | opcode::APPEND | opcode::PREPEND);
            let too_large = match stores {
                true => self.locked && header.body > BODY_MAX || value_len > cx.server.config.item_max,
                false => header.body > BODY_MAX,
            };
            if too_large {
                let head = HEADER + header.extras + header.key;
                let Some(key) = rest.get(HEADER + header.extras..head) else { return (at, Next::Input(head)) };
                let packet = refused(key, b"", b"");
                match stores && !self.locked {
                    true => cx.binary_too_large(&packet),
                    false => cx.fail(&packet, status::TOO_LARGE),
                }
                at += HEADER;
                let here = header.body.min(input.len() - at);
                at += here;
                self.swallow = (header.body - here) as u64;
                if self.swallow > 0 {
                    return (at, Next::Input(0));
                }
                continue;
            }
            let Some(body) = rest.get(HEADER..HEADER + header.body) else {
                return (at, Next::Input(HEADER + header.body));
            };
            // The lengths were compared above.
            let Some((extras, key, value)) = header.split(body) else { return (at, Next::Close) };
            at += HEADER + header.body;
            if !self.packet(cx, &refused(key, extras, value)) {
                return (at, Next::Close);
            }
        }
    }

    /// Performs a packet; `false` closes the connection.
    fn packet(&mut self, cx: &mut Context<'_>, packet: &Packet<'_>) -> bool {
        use opcode::*;
        if matches!(packet.opcode, SASL_LIST | SASL_AUTH | SASL_STEP) {
            self.sasl(cx, packet);
            return true;
        }
        if self.locked && packet.opcode != VERSION && packet.opcode != QUIT {
            cx.fail(packet, status::AUTH_ERROR);
            return true;
        }
        match packet.opcode {
            GET | GETK => cx.binary_get(packet),
            GAT | GATK | TOUCH => cx.binary_touch(packet),
            SET | ADD | REPLACE | APPEND | PREPEND => cx.binary_put(packet),
            DELETE => cx.binary_delete(packet),
            INCREMENT | DECREMENT => cx.binary_count(packet),
            FLUSH => cx.binary_flush(packet),
            NOOP => cx.reply(packet, 0, b"", b"", b""),
            VERSION => cx.reply(packet, 0, b"", b"", stats::VERSION.as_bytes()),
            VERBOSITY => {
                let level = u8::try_from(binary::word(packet.extras, 0)).unwrap_or(u8::MAX);
                cx.server.verbosity.store(level, Ordering::Relaxed);
                cx.reply(packet, 0, b"", b"", b"");
            }
            STAT => cx.binary_stat(packet),
            QUIT => {
                if !packet.quiet {
                    cx.reply(packet, 0, b"", b"", b"");
                }
                return false;
            }
            _ => cx.fail(packet, status::UNKNOWN),
        }
        true
    }
}

/// Whether a packet has the parts that its operation needs and no others, as far as its header says.
fn is_well_formed(opcode: u8, header: &Header) -> bool {
    use opcode::*;
    let (extras, key) = (header.extras, header.key > 0);
    let Some(value) = header.body.checked_sub(header.key + extras) else { return false };
    if header.key > KEY_MAX || header.body as u64 > LEN_MAX {
        return false;
    }
    match opcode {
        GET | GETK | DELETE => extras == 0 && key && value == 0,
        SET | ADD | REPLACE => extras == 8 && key,
        APPEND | PREPEND => extras == 0 && key,
        INCREMENT | DECREMENT => extras == 20 && key && value == 0,
        TOUCH | GAT | GATK => extras == 4 && key && value == 0,
        FLUSH => (extras == 0 || extras == 4) && !key && value == 0,
        VERBOSITY => extras == 4 && !key && value == 0,
        NOOP | VERSION | QUIT => extras == 0 && !key && value == 0,
        STAT => extras == 0 && value == 0,
        _ => true,
    }
}

impl Context<'_> {
    /// Answers a packet.
    pub fn reply(&mut self, packet: &Packet<'_>, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) {
        let opcode = packet.header.opcode;
        let (extras_len, key_len) = (extras.len(), key.len());
        let reply = Reply { opcode, extras: extras_len, key: key_len, value: value.len(), cas, ..Reply::default() };
        Reply { opaque: packet.header.opaque, ..reply }.write(&mut self.out.bytes);
        for part in [extras, key, value] {
            self.out.bytes.extend_from_slice(part);
        }
    }

    /// Answers a packet with an error.
    pub fn fail(&mut self, packet: &Packet<'_>, (status, text): (u16, &str)) {
        let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
        let value = text.len();
        Reply { opcode, status, value, opaque, ..Reply::default() }.write(&mut self.out.bytes);
        self.out.text(text);
    }

    fn binary_get(&mut self, packet: &Packet<'_>) {
        let key = if packet.opcode == opcode::GETK { packet.key } else { b"" };
        let head = |meta: &hashmere::Metadata, cas: u64, out: &mut Vec<u8>| {
            let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
            let value = meta.value_len as usize;
            Reply { opcode, status: 0, extras: 4, key: key.len(), value, opaque, cas }.write(out);
            out.extend_from_slice(&meta.flags.to_be_bytes());
            out.extend_from_slice(key);
        };
        let shows = self.server.config.cas;
        let cas = |meta: &hashmere::Metadata| if shows { meta.version.0 } else { 0 };
        self.counters.cmd_get.add(1);
        let framed = self
            .server
            .store
            .shared()
            .get_framed(packet.key, &mut self.out.bytes, |meta, out| head(meta, cas(meta), out));
        self.log_fetch(packet.key, matches!(framed, Ok(Framed::Copied(_) | Framed::Long(_))));
        self.server.detail.fetched(packet.key, matches!(framed, Ok(Framed::Copied(_) | Framed::Long(_))));
        match framed {
            Ok(Framed::Copied(meta)) => self.note(meta.uid, true),
            Ok(Framed::Long(view)) => {
                let meta = view.metadata();
                self.note(meta.uid, true);
                head(&meta, cas(&meta), &mut self.out.bytes);
                self.out.push_view(view);
            }
            Ok(Framed::Absent) => {
                self.counters.get_misses.add(1);
                self.missed(packet.key);
                return self.binary_miss(packet, key);
            }
            Err(error) => {
                self.unreadable(&error);
                self.counters.get_misses.add(1);
                return self.binary_miss(packet, key);
            }
        }
        self.counters.get_hits.add(1);
    }

    /// A miss. With the key in the reply there is no room for a text.
    pub fn binary_miss(&mut self, packet: &Packet<'_>, key: &[u8]) {
        if packet.quiet {
            return;
        }
        if key.is_empty() {
            return self.fail(packet, status::NOT_FOUND);
        }
        let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
        let status = status::NOT_FOUND.0;
        Reply { opcode, status, key: key.len(), opaque, ..Reply::default() }.write(&mut self.out.bytes);
        self.out.bytes.extend_from_slice(key);
    }

    fn binary_stat(&mut self, packet: &Packet<'_>) {
        let mut words = crate::protocol::words::Words::new(packet.key);
        let (name, argument) = (words.next().unwrap_or(b""), words.next());
        let server = self.server;
        if name == b"detail" && !server.config.may_dump {
            return self.fail(packet, status::AUTH_ERROR);
        }
        let answer = stats::group(server, name, argument, &mut |name, value| {
            self.reply(packet, 0, b"", name.as_bytes(), value.as_bytes());
        });
        match answer {
            Answer::Unknown => self.fail(packet, status::NOT_FOUND),
            _ => self.reply(packet, 0, b"", b"", b""),
        }
    }
}
