//! The log of commands that took 10 ms or more: the newest 128.

use super::lock::lock;
use super::parse::Args;
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
/// A command.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub number: i64,
    /// When it ended, in seconds since 1970.
    pub second: u64,
    /// How long it took.
    pub micros: u64,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Where the client came from.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
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
    pub fn add(&self, second: u64, address: String, name: Vec<u8>, args: Args<'_>, took: Duration) {
        // Secrets are not shown.
        if args.is(0, "auth") || args.is(0, "hello") {
            return;
        }
        let mut entries = lock(&self.entries);
        let number = entries.0;
        entries.0 += 1;
        let micros = took.as_micros() as u64;
        entries.1.push_front(Entry { number, second, micros, arguments: shortened(args), address, name });
        entries.1.truncate(ENTRIES_MAX);
    }

    /// The newest first.
    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).1.iter().cloned().collect()
    }

    /// Forgets all.
    pub fn clear(&self) {
        lock(&self.entries).1.clear();
    }
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
