//! `watch`: one line for each event, to the connections that asked for it. No event loop waits for a watcher: lines for
//! which it has no room are left out, and their number is reported to it.

pub(crate) mod connections;
pub(crate) mod requests;

use crate::net::mailbox::Mailbox;
use crate::outbox::Outbox;
use crate::protocol::percent;
use std::io::Write;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most watchers at a time, as in memcached.
const WATCHERS_MAX: usize = 20;
/// Bytes of lines that wait for one watcher. As much again may be on its way to the socket.
pub const PENDING_MAX: usize = 256 << 10;

/// Reads of keys.
pub const FETCHERS: u16 = 1;
/// Storing commands.
pub const MUTATIONS: u16 = 1 << 1;
/// Evicted records.
pub const EVICTIONS: u16 = 1 << 2;
/// Connections opened and closed.
pub const CONNECTIONS: u16 = 1 << 3;
/// Deleted keys.
pub const DELETIONS: u16 = 1 << 4;
/// Kinds of memcached that this server does not have: accepted, without lines.
const SILENT: u16 = 1 << 5;

/// The kind of events that a word of the command names.
pub fn kind(word: &[u8]) -> Option<u16> {
    Some(match word {
        b"fetchers" => FETCHERS,
        b"mutations" => MUTATIONS,
        b"evictions" => EVICTIONS,
        b"connevents" => CONNECTIONS,
        b"deletions" => DELETIONS,
        b"rawcmds" | b"sysevents" | b"proxyreqs" | b"proxyevents" | b"proxyuser" => SILENT,
        _ => return None,
    })
}

/// Lines on their way to one connection.
#[derive(Debug)]
pub struct Watcher {
    kinds: u16,
    /// The event loop that serves the connection.
    worker: usize,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    skipped: u64,
}

impl Watcher {
    /// Moves pending lines into the outbox; `false` if there are none.
    pub fn take(&self, out: &mut Outbox) -> bool {
        let mut pending = lock(&self.pending);
        if pending.lines.is_empty() {
            return false;
        }
        out.bytes.append(&mut pending.lines);
        true
    }

    /// Adds a line; `None` if there is no room for it. Else whether it is the first pending line.
    fn add(&self, line: &[u8]) -> Option<bool> {
        let mut pending = lock(&self.pending);
        if pending.lines.len() + line.len() > PENDING_MAX {
            pending.skipped += 1;
            return None;
        }
        let first = pending.lines.is_empty();
        if pending.skipped > 0 {
            let skipped = std::mem::take(&mut pending.skipped);
            // Writing to a vector does not fail.
            let _ = writeln!(pending.lines, "skipped={skipped}");
        }
        pending.lines.extend_from_slice(line);
        Some(first)
    }
}

/// All watchers of a server.
#[derive(Debug, Default)]
pub struct Watchers {
    /// Kinds with a watcher.
    kinds: AtomicU16,
    /// Number of the last event.
    last: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    list: Mutex<List>,
    wakers: OnceLock<Vec<Arc<Mailbox>>>,
}

#[derive(Debug, Default)]
struct List {
    watchers: Vec<Weak<Watcher>>,
    line: Vec<u8>,
}

/// Figures of `stats`.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Watchers.
    pub watchers: u64,
    /// Events of kinds with a watcher.
    pub events: u64,
    /// Lines given to watchers.
    pub sent: u64,
    /// Lines that a watcher had no room for.
    pub skipped: u64,
}

impl Watchers {
    /// Whether events of this kind have a watcher.
    #[inline]
    pub fn wants(&self, kind: u16) -> bool {
        self.kinds.load(Ordering::Relaxed) & kind != 0
    }

    /// Sets how event loops are woken.
    pub fn set_wakers(&self, wakers: &[Arc<Mailbox>]) {
        // The first call counts; there is one.
        let _ = self.wakers.set(wakers.to_vec());
    }

    /// A new watcher on a connection of this event loop. `None`: there are too many. It ends when it is dropped.
    pub fn enter(&self, kinds: u16, worker: usize) -> Option<Arc<Watcher>> {
        let mut list = lock(&self.list);
        self.remove_closed(&mut list);
        if list.watchers.len() >= WATCHERS_MAX {
            return None;
        }
        let watcher = Arc::new(Watcher { kinds, worker, pending: Mutex::default() });
        list.watchers.push(Arc::downgrade(&watcher));
        self.remove_closed(&mut list);
        Some(watcher)
    }

