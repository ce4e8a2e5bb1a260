//! SASL: the mechanism PLAIN.

use super::binary::Packet;
use super::{Context, Session};
use crate::protocol::binary::{opcode, status};

impl Session {
    pub(super) fn sasl(&mut self, cx: &mut Context<'_>, packet: &Packet<'_>) {
        let Some(accounts) = cx.server.accounts() else { return cx.fail(packet, status::UNKNOWN) };
        match packet.opcode {
            opcode::SASL_LIST => cx.reply(packet, 0, b"", b"", b"PLAIN"),
            opcode::SASL_AUTH if packet.key == b"PLAIN" => {
                cx.counters.auth_cmds.add(1);
                // Whom to act for, a zero, the name, a zero, the password.
                let mut parts = packet.value.splitn(3, |byte| *byte == 0);
                let (_, name, password) = (parts.next(), parts.next(), parts.next());
                let admitted = match (name, password) {
                    (Some(name), Some(password)) => accounts.admits(name, password),
                    _ => false,
                };
                if admitted {
                    self.locked = false;
                    cx.reply(packet, 0, b"", b"", b"Authenticated");
                } else {
                    cx.counters.auth_errors.add(1);
                    cx.fail(packet, status::AUTH_ERROR);
                }
            }
            // PLAIN has one step only.
            _ => {
                cx.counters.auth_cmds.add(1);
                cx.counters.auth_errors.add(1);
                cx.fail(packet, status::AUTH_ERROR);
            }
        }
    }
}
