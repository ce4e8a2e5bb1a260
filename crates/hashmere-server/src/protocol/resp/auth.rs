//! `AUTH`, `HELLO`, `RESET`.

use super::client::is_name;
use super::keys::SYNTAX;
use super::number::integer;
use super::parse::Args;
use super::state::{Client, Step};
use crate::turn::Turn;

/// The account of clients that have a password only.
const DEFAULT: &[u8] = b"default";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// What is said of the server, and to clients that ask which Redis it is like.
pub const VERSION: &str = "7.0.15";

/// Whether this account is one of the server's. Without accounts only `default` is, with any password, as in Redis.
fn admits(turn: &Turn<'_>, name: &[u8], password: &[u8]) -> bool {
    let counters = turn.counters;
    counters.auth_cmds.add(1);
    let admitted = match turn.server.accounts() {
        Some(accounts) => accounts.admits(name, password),
        None => name == DEFAULT,
    };
    if !admitted {
        counters.auth_errors.add(1);
    }
    admitted
}

/// `AUTH [name] password`.
pub fn auth(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let (name, password) = match args.count() {
        2 => (DEFAULT, args.at(1)),
        3 => (args.at(1), args.at(2)),
        _ => {
            client.reply_to(turn).error(SYNTAX);
            return Step::Done;
        }
    };
    if args.count() == 2 && turn.server.accounts().is_none() {
        client.reply_to(turn).error(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        );
        return Step::Done;
    }
    if admits(turn, name, password) {
        client.admit(name);
        client.reply_to(turn).ok();
    } else {
        client.reply_to(turn).error(WRONG);
    }
    Step::Done
}

/// `HELLO [version [AUTH name password] [SETNAME name]]`.
pub fn hello(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let mut version = None;
    if args.count() > 1 {
        match integer(args.at(1)) {
            Some(2) => version = Some(false),
            Some(3) => version = Some(true),
            Some(_) => {
                client.reply_to(turn).error("NOPROTO unsupported protocol version");
                return Step::Done;
            }
            None => {
                client.reply_to(turn).error("ERR Protocol version is not an integer or out of range");
                return Step::Done;
            }
        }
    }
    let (mut account, mut name) = (None, None);
    let mut at = 2;
    while at < args.count() {
        let left = args.count() - at - 1;
        if args.is(at, "auth") && left >= 2 {
            account = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && left >= 1 {
            if !is_name(args.at(at + 1)) {
                let text = "ERR Client names cannot contain spaces, newlines or special characters.";
                client.reply_to(turn).error(text);
                return Step::Done;
            }
            name = Some(args.at(at + 1));
            at += 2;
        } else {
            let text = format!("ERR Syntax error in HELLO option '{}'", String::from_utf8_lossy(args.at(at)));
            client.reply_to(turn).error(&text);
            return Step::Done;
        }
    }
    if let Some((user, password)) = account {
        if !admits(turn, user, password) {
            client.reply_to(turn).error(WRONG);
            return Step::Done;
        }
        client.admit(user);
    }
    if client.locked {
        client.reply_to(turn).error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        );
        return Step::Done;
    }
    if let Some(name) = name {
        client.set_name(name);
    }
    if let Some(resp3) = version {
        client.speak(resp3);
    }
    let id = turn.connection as i64;
    let reply = &mut client.reply_to(turn);
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    let resp3 = reply.resp3;
    for (name, value) in [("proto", if resp3 { 3 } else { 2 }), ("id", id)] {
        reply.bulk(name.as_bytes());
        reply.integer(value);
    }
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Step::Done
}

/// `RESET`.
pub fn reset(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reset(turn.server.config.accounts.is_some());
    client.reply_to(turn).simple("RESET");
    Step::Done
}