    /// Writes the line of an event for all watchers of its kind. `from`: the calling event loop.
    pub fn send(&self, kind: u16, from: Option<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut list = lock(&self.list);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let List { watchers, line } = &mut *list;
        line.clear();
        let _ = write!(line, "ts={}.{} gid={number} type=", time.as_secs(), time.subsec_micros());
        write(line);
        line.push(b'\n');
        let mut gone = false;
        for watcher in watchers.iter() {
            let Some(watcher) = watcher.upgrade() else {
                gone = true;
                continue;
            };
            if watcher.kinds & kind == 0 {
                continue;
            }
            match watcher.add(line) {
                None => _ = self.skipped.fetch_add(1, Ordering::Relaxed),
                Some(first) => {
                    self.sent.fetch_add(1, Ordering::Relaxed);
                    // An event loop serves its own watchers after every round.
                    if first && from != Some(watcher.worker) {
                        self.wake(watcher.worker);
                    }
                }
            }
        }
        if gone {
            self.remove_closed(&mut list);
        }
    }

    /// The figures for `stats`.
    pub fn figures(&self) -> Figures {
        let mut list = lock(&self.list);
        self.remove_closed(&mut list);
        Figures {
            watchers: list.watchers.len() as u64,
            events: self.last.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }

    /// Removes closed watchers, and updates the kinds that have one.
    fn remove_closed(&self, list: &mut List) {
        let mut kinds = 0;
        list.watchers.retain(|watcher| match watcher.upgrade() {
            Some(watcher) => {
                kinds |= watcher.kinds;
                true
            }
            None => false,
        });
        self.kinds.store(kinds, Ordering::Relaxed);
    }

    /// Wakes an event loop.
    pub fn wake(&self, worker: usize) {
        if let Some(mailbox) = self.wakers.get().and_then(|wakers| wakers.get(worker)) {
            mailbox.wake();
        }
    }
}

/// Appends a key as lines of `watch` show it.
pub fn key(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b" key=");
    percent::write(key, out);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(watcher: &Watcher) -> String {
        let mut out = Outbox::default();
        watcher.take(&mut out);
        String::from_utf8(out.bytes).unwrap()
    }

    #[test]
    fn a_watcher_gets_its_kinds_until_it_is_gone() {
        let watchers = Watchers::default();
        assert!(!watchers.wants(FETCHERS | MUTATIONS));
        let watcher = watchers.enter(FETCHERS, 0).unwrap();
        assert!(watchers.wants(FETCHERS) && !watchers.wants(MUTATIONS));
        watchers.send(FETCHERS, Some(0), |line| line.extend_from_slice(b"x"));
        watchers.send(MUTATIONS, Some(0), |line| line.extend_from_slice(b"y"));
        let lines = text(&watcher);
        assert!(lines.starts_with("ts=") && lines.ends_with(" gid=1 type=x\n"), "{lines}");
        assert_eq!(text(&watcher), "");
        drop(watcher);
        watchers.send(FETCHERS, Some(0), |_| {});
        assert!(!watchers.wants(FETCHERS));
    }

    #[test]
    fn a_slow_watcher_is_bounded_and_told_what_it_missed() {
        let watchers = Watchers::default();
        let watcher = watchers.enter(MUTATIONS, 0).unwrap();
        let event = || watchers.send(MUTATIONS, Some(0), |line| line.extend_from_slice(&[b'x'; 1000]));
        (0..1000).for_each(|_| event());
        let lines = text(&watcher);
        assert!(lines.len() <= PENDING_MAX, "{}", lines.len());
        let taken = lines.lines().count();
        event();
        let next = text(&watcher);
        assert!(next.starts_with(&format!("skipped={}\nts=", 1000 - taken)), "{}", &next[..30]);
        let figures = watchers.figures();
        assert_eq!((figures.sent, figures.skipped), (taken as u64 + 1, 1000 - taken as u64));
    }

    #[test]
    fn there_are_at_most_twenty() {
        let watchers = Watchers::default();
        let mut all: Vec<_> = (0..WATCHERS_MAX).map(|_| watchers.enter(SILENT, 0).unwrap()).collect();
        assert!(watchers.enter(SILENT, 0).is_none());
        all.pop();
        assert!(watchers.enter(SILENT, 0).is_some());
    }
}
