//! All streams of a server, and the one thread that waits for changes on behalf of those that are at the end.

use crate::net::mailbox::Mailbox;
use hashmere::Store;
use hashmere_feed::Place;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Most streams to clients of `feed` at a time.
const FEEDS_MAX: usize = 20;
/// Most streams of changes to clients of HTTP at a time.
const STREAMS_MAX: usize = 64;

/// The front end that a stream belongs to. Each has a number of streams of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Clients of the command `feed`.
    Feed,
    /// Clients of HTTP.
    Http,
}

impl Kind {
    /// Most streams at a time.
    pub const fn most(self) -> usize {
        match self {
            Kind::Feed => FEEDS_MAX,
            Kind::Http => STREAMS_MAX,
        }
    }
}

/// One of the places for streams, given back when it is dropped.
#[derive(Debug)]
pub struct Seat {
    streams: Arc<Streams>,
    kind: Kind,
    /// Its number among the streams.
    id: u64,
    /// The event loop that serves the stream.
    worker: usize,
}

impl Seat {
    /// The stream has read the feed up to this place: its event loop is woken when there is something behind it.
    pub fn sleep(&self, place: Place) {
        let mut state = self.streams.lock();
        if state.sleeping.insert(self.id, (self.worker, place)) != Some((self.worker, place)) {
            self.streams.changed.notify_all();
        }
    }

    /// All streams.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.streams.lock();
        state.open[self.kind as usize] -= 1;
        state.sleeping.remove(&self.id);
        self.streams.changed.notify_all();
    }
}

/// How long the thread waits for a change before it looks at the streams again.
const WAIT: Duration = Duration::from_millis(200);

/// The streams.
#[derive(Debug)]
pub struct Streams {
    store: Store,
    events: AtomicU64,
    is_stopping: AtomicBool,
    state: Mutex<State>,
    /// A stream came to the end, or is gone.
    changed: Condvar,
    wakers: OnceLock<Vec<Arc<Mailbox>>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// Of each kind.
    open: [usize; 2],
    /// The thread runs.
    is_watched: bool,
    /// Streams at the end: their event loops, and where they are.
    sleeping: BTreeMap<u64, (usize, Place)>,
}

/// Figures of `stats`.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Open streams of clients of `feed`.
    pub streams: u64,
    /// And of clients of HTTP.
    pub http_streams: u64,
    /// Events that were given to clients of `feed`.
    pub events: u64,
}

impl Streams {
    /// The streams of a store's changes.
    pub fn new(store: Store) -> Streams {
        Streams {
            store,
            events: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            wakers: OnceLock::new(),
        }
    }

    /// Sets how event loops are woken.
    pub fn set_wakers(&self, wakers: &[Arc<Mailbox>]) {
        // The first call counts; there is one.
        let _ = self.wakers.set(wakers.to_vec());
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Streams write nothing more from now on.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether they write nothing more.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// An event was given to a stream.
    pub fn count_event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// The figures for `stats`.
    pub fn figures(&self) -> Figures {
        let [streams, http_streams] = self.lock().open.map(|open| open as u64);
        Figures { streams, http_streams, events: self.events.load(Ordering::Relaxed) }
    }

    /// A place for a stream that this event loop serves; `None`: there are too many, or no thread can be made.
    pub fn enter(self: &Arc<Self>, kind: Kind, worker: usize) -> Option<Seat> {
        let mut state = self.lock();
        if state.open[kind as usize] >= kind.most() {
            return None;
        }
        if !state.is_watched {
            let streams = self.clone();
            let thread = std::thread::Builder::new().name("feed".into());
            thread.spawn(move || streams.watch()).ok()?;
            state.is_watched = true;
        }
        state.open[kind as usize] += 1;
        state.last += 1;
        let id = state.last;
        drop(state);
        Some(Seat { streams: self.clone(), kind, id, worker })
    }

    /// Wakes event loops until there is no stream.
    fn watch(&self) {
        while let Some(place) = self.next_place() {
            // It returns at once if something came since the stream looked: so nothing is missed. A stream that went to
            // sleep later is not before this place.
            place.wait(&self.store, WAIT);
            let mut woken = Vec::new();
            self.lock().sleeping.retain(|_, (worker, place)| {
                let stays = !place.has_news(&self.store);
                if !stays && !woken.contains(worker) {
                    woken.push(*worker);
                }
                stays
            });
            for mailbox in woken.iter().filter_map(|worker| self.wakers.get()?.get(*worker)) {
                mailbox.wake();
            }
        }
    }

    /// The place of one that sleeps; waits for one. `None`: there is no stream any more.
    fn next_place(&self) -> Option<Place> {
        let mut state = self.lock();
        loop {
            if state.open == [0; 2] {
                state.is_watched = false;
                return None;
            }
            if let Some((_, place)) = state.sleeping.values().next() {
                return Some(*place);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
