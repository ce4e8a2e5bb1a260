//! What a stream is read from: a feed, or the feed of one of two sites.

use super::command::Wanted;
use hashmere::Store;
use hashmere_feed::{Feed, Place, Token};
use hashmere_replica::{Stamp, StampedFeed};
use std::io::Write;
use std::time::Duration;

/// The feed.
#[derive(Debug)]
pub enum Source {
    Plain(Box<Feed>),
    Stamped(Box<StampedFeed>),
}

impl Source {
    /// As the client wants it; the error is for the client.
    pub fn open(store: &Store, wanted: &Wanted) -> Result<Source, String> {
        if wanted.stamps {
            let feed = StampedFeed::open(store, wanted.start).map_err(|error| error.to_string())?;
            return Ok(Source::Stamped(Box::new(feed)));
        }
        let feed = Feed::open(store, wanted.start, wanted.options.clone()).map_err(|error| error.to_string())?;
        Ok(Source::Plain(Box::new(feed)))
    }

    /// Writes the next event, without the end of its line; `false`: there is none now.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> Result<bool, String> {
        let event = match self {
            Source::Plain(feed) => feed.next_within(Duration::ZERO).map_err(|error| error.to_string())?,
            Source::Stamped(feed) => match feed.next_within(Duration::ZERO).map_err(|error| error.to_string())? {
                Some(stamped) => {
                    if stamped.stamp != Stamp::default() {
                        // Memory takes all of it.
                        let _ = write!(out, "STAMP {} ", stamped.stamp);
                    }
                    Some(stamped.event)
                }
                None => None,
            },
        };
        let Some(event) = event else { return Ok(false) };
        event.write_json(out);
        Ok(true)
    }

    /// Behind what was written, and where the feed ends.
    pub fn place(&self) -> (Token, u64) {
        let (token, lag) = match self {
            Source::Plain(feed) => (feed.token(), feed.lag()),
            Source::Stamped(feed) => (feed.token(), feed.lag()),
        };
        (token, token.position() + lag)
    }

    /// Where the stream is woken by a change; `None`: by none, for it waits for the replicator here.
    pub fn wakes_at(&self) -> Option<Place> {
        match self {
            Source::Plain(feed) => Some(feed.place()),
            Source::Stamped(feed) => (!feed.is_held()).then(|| feed.place()),
        }
    }
}
