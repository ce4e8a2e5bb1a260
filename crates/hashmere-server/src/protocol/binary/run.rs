//! The loop over packets, and the operations that store nothing.

use super::parse::{is_well_formed, opcode, status, word, Header, Packet, HEADER};
use super::reply::{fail, miss, reply, Reply};
use super::{sasl, write};
use crate::commands::marks;
use crate::protocol::tokens::Tokens;
use crate::protocol::{Gate, Next, OUTPUT_MAX};
use crate::stats::{self, Answer};
use crate::turn::Turn;
use crate::watch::requests;
use hashmere_engine::{Framed, StoreHandle};
use std::sync::atomic::Ordering;

/// Largest body of a request that stores nothing.
const BODY_MAX: usize = 64 << 10;

/// Performs the packets of this input. Returns how many bytes were consumed, and what is needed to continue.
pub fn feed(gate: &mut Gate, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
    let mut at = 0;
    loop {
        if turn.out.len() >= OUTPUT_MAX {
            return (at, Next::Output);
        }
        let rest = &input[at..];
        let Some(bytes) = rest.first_chunk::<HEADER>() else { return (at, Next::Input(HEADER)) };
        let Some(header) = Header::read(bytes) else { return (at, Next::Close) };
        let (opcode, quiet) = header.quiet();
        let refused = |key, extras, value| Packet { header, opcode, quiet, extras, key, value };
        // What such a client sends next cannot be trusted to begin where a packet does.
        if !is_well_formed(opcode, &header) {
            fail(turn, &refused(b"", b"", b""), status::INVALID);
            return (at + HEADER, Next::Close);
        }
        let value_len = (header.body - header.key - header.extras) as u64;
        let stores = matches!(opcode, opcode::SET..=opcode::REPLACE | opcode::APPEND | opcode::PREPEND);
        let too_large = match stores {
            true => gate.locked && header.body > BODY_MAX || value_len > turn.server.config.item_max,
            false => header.body > BODY_MAX,
        };
        if too_large {
            let head = HEADER + header.extras + header.key;
            let Some(key) = rest.get(HEADER + header.extras..head) else { return (at, Next::Input(head)) };
            let packet = refused(key, b"", b"");
            match stores && !gate.locked {
                true => write::refuse_large(turn, &packet),
                false => fail(turn, &packet, status::TOO_LARGE),
            }
            at += HEADER;
            gate.skip = header.body as u64;
            at += gate.skip_from(&input[at..]);
            if gate.skip > 0 {
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
        if !perform(gate, turn, &refused(key, extras, value)) {
            return (at, Next::Close);
        }
    }
}

/// Performs a packet; `false` closes the connection.
fn perform(gate: &mut Gate, turn: &mut Turn<'_>, packet: &Packet<'_>) -> bool {
    use opcode::*;
    if matches!(packet.opcode, SASL_LIST | SASL_AUTH | SASL_STEP) {
        sasl::run(gate, turn, packet);
        return true;
    }
    if gate.locked && packet.opcode != VERSION && packet.opcode != QUIT {
        fail(turn, packet, status::AUTH_ERROR);
        return true;
    }
    match packet.opcode {
        GET | GETK => get(turn, packet),
        GAT | GATK | TOUCH => write::touch(turn, packet),
        SET | ADD | REPLACE | APPEND | PREPEND => write::set(turn, packet),
        DELETE => write::delete(turn, packet),
        INCREMENT | DECREMENT => write::count(turn, packet),
        FLUSH => write::flush(turn, packet),
        NOOP => reply(turn, packet, 0, b"", b"", b""),
        VERSION => reply(turn, packet, 0, b"", b"", stats::VERSION.as_bytes()),
        VERBOSITY => {
            let level = u8::try_from(word(packet.extras, 0)).unwrap_or(u8::MAX);
            turn.server.verbosity.store(level, Ordering::Relaxed);
            reply(turn, packet, 0, b"", b"", b"");
        }
        STAT => stat(turn, packet),
        QUIT => {
            if !packet.quiet {
                reply(turn, packet, 0, b"", b"", b"");
            }
            return false;
        }
        _ => fail(turn, packet, status::UNKNOWN),
    }
    true
}

fn get(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let key = if packet.opcode == opcode::GETK { packet.key } else { b"" };
    let head = |meta: &hashmere::Metadata, cas: u64, out: &mut Vec<u8>| {
        let (opcode, opaque) = (packet.header.opcode, packet.header.opaque);
        let value = meta.value_len as usize;
        Reply { opcode, status: 0, extras: 4, key: key.len(), value, opaque, cas }.write(out);
        out.extend_from_slice(&meta.flags.to_be_bytes());
        out.extend_from_slice(key);
    };
    let shows = turn.server.config.cas;
    let cas = |meta: &hashmere::Metadata| if shows { meta.version.0 } else { 0 };
    turn.counters.cmd_get.add(1);
    let start = turn.out.bytes.len();
    let framed =
        turn.server.store.shared().get_framed(packet.key, &mut turn.out.bytes, |meta, out| head(meta, cas(meta), out));
    // The placeholder of a lease is no value.
    let framed = match framed {
        Ok(Framed::Copied(meta)) if marks::is_hidden(meta.marks) => {
            turn.out.bytes.truncate(start);
            Ok(Framed::Absent)
        }
        framed => framed,
    };
    requests::fetched(turn, packet.key, matches!(framed, Ok(Framed::Copied(_) | Framed::Long(_))));
    turn.server.detail.fetched(packet.key, matches!(framed, Ok(Framed::Copied(_) | Framed::Long(_))));
    match framed {
        Ok(Framed::Copied(meta)) => turn.note(meta.uid, true),
        Ok(Framed::Long(view)) => {
            let meta = view.metadata();
            turn.note(meta.uid, true);
            head(&meta, cas(&meta), &mut turn.out.bytes);
            turn.out.push_view(view);
        }
        Ok(Framed::Absent) => {
            turn.counters.get_misses.add(1);
            turn.missed(packet.key);
            return miss(turn, packet, key);
        }
        Err(error) => {
            turn.server.report_unreadable(&error);
            turn.counters.get_misses.add(1);
            return miss(turn, packet, key);
        }
    }
    turn.counters.get_hits.add(1);
}

fn stat(turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let mut tokens = Tokens::new(packet.key);
    let (name, argument) = (tokens.next().unwrap_or(b""), tokens.next());
    let server = turn.server;
    if name == b"detail" && !server.config.may_dump {
        return fail(turn, packet, status::AUTH_ERROR);
    }
    let answer = stats::group(server, name, argument, &mut |name, value| {
        reply(turn, packet, 0, b"", name.as_bytes(), value.as_bytes());
    });
    match answer {
        Answer::Unknown => fail(turn, packet, status::NOT_FOUND),
        _ => reply(turn, packet, 0, b"", b"", b""),
    }
}
