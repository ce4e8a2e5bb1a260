//! Channels and patterns, and the messages on their way to subscribers. No event loop waits for a subscriber: one for
//! which there is no room any more is closed.

use super::glob;
use super::lock::lock;
use super::reply::Reply;
use crate::outbox::Outbox;
use crate::watch::Watchers;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of messages that wait for one subscriber.
pub const PENDING_MAX: usize = 32 << 20;
/// Channels and patterns of one connection.
pub const NAMES_MAX: usize = 1 << 16;
/// The longest of them.
pub const NAME_MAX: usize = 64 << 10;

/// Messages on their way to one connection.
#[derive(Debug)]
pub struct Subscriber {
    id: u64,
    /// The event loop that serves the connection.
    worker: usize,
    resp3: AtomicBool,
    overrun: AtomicBool,
    pending: Mutex<Vec<u8>>,
}

impl Subscriber {
    /// Adds a message; whether the event loop is to be woken for it.
    fn add(&self, write: impl FnOnce(&mut Reply<'_>)) -> bool {
        if self.overrun.load(Ordering::Relaxed) {
            return false;
        }
        let mut pending = lock(&self.pending);
        let first = pending.is_empty();
        write(&mut Reply { out: &mut pending, resp3: self.resp3.load(Ordering::Relaxed) });
        if pending.len() > PENDING_MAX {
            *pending = Vec::new();
            self.overrun.store(true, Ordering::Relaxed);
            return true;
        }
        first
    }
}

/// Subscribers by what they listen to.
#[derive(Debug, Default)]
struct Names {
    channels: HashMap<Vec<u8>, BTreeMap<u64, Arc<Subscriber>>>,
    patterns: BTreeMap<Vec<u8>, BTreeMap<u64, Arc<Subscriber>>>,
}

/// All channels and patterns of a server.
#[derive(Debug, Default)]
pub struct Hub {
    names: Mutex<Names>,
    /// Names with a subscriber: usually none, and then nothing is looked up.
    count: AtomicUsize,
    subscribers: AtomicUsize,
}

impl Hub {
    /// Connections that subscribe.
    pub fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    /// Whether there is a subscriber.
    #[inline]
    pub fn is_listened_to(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Channels with subscribers, or those that match.
    pub fn channels(&self, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let names = lock(&self.names);
        let passes = |name: &&Vec<u8>| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        names.channels.keys().filter(passes).cloned().collect()
    }

    /// Subscribers of a channel.
    pub fn subscribers_of(&self, channel: &[u8]) -> usize {
        lock(&self.names).channels.get(channel).map_or(0, BTreeMap::len)
    }

    /// Different patterns.
    pub fn patterns(&self) -> usize {
        lock(&self.names).patterns.len()
    }

    /// Sends a message; returns to how many. `from`: the calling event loop, which serves its subscribers by itself.
    pub fn publish(&self, wakers: &Watchers, from: Option<usize>, channel: &[u8], message: &[u8]) -> usize {
        if !self.is_listened_to() {
            return 0;
        }
        let names = lock(&self.names);
        let mut count = 0;
        let mut send = |subscriber: &Subscriber, pattern: Option<&[u8]>| {
            count += 1;
            let woken = subscriber.add(|reply| {
                match pattern {
                    None => {
                        reply.push(3);
                        reply.bulk(b"message");
                    }
                    Some(pattern) => {
                        reply.push(4);
                        reply.bulk(b"pmessage");
                        reply.bulk(pattern);
                    }
                }
                reply.bulk(channel);
                reply.bulk(message);
            });
            if woken && from != Some(subscriber.worker) {
                wakers.wake(subscriber.worker);
            }
        };
        names.channels.get(channel).into_iter().flat_map(BTreeMap::values).for_each(|one| send(one, None));
        for (pattern, subscribers) in &names.patterns {
            if glob::matches(pattern, channel) {
                subscribers.values().for_each(|one| send(one, Some(pattern)));
            }
        }
        count
    }
}

/// What one connection listens to. It ends when it is dropped.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    subscriber: Arc<Subscriber>,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
}

impl Subscription {
    /// One that listens to nothing yet.
    pub fn new(hub: Arc<Hub>, id: u64, worker: usize, resp3: bool) -> Subscription {
        let subscriber = Subscriber {
            id,
            worker,
            resp3: AtomicBool::new(resp3),
            overrun: AtomicBool::new(false),
            pending: Mutex::default(),
        };
        hub.subscribers.fetch_add(1, Ordering::Relaxed);
        let (channels, patterns) = (BTreeSet::new(), BTreeSet::new());
        Subscription { hub, subscriber: Arc::new(subscriber), channels, patterns }
    }

    /// Channels and patterns.
    pub fn counts(&self) -> (usize, usize) {
        (self.channels.len(), self.patterns.len())
    }

    /// Both together.
    pub fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Listens to a channel or a pattern; `false`: there are too many.
    pub fn add(&mut self, name: &[u8], is_pattern: bool) -> bool {
        if self.count() >= NAMES_MAX || name.len() > NAME_MAX {
            return false;
        }
        let own = if is_pattern { &mut self.patterns } else { &mut self.channels };
        if own.insert(name.to_vec()) {
            let mut names = lock(&self.hub.names);
            let subscribers = match is_pattern {
                true => names.patterns.entry(name.to_vec()).or_default(),
                false => names.channels.entry(name.to_vec()).or_default(),
            };
            subscribers.insert(self.subscriber.id, self.subscriber.clone());
            self.hub.count.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Ends listening to one.
    pub fn remove(&mut self, name: &[u8], is_pattern: bool) {
        let own = if is_pattern { &mut self.patterns } else { &mut self.channels };
        if !own.remove(name) {
            return;
        }
        let Names { channels, patterns } = &mut *lock(&self.hub.names);
        let (id, left) = (self.subscriber.id, |subscribers: &mut BTreeMap<u64, Arc<Subscriber>>, id| {
            subscribers.remove(&id);
            subscribers.is_empty()
        });
        if is_pattern {
            if patterns.get_mut(name).is_some_and(|subscribers| left(subscribers, id)) {
                patterns.remove(name);
            }
        } else if channels.get_mut(name).is_some_and(|subscribers| left(subscribers, id)) {
            channels.remove(name);
        }
        self.hub.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Its channels, or its patterns.
    pub fn names(&self, are_patterns: bool) -> Vec<Vec<u8>> {
        if are_patterns { &self.patterns } else { &self.channels }.iter().cloned().collect()
    }

    /// Messages are written in this version from now on.
    pub fn speak(&self, resp3: bool) {
        self.subscriber.resp3.store(resp3, Ordering::Relaxed);
    }

    /// Moves messages into the outbox; `false` if there are none.
    pub fn take(&self, out: &mut Outbox) -> bool {
        let mut pending = lock(&self.subscriber.pending);
        if pending.is_empty() {
            return false;
        }
        out.bytes.append(&mut pending);
        true
    }

    /// Whether there was no room for a message.
    pub fn is_overrun(&self) -> bool {
        self.subscriber.overrun.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for is_pattern in [false, true] {
            self.names(is_pattern).iter().for_each(|name| self.remove(name, is_pattern));
        }
        self.hub.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
