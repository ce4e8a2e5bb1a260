//! SASL: the mechanism PLAIN.

use super::parse::{opcode, status, Packet};
use super::reply::{fail, reply};
use crate::protocol::Gate;
use crate::turn::Turn;

/// Lists the mechanisms, or authenticates.
pub fn run(gate: &mut Gate, turn: &mut Turn<'_>, packet: &Packet<'_>) {
    let Some(accounts) = turn.server.accounts() else { return fail(turn, packet, status::UNKNOWN) };
    match packet.opcode {
        opcode::SASL_LIST => reply(turn, packet, 0, b"", b"", b"PLAIN"),
        opcode::SASL_AUTH if packet.key == b"PLAIN" => {
            turn.counters.auth_cmds.add(1);
            // Whom to act for, a zero, the name, a zero, the password.
            let mut parts = packet.value.splitn(3, |byte| *byte == 0);
            let (_, name, password) = (parts.next(), parts.next(), parts.next());
            let admitted = match (name, password) {
                (Some(name), Some(password)) => accounts.admits(name, password),
                _ => false,
            };
            if admitted {
                gate.locked = false;
                reply(turn, packet, 0, b"", b"", b"Authenticated");
            } else {
                turn.counters.auth_errors.add(1);
                fail(turn, packet, status::AUTH_ERROR);
            }
        }
        // PLAIN has one step only.
        _ => {
            turn.counters.auth_cmds.add(1);
            turn.counters.auth_errors.add(1);
            fail(turn, packet, status::AUTH_ERROR);
        }
    }
}
