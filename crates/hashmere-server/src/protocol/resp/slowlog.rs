//! `SLOWLOG`: commands that took 10 ms or more, the newest 128. `LATENCY`: there is no monitor.

use super::number::integer;
use super::parse::Args;
use super::state::{refuse, Client, Step};
use crate::turn::Turn;

/// Entries that `SLOWLOG GET` returns.
const SHOWN: i64 = 10;

/// `SLOWLOG GET [count]`: below zero all.
pub fn get(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if args.count() > 3 {
        return refuse(client, turn, "ERR wrong number of arguments for 'slowlog|get' command");
    }
    let count = if args.count() > 2 { integer(args.at(2)) } else { Some(SHOWN) };
    let Some(count @ -1..) = count else {
        return refuse(client, turn, "ERR count should be greater than or equal to -1");
    };
    let entries = turn.server.resp.slowlog.entries();
    let count = usize::try_from(count).map_or(entries.len(), |count| count.min(entries.len()));
    let reply = &mut client.reply_to(turn);
    reply.array(count);
    for entry in entries.iter().take(count) {
        reply.array(6);
        reply.integer(entry.number);
        reply.integer(entry.second as i64);
        reply.integer(entry.micros as i64);
        reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.name);
    }
    Step::Done
}

/// `SLOWLOG LEN`.
pub fn len(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let count = turn.server.resp.slowlog.entries().len();
    client.reply_to(turn).integer(count as i64);
    Step::Done
}

/// `SLOWLOG RESET`.
pub fn reset(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    turn.server.resp.slowlog.clear();
    client.reply_to(turn).ok();
    Step::Done
}

/// `SLOWLOG HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(client, turn, "slowlog");
    Step::Done
}

/// `LATENCY LATEST`, `LATENCY HISTORY event`: nothing is recorded.
pub fn latency_none(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).array(0);
    Step::Done
}

/// `LATENCY RESET`: the events that were forgotten, of which there are none.
pub fn latency_reset(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).integer(0);
    Step::Done
}

/// `LATENCY HELP`.
pub fn latency_help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(client, turn, "latency");
    Step::Done
}
