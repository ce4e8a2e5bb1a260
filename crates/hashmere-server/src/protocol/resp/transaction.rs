//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`, on a transaction of the store.

use super::keys::{self, count_up, refusal, Keys};
use super::parse::Args;
use super::reply::Reply;
use super::run::run;
use super::state::{refuse, Client, Command, Queue, Queued, Step, Watched, NO_MULTI};
use crate::commands::marks;
use crate::server::now_ms;
use crate::turn::Turn;
use hashmere::{Metadata, Version, WriteError};
use hashmere_engine::{FileTransaction, StoreHandle};

/// Bytes that may be queued, and most of a reply.
pub const BYTES_MAX: usize = 64 << 20;
/// Commands that may be queued.
const COMMANDS_MAX: usize = 1 << 20;
/// Keys that a connection may watch.
const WATCHED_MAX: usize = 1024;

fn state_of(meta: &Metadata) -> Option<(Version, Option<u64>)> {
    (!marks::is_hidden(meta.marks)).then_some((meta.version, meta.expires_at_ms))
}

/// Keeps a command for `EXEC`.
pub fn queue(client: &mut Client, turn: &mut Turn<'_>, command: &'static Command, args: Args<'_>) -> Step {
    if command.has(NO_MULTI) {
        return refuse(client, turn, "ERR Command not allowed inside a transaction");
    }
    let queued = Queued::new(command, args);
    let Some(queue) = &mut client.queue else { return Step::Done };
    let bytes = queue.bytes + queued.size();
    if bytes > BYTES_MAX || queue.commands.len() >= COMMANDS_MAX {
        return refuse(client, turn, "ERR a transaction has at most 1048576 commands and 64 MiB of arguments");
    }
    // What fails already does nothing: its commands need not be kept.
    if !queue.aborted {
        queue.bytes = bytes;
        queue.commands.push(queued);
    }
    Reply { out: &mut turn.out.bytes, resp3: client.resp3 }.simple("QUEUED");
    Step::Done
}

/// `MULTI`.
pub fn multi(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let reply = &mut Reply { out: &mut turn.out.bytes, resp3: client.resp3 };
    if client.queue.is_some() {
        // The transaction that is open goes on.
        reply.error("ERR MULTI calls can not be nested");
        return Step::Done;
    }
    client.queue = Some(Queue::default());
    reply.ok();
    Step::Done
}

/// `DISCARD`.
pub fn discard(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let reply = &mut Reply { out: &mut turn.out.bytes, resp3: client.resp3 };
    if client.queue.take().is_none() {
        reply.error("ERR DISCARD without MULTI");
        return Step::Done;
    }
    client.watched.clear();
    reply.ok();
    Step::Done
}

/// `WATCH key ...`
pub fn watch(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let reply = &mut Reply { out: &mut turn.out.bytes, resp3: client.resp3 };
    if client.queue.is_some() {
        reply.error("ERR WATCH inside MULTI is not allowed");
        return Step::Done;
    }
    for key in args.from(1) {
        // What is watched already is so from its first time on.
        if client.watched.iter().any(|watched| *watched.key == *key) {
            continue;
        }
        if client.watched.len() >= WATCHED_MAX {
            reply.error("ERR a connection watches at most 1024 keys");
            return Step::Done;
        }
        match turn.server.store.metadata(key) {
            Ok(meta) => client.watched.push(Watched { key: key.into(), state: meta.as_ref().and_then(state_of) }),
            Err(error) => {
                reply.error(&format!("ERR {error}"));
                return Step::Done;
            }
        }
    }
    reply.ok();
    Step::Done
}

/// `UNWATCH`.
pub fn unwatch(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.watched.clear();
    Reply { out: &mut turn.out.bytes, resp3: client.resp3 }.ok();
    Step::Done
}

/// Why a transaction was given up.
enum Refused {
    /// By the store.
    Store(WriteError),
    /// Its replies are too long.
    TooLong,
}

impl From<WriteError> for Refused {
    fn from(error: WriteError) -> Refused {
        Refused::Store(error)
    }
}

/// `EXEC`.
pub fn exec(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let resp3 = client.resp3;
    let Some(queue) = client.queue.take() else {
        Reply { out: &mut turn.out.bytes, resp3 }.error("ERR EXEC without MULTI");
        return Step::Done;
    };
    let watched = std::mem::take(&mut client.watched);
    if queue.aborted {
        Reply { out: &mut turn.out.bytes, resp3 }.error("EXECABORT Transaction discarded because of previous errors.");
        return Step::Done;
    }
    let (mut replies, mut ends) = (Vec::new(), Vec::with_capacity(queue.commands.len()));
    let now = now_ms() as i64;
    let done = turn.server.store.shared().transaction(|transaction| {
        replies.clear();
        ends.clear();
        if !are_as_watched(transaction, &watched)? {
            return Ok(None);
        }
        let mut keys = Keys::new(transaction, turn.server, now);
        for queued in &queue.commands {
            if let Some(perform) = queued.command.perform {
                keys::one(&mut keys, perform, queued.args(), &mut Reply { out: &mut replies, resp3 })?;
            }
            if replies.len() > BYTES_MAX {
                return Err(Refused::TooLong);
            }
            ends.push(replies.len());
        }
        Ok(Some((keys.hits, keys.misses, keys.stored)))
    });
    let reply = &mut Reply { out: &mut turn.out.bytes, resp3 };
    match done {
        Err(Refused::Store(error)) => reply.error(&refusal(&error)),
        Err(Refused::TooLong) => reply.error("ERR the replies of a transaction have more than 64 MiB"),
        Ok(None) => reply.null_array(),
        Ok(Some(counted)) => {
            reply.array(queue.commands.len());
            count_up(turn, counted);
            return answer(client, turn, &queue, &replies, &ends);
        }
    }
    Step::Done
}

/// Whether watched keys are as they were.
fn are_as_watched(transaction: &mut FileTransaction<'_>, watched: &[Watched]) -> Result<bool, WriteError> {
    for watched in watched {
        let item = transaction.item(&watched.key)?;
        if item.and_then(|item| state_of(&item.metadata)) != watched.state {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the replies in order; what is not about keys is performed now, once.
fn answer(client: &mut Client, turn: &mut Turn<'_>, queue: &Queue, replies: &[u8], ends: &[usize]) -> Step {
    let mut start = 0;
    let mut last = Step::Done;
    for (queued, end) in queue.commands.iter().zip(ends) {
        turn.out.bytes.extend_from_slice(&replies[start..*end]);
        start = *end;
        if queued.command.perform.is_none() {
            loop {
                match run(client, turn, queued.command, queued.args()) {
                    Step::More => {}
                    Step::Close => {
                        last = Step::Close;
                        break;
                    }
                    Step::Done => break,
                }
            }
        }
    }
    last
}
