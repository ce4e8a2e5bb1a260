//! Keyspace events: a thread that follows the feed of the store and publishes what happened to its keys.

use crate::server::Server;
use hashmere::Store;
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart, Operation};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// How soon the thread notices that the server stops.
const PATIENCE: Duration = Duration::from_millis(200);
/// Pause after the feed could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// What is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// On `__keyspace@0__:key`.
    keyspace: bool,
    /// On `__keyevent@0__:event`.
    keyevent: bool,
    generic: bool,
    string: bool,
    expired: bool,
    evicted: bool,
}

/// Reads the letters of `notify-keyspace-events`.
///
/// # Errors
/// A letter that Redis does not have.
pub fn parse(letters: &str) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for letter in letters.chars() {
        match letter {
            'K' => wanted.keyspace = true,
            'E' => wanted.keyevent = true,
            'g' => wanted.generic = true,
            '$' => wanted.string = true,
            'x' => wanted.expired = true,
            'e' => wanted.evicted = true,
            'A' => (wanted.generic, wanted.string, wanted.expired, wanted.evicted) = (true, true, true, true),
            // Kinds of values and of events that there are not: accepted, without events.
            'l' | 's' | 'h' | 'z' | 't' | 'd' | 'm' | 'n' => {}
            other => return Err(format!("`{other}` is no letter of keyspace events; they are KEg$xeA and lshztdmn")),
        }
    }
    Ok(wanted)
}

impl Wanted {
    /// The event of an operation, if it is wanted.
    fn event(self, operation: Operation, expires: bool) -> Option<&'static str> {
        match operation {
            Operation::Set if self.string => Some("set"),
            Operation::Delete if self.generic => Some("del"),
            Operation::Touch if self.generic => Some(if expires { "expire" } else { "persist" }),
            Operation::Expire if self.expired => Some("expired"),
            Operation::Evict if self.evicted => Some("evicted"),
            _ => None,
        }
    }

    fn publish(self, server: &Server, event: &str, key: Option<&[u8]>) {
        let hub = &server.resp.hub;
        if let (true, Some(key)) = (self.keyspace, key) {
            hub.publish(&server.watchers, None, &[b"__keyspace@0__:", key].concat(), event.as_bytes());
        }
        if self.keyevent {
            hub.publish(&server.watchers, None, format!("__keyevent@0__:{event}").as_bytes(), key.unwrap_or_default());
        }
    }
}

/// Begins to follow the feed of a store; `None` if nothing is wanted.
///
/// # Errors
/// The store keeps no feed; a letter that there is not.
pub fn open(store: &Store, letters: &str) -> Result<Option<(Feed, Wanted)>, String> {
    let wanted = parse(letters)?;
    if !(wanted.keyspace || wanted.keyevent) {
        return Ok(None);
    }
    let feed = Feed::open(store, FeedStart::Now, FeedOptions::new());
    let feed = feed.map_err(|error| format!("keyspace events need a store with a feed (--feed): {error}"))?;
    Ok(Some((feed, wanted)))
}

/// Publishes until the server stops.
pub fn follow(server: &Arc<Server>, feed: &mut Feed, wanted: Wanted) {
    while !server.stopping.load(Ordering::Relaxed) {
        match feed.next_within(PATIENCE) {
            Ok(None) => {}
            Ok(Some(event)) if server.resp.hub.is_listened_to() => tell(server, wanted, &event),
            Ok(Some(_)) => {}
            Err(error) => {
                server.log(1, || format!("keyspace events: {error}"));
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn tell(server: &Server, wanted: Wanted, event: &Event) {
    match event {
        Event::Change(change) => {
            if let Some(name) = wanted.event(change.operation, change.expires_at_ms.is_some()) {
                wanted.publish(server, name, Some(&change.key));
            }
        }
        Event::Clear { .. } if wanted.generic => wanted.publish(server, "flushdb", None),
        // What was missed while the thread did not keep up is not published later, like in Redis: the keys of a first
        // copy are no events.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters() {
        let all = Wanted { keyspace: true, keyevent: true, generic: true, string: true, expired: true, evicted: true };
        assert_eq!(
            (parse("KEA"), parse(""), parse("lshztdmn")),
            (Ok(all), Ok(Wanted::default()), Ok(Wanted::default()))
        );
        assert!(parse("KEq").is_err());
        let some = parse("Kx").unwrap();
        assert_eq!((some.event(Operation::Set, false), some.event(Operation::Expire, false)), (None, Some("expired")));
        assert_eq!(all.event(Operation::Touch, false), Some("persist"));
    }
}
