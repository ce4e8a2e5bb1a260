//! What an event loop keeps of its ring.

use super::read_batch::AHEAD;
use hashmere_uring::{Buffer, Ring, Tag};

/// A ring, and the connections whose turn it is.
#[derive(Debug)]
pub struct Ringed {
    /// The ring.
    pub ring: Ring,
    /// With what was received for each, if it can be passed as it is.
    pub ahead: Vec<(usize, Option<Buffer>)>,
    /// Connections so far.
    generation: u32,
    /// The poll has events.
    pub is_poll_ready: bool,
}

impl Ringed {
    /// With a ring that is enabled by the thread of the event loop.
    pub fn new(ring: Ring) -> Ringed {
        Ringed { ring, ahead: Vec::with_capacity(AHEAD), generation: 0, is_poll_ready: false }
    }

    /// The name of the next connection.
    pub fn tag(&mut self, token: usize) -> Tag {
        self.generation = self.generation.wrapping_add(1);
        Tag::new(token as u32, self.generation)
    }

    /// Whether its turn comes.
    pub fn is_queued(&self, token: usize) -> bool {
        self.ahead.iter().any(|(other, _)| *other == token)
    }
}
