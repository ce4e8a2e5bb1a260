//! The event loop over a ring: what it received is passed to the turns of connections, their replies are handed over
//! together. Listeners, TLS and the mailbox stay with the poll, whose descriptor the ring watches.

use super::read_batch::AHEAD;
use super::ringed::Ringed;
use super::worker::Worker;
use crate::protocol::peek_key::peek_key;
use hashmere_engine::StoreHandle;
use hashmere_uring::{Completion, Input, Ring, Tag};
use mio::Events;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Rounds in which a stopping server takes what arrived before the stop, while clients go on to send.
const LAST_ROUNDS: usize = 100;

impl Worker {
    /// Takes a ring, if this thread can use it.
    pub(super) fn use_ring(&mut self, mut ring: Ring) {
        match ring.enable().and_then(|()| ring.watch(self.poll.registry().as_fd())) {
            Ok(()) => self.ringed = Some(Ringed::new(ring)),
            Err(error) => self.server.log(0, || format!("an event loop goes on with epoll: {error}")),
        }
    }

    /// Serves what the ring has, waiting for it at most this long; then takes the events of the poll, if there are any.
    pub(super) fn wait_ring(&mut self, events: &mut Events, limit: Duration) -> io::Result<()> {
        self.serve_ring(limit)?;
        let Some(ringed) = self.ringed.as_mut().filter(|ringed| ringed.is_poll_ready) else { return Ok(()) };
        ringed.is_poll_ready = false;
        // It takes effect with the next wait, and tells of events that are there then, too.
        ringed.ring.watch(self.poll.registry().as_fd())?;
        self.poll.poll(events, Some(Duration::ZERO))
    }

    /// Serves what the ring has; `true` if something had come.
    fn serve_ring(&mut self, limit: Duration) -> io::Result<bool> {
        let mut any = false;
        if let Some(ringed) = &mut self.ringed {
            ringed.ring.wait(limit)?;
        }
        while let Some(completion) = self.ringed.as_mut().and_then(|ringed| ringed.ring.next_completion()) {
            match completion {
                Completion::Ready => {
                    if let Some(ringed) = &mut self.ringed {
                        ringed.is_poll_ready = true;
                    }
                }
                Completion::Received { tag, input, more } => {
                    any |= matches!(input, Input::Bytes(_));
                    self.received(tag, input, more)?;
                }
                Completion::Sent { tag, result } => self.sent(tag, &result)?,
            }
            if self.ringed.as_ref().is_some_and(|ringed| ringed.ahead.len() >= AHEAD) {
                self.serve_ahead();
            }
        }
        self.serve_ahead();
        Ok(any)
    }

    /// Serves what arrived before the server began to stop.
    pub(super) fn serve_last(&mut self) {
        for _ in 0..LAST_ROUNDS {
            // A ring that fails says so in the next round of the loop.
            if self.ringed.is_none() || !self.serve_ring(Duration::ZERO).unwrap_or(false) {
                return;
            }
        }
    }

    fn received(&mut self, tag: Tag, input: Input, more: bool) -> io::Result<()> {
        let Some(ringed) = &mut self.ringed else { return Ok(()) };
        let token = tag.place as usize;
        let found = self.connections.get_mut(token).and_then(Option::as_mut);
        let Some(connection) = found.filter(|connection| connection.stream.is_ring(tag)) else {
            // It was closed in the meantime.
            if let Input::Bytes(buffer) = input {
                ringed.ring.give_back(buffer);
            }
            return Ok(());
        };
        let is_queued = ringed.is_queued(token);
        let takes_ahead = !is_queued && connection.takes_ahead();
        let Some(stream) = connection.stream.ring(tag) else { return Ok(()) };
        stream.note_receiving(more);
        match input {
            Input::Bytes(buffer) if takes_ahead => {
                connection.note_read(buffer.len(), usize::MAX, &self.server.counters[self.index]);
                ringed.ahead.push((token, Some(buffer)));
                return Ok(());
            }
            Input::Bytes(buffer) => {
                stream.keep(&buffer);
                ringed.ring.give_back(buffer);
            }
            Input::End => {
                stream.note_end(None);
                connection.note_end_ahead();
            }
            Input::Failed(error) => {
                stream.note_end(Some(&error));
                connection.note_end_ahead();
            }
            Input::Nothing => return connection.stream.hand_over(&mut ringed.ring),
        }
        connection.note_readable();
        if is_queued {
            return Ok(());
        }
        if connection.stream.is_sending() {
            return connection.stream.hand_over(&mut ringed.ring);
        }
        ringed.ahead.push((token, None));
        Ok(())
    }

    fn sent(&mut self, tag: Tag, result: &io::Result<()>) -> io::Result<()> {
        let Some(ringed) = &mut self.ringed else { return Ok(()) };
        let token = tag.place as usize;
        let Some(connection) = self.connections.get_mut(token).and_then(Option::as_mut) else { return Ok(()) };
        let Some(stream) = connection.stream.ring(tag) else { return Ok(()) };
        stream.note_sent();
        if result.is_err() {
            connection.note_broken();
        }
        if !connection.wants_turn() {
            return connection.stream.hand_over(&mut ringed.ring);
        }
        if !ringed.is_queued(token) {
            ringed.ahead.push((token, None));
        }
        Ok(())
    }

    /// Gives the connections their turns, after what their first requests need was prefetched.
    fn serve_ahead(&mut self) {
        let Some(ringed) = &mut self.ringed else { return };
        let mut ahead = std::mem::take(&mut ringed.ahead);
        if ahead.len() > 1 {
            let mut keys = [&b""[..]; AHEAD];
            let found = ahead.iter().filter_map(|(_, buffer)| peek_key(buffer.as_deref()?));
            let count = keys.iter_mut().zip(found).map(|(place, key)| *place = key).count();
            self.server.store.shared().prefetch(&keys[..count]);
        }
        for (token, buffer) in ahead.drain(..) {
            self.turn(token, buffer.as_deref().unwrap_or_default());
            if let (Some(buffer), Some(ringed)) = (buffer, &mut self.ringed) {
                ringed.ring.give_back(buffer);
            }
        }
        if let Some(ringed) = &mut self.ringed {
            ringed.ahead = ahead;
        }
    }
}
