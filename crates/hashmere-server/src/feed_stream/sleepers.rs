//! All streams of a server, and the one thread that waits for changes on behalf of those that are at the end.

use crate::net::mailbox::Mailbox;
use hashmere::Store;
use hashmere_feed::Place;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Most streams at a time.
const STREAMS_MAX: usize = 20;
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
    open: usize,
    /// The thread runs.
    is_watched: bool,
    /// Streams at the end: their event loops, and where they are.
    sleeping: BTreeMap<u64, (usize, Place)>,
}

/// Figures of `stats`.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Open streams.
    pub streams: u64,
    /// Events that were given to streams.
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
        Figures { streams: self.lock().open as u64, events: self.events.load(Ordering::Relaxed) }
    }

    /// The number of a new stream; `None`: there are too many, or no thread can be made.
    pub fn enter(self: &Arc<Self>) -> Option<u64> {
        let mut state = self.lock();
        if state.open >= STREAMS_MAX {
            return None;
        }
        if !state.is_watched {
            let streams = self.clone();
            let thread = std::thread::Builder::new().name("feed".into());
            thread.spawn(move || streams.watch()).ok()?;
            state.is_watched = true;
        }
        state.open += 1;
        state.last += 1;
        Some(state.last)
    }

    /// A stream is gone.
    pub fn leave(&self, id: u64) {
        let mut state = self.lock();
        state.open -= 1;
        state.sleeping.remove(&id);
        self.changed.notify_all();
    }

    /// A stream is at this place and wants its event loop to be woken when there is something behind it.
    pub fn sleep(&self, id: u64, worker: usize, place: Place) {
        let mut state = self.lock();
        if state.sleeping.insert(id, (worker, place)) != Some((worker, place)) {
            self.changed.notify_all();
        }
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
            if state.open == 0 {
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
