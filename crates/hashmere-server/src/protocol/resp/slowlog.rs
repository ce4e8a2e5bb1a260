//! `SLOWLOG`: commands that took 10 ms or more, the newest 128. `LATENCY`: there is no monitor.

use super::client::Client;
use super::connection::{refuse, Step};
use super::number::integer;
use super::parse::Args;
use super::shared::lock;
use crate::turn::Turn;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// What is slow.
pub const SLOWER_THAN: Duration = Duration::from_millis(10);
/// Commands that are kept.
pub const ENTRIES_MAX: usize = 128;
/// Arguments that are kept of each, and bytes of each of them.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_MAX: usize = 128;
/// Entries that `SLOWLOG GET` returns.
const SHOWN: i64 = 10;

#[derive(Clone, Debug)]
struct Entry {
    number: i64,
    second: u64,
    micros: u64,
    arguments: Vec<Vec<u8>>,
    address: String,
    name: Vec<u8>,
}

/// The log.
#[derive(Debug, Default)]
pub struct Slowlog {
    entries: Mutex<(i64, VecDeque<Entry>)>,
}

fn shortened(args: Args<'_>) -> Vec<Vec<u8>> {
    let most = if args.count() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { ARGUMENTS_MAX };
    let mut arguments: Vec<Vec<u8>> = args
        .from(0)
        .take(most)
        .map(|arg| match arg.len() {
            0..=ARGUMENT_MAX => arg.to_vec(),
            length => {
                let more = format!("... ({} more bytes)", length - ARGUMENT_MAX);
                [&arg[..ARGUMENT_MAX], more.as_bytes()].concat()
            }
        })
        .collect();
    if args.count() > most {
        arguments.push(format!("... ({} more arguments)", args.count() - most).into());
    }
    arguments
}

impl Slowlog {
    /// Adds a command.
    pub fn add(&self, turn: &Turn<'_>, client: &Client, args: Args<'_>, took: Duration) {
        // Secrets are not shown.
        if args.is(0, "auth") || args.is(0, "hello") {
            return;
        }
        let (address, name) = (client.address(turn), client.name());
        let mut entries = lock(&self.entries);
        let number = entries.0;
        entries.0 += 1;
        let micros = took.as_micros() as u64;
        entries.1.push_front(Entry { number, second: turn.now, micros, arguments: shortened(args), address, name });
        entries.1.truncate(ENTRIES_MAX);
    }
}

/// `SLOWLOG GET [count]`: below zero all.
pub fn get(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if args.count() > 3 {
        return refuse(client, turn, "ERR wrong number of arguments for 'slowlog|get' command");
    }
    let count = if args.count() > 2 { integer(args.at(2)) } else { Some(SHOWN) };
    let Some(count @ -1..) = count else {
        return refuse(client, turn, "ERR count should be greater than or equal to -1");
    };
    let entries = lock(&turn.server.resp.slowlog.entries).1.clone();
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
    let count = lock(&turn.server.resp.slowlog.entries).1.len();
    client.reply_to(turn).integer(count as i64);
    Step::Done
}

/// `SLOWLOG RESET`.
pub fn reset(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    lock(&turn.server.resp.slowlog.entries).1.clear();
    client.reply_to(turn).ok();
    Step::Done
}

/// `SLOWLOG HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(&mut client.reply_to(turn), "slowlog");
    Step::Done
}

/// `LATENCY LATEST`, `LATENCY HISTORY event`: nothing is recorded.
pub fn latency_none(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).array(0);
    Step::Done
}

/// `LATENCY RESET`: so many events were forgotten.
pub fn latency_reset(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).integer(0);
    Step::Done
}

/// `LATENCY HELP`.
pub fn latency_help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(&mut client.reply_to(turn), "latency");
    Step::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_shortened() {
        let bytes = vec![b'x'; 200];
        let ranges: Vec<_> = (0..40).map(|i| 0..if i == 0 { 200 } else { 1 }).collect();
        let shown = shortened(Args::new(&bytes, &ranges));
        assert_eq!(shown.len(), 32);
        assert!(shown[0].ends_with(b"xx... (72 more bytes)"));
        assert_eq!(shown[31], b"... (9 more arguments)");
        assert_eq!(shortened(Args::new(&bytes, &ranges[..32])).len(), 32);
    }
}
