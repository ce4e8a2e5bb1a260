//! An event loop.

use super::connection::{Connection, Fate};
use super::listener::Listener;
use super::mailbox::{self, Arrival, Mailbox};
use super::read_batch::Batch;
use super::ring_stream::RingStream;
use super::ringed::Ringed;
use super::stream::Stream;
use crate::outbox::Outbox;
use crate::server::{now_ms, Server};
use crate::session::Session;
use crate::turn::Turn;
use crate::watch::connections;
use hashmere_uring::Ring;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Input that is read at once.
const BUFFER: usize = 64 << 10;
/// Tokens from here on are listeners.
const LISTENERS: usize = usize::MAX / 2;
/// Time between two checks for periodic work.
const TICK: Duration = Duration::from_secs(1);
/// The same, while a flush or a stop is due.
const SHORT_TICK: Duration = Duration::from_millis(50);

/// One event loop with its connections.
#[derive(Debug)]
pub struct Worker {
    pub(super) server: Arc<Server>,
    pub(super) index: usize,
    pub(super) poll: Poll,
    /// It moves the bytes of plain sockets.
    pub(super) ringed: Option<Ringed>,
    mailboxes: Vec<Arc<Mailbox>>,
    listeners: Vec<Listener>,
    pub(super) connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that have more to do.
    queue: Vec<usize>,
    /// Connections that receive what they did not just ask for, such as the lines of `watch`.
    subscribed: Vec<usize>,
    /// The store records evictions for this event loop.
    evictions: bool,
    /// The event loop that gets the next connection.
    next: usize,
    buffer: Vec<u8>,
    out: Outbox,
    now: u64,
    ticked: Instant,
    /// When all connections are closed, if the server is stopping.
    deadline: Option<Instant>,
}

impl Worker {
    /// An event loop; the one with listeners accepts for all.
    pub fn new(
        server: Arc<Server>,
        index: usize,
        poll: Poll,
        mailboxes: Vec<Arc<Mailbox>>,
        mut listeners: Vec<Listener>,
    ) -> io::Result<Worker> {
        for (i, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener.source(), Token(LISTENERS + i), Interest::READABLE)?;
        }
        Ok(Worker {
            server,
            index,
            poll,
            ringed: None,
            mailboxes,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            queue: Vec::new(),
            subscribed: Vec::new(),
            evictions: false,
            next: 0,
            buffer: vec![0; BUFFER],
            out: Outbox::default(),
            now: now_ms() / 1000,
            ticked: Instant::now(),
            deadline: None,
        })
    }

    /// Serves until the server stops; by a ring, if there is one.
    pub fn run(&mut self, ring: Option<Ring>) {
        if let Some(ring) = ring {
            self.use_ring(ring);
        }
        let mut events = Events::with_capacity(1024);
        let mut batch = Batch::new();
        loop {
            if let Err(error) = self.wait(&mut events) {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.server.log(0, || format!("an event loop ends: {error}"));
                    return;
                }
            }
            for event in &events {
                match event.token() {
                    mailbox::TOKEN => self.admit_arrivals(),
                    Token(token) if token >= LISTENERS => self.accept(token - LISTENERS),
                    Token(token) => {
                        let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
                        if event.is_readable() || event.is_read_closed() || event.is_error() {
                            connection.note_readable();
                        }
                        if event.is_read_closed() {
                            connection.note_end_ahead();
                        }
                        if batch.push(token) {
                            self.serve(&mut batch);
                        }
                    }
                }
            }
            self.serve(&mut batch);
            self.serve_queue();
            self.serve_subscribed();
            if self.ticked.elapsed() >= self.interval() {
                self.tick();
            }
            if self.server.stopping.load(Ordering::Relaxed) && self.is_drained() {
                return;
            }
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let limit = self.timeout();
        if self.ringed.is_none() {
            return self.poll.poll(events, Some(limit));
        }
        events.clear();
        self.wait_ring(events, limit)
    }

    /// How long to wait for events.
    fn timeout(&self) -> Duration {
        if self.queue.is_empty() {
            self.interval()
        } else {
            Duration::ZERO
        }
    }

    fn interval(&self) -> Duration {
        if self.deadline.is_some() || self.server.flush_at.load(Ordering::Relaxed) != 0 {
            SHORT_TICK
        } else {
            TICK
        }
    }

    /// Gives each connection of the batch its turn.
    fn serve(&mut self, batch: &mut Batch) {
        batch.read(&mut self.connections, &self.server.store, &self.server.counters[self.index]);
        for (token, input) in batch.drain() {
            self.turn(token, input);
        }
    }

    /// Gives every connection that has more to do one turn.
    fn serve_queue(&mut self) {
        let queue = std::mem::take(&mut self.queue);
        for token in queue {
            if let Some(Some(connection)) = self.connections.get_mut(token) {
                connection.queued = false;
                self.turn(token, &[]);
            }
        }
    }

    /// Sends subscribed connections what there is for them.
    fn serve_subscribed(&mut self) {
        connections::evictions(&self.server, self.index, &mut self.evictions);
        if self.subscribed.is_empty() {
            return;
        }
        let mut subscribed = std::mem::take(&mut self.subscribed);
        subscribed.iter().for_each(|token| self.turn(*token, &[]));
        // The token of a closed connection may belong to another by now.
        subscribed.retain(|token| matches!(self.connections.get(*token), Some(Some(c)) if c.is_subscribed()));
        self.subscribed.append(&mut subscribed);
        self.subscribed.sort_unstable();
        self.subscribed.dedup();
    }

    /// Gives a connection its turn; `input` was read ahead.
    pub(super) fn turn(&mut self, token: usize, input: &[u8]) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        if connection.queued {
            return;
        }
        let mut turn = Turn {
            server: &self.server,
            counters: &self.server.counters[self.index],
            out: &mut self.out,
            now: self.now,
            worker: self.index,
            connection: connection.peer.id,
        };
        let mut fate = connection.turn(&mut turn, &mut self.buffer, input);
        if fate != Fate::Close && connection.update_interest(self.poll.registry(), Token(token)).is_err() {
            fate = Fate::Close;
        }
        if let (true, Some(ringed)) = (fate != Fate::Close, &mut self.ringed) {
            if connection.stream.hand_over(&mut ringed.ring).is_err() {
                fate = Fate::Close;
            }
        }
        if connection.is_subscribed() && !self.subscribed.contains(&token) {
            self.subscribed.push(token);
        }
        match fate {
            Fate::Wait => {}
            Fate::Again => {
                connection.queued = true;
                self.queue.push(token);
            }
            Fate::Close => self.close(token, "normal"),
        }
    }

    /// Closes a connection. Watchers get `reason`, unless the socket failed.
    fn close(&mut self, token: usize, reason: &str) {
        let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) else { return };
        connection.release(&self.server);
        let reason = if connection.is_broken() { "error" } else { reason };
        connections::closed(&self.server, self.index, &connection.peer, reason);
        // A ring that fails ends the loop with its next wait.
        let _ = connection.stream.finish(self.poll.registry(), self.ringed.as_mut().map(|ringed| &mut ringed.ring));
        self.server.peers.leave(&connection.peer);
        self.server.open.fetch_sub(1, Ordering::Relaxed);
        self.free.push(token);
    }

    fn accept(&mut self, listener: usize) {
        loop {
            let Some(socket) = self.listeners.get(listener) else { return };
            match socket.accept(self.server.tls.as_ref()) {
                Ok(arrival) => self.dispatch(arrival),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Connections that broke while they waited, or a limit of the system: those that wait are asked for
                    // again with the next tick.
                    self.server.log(1, || format!("cannot accept: {error}"));
                    return;
                }
            }
        }
    }

    fn dispatch(&mut self, mut arrival: Arrival) {
        let counters = &self.server.counters[self.index];
        if self.server.open.fetch_add(1, Ordering::Relaxed) >= self.server.config.connections {
            self.server.open.fetch_sub(1, Ordering::Relaxed);
            counters.rejected.add(1);
            // The socket is new, so there is room for a line; and the client may be gone.
            let _ = arrival.stream.write(arrival.protocol.too_many_connections());
            return;
        }
        counters.connections.add(1);
        let target = self.next;
        self.next = (self.next + 1) % self.mailboxes.len();
        if target == self.index {
            self.admit(arrival);
        } else {
            self.mailboxes[target].send(arrival);
        }
    }

    fn admit_arrivals(&mut self) {
        for arrival in self.mailboxes[self.index].take() {
            self.admit(arrival);
        }
    }

    fn admit(&mut self, arrival: Arrival) {
        let token = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let peer = self.server.peers.enter(arrival.address, arrival.listener, self.now);
        connections::opened(&self.server, self.index, &peer);
        let stream = match (arrival.stream, &mut self.ringed) {
            (Stream::Plain(socket), Some(ringed)) => Stream::Ring(Box::new(RingStream::new(socket, ringed.tag(token)))),
            (stream, _) => stream,
        };
        let mut connection = Connection::new(stream, peer, Session::new(&self.server, arrival.protocol));
        let mut registered = connection.stream.register(self.poll.registry(), Token(token));
        if let Some(ringed) = &mut self.ringed {
            registered = registered.and_then(|()| connection.stream.hand_over(&mut ringed.ring));
        }
        self.connections[token] = Some(connection);
        if let Err(error) = registered {
            self.server.log(0, || format!("cannot watch a connection: {error}"));
            self.close(token, "error");
        }
    }

    /// Periodic work.
    fn tick(&mut self) {
        self.ticked = Instant::now();
        let now = now_ms();
        self.now = now / 1000;
        if self.index == 0 {
            self.server.flush_if_due(now);
            for listener in 0..self.listeners.len() {
                self.accept(listener);
            }
        }
        self.close_late();
        if let Some(idle) = self.server.config.idle {
            self.close_where(|connection, server, now| {
                let quiet = now.saturating_sub(connection.peer.active.load(Ordering::Relaxed));
                let late = quiet > idle.as_secs() && !connection.is_subscribed();
                if late {
                    server.log(2, || format!("{} said nothing for {quiet} s", connection.peer.address));
                }
                late
            });
        }
    }

    /// Closes the connections whose clients take longer than their protocol allows.
    fn close_late(&mut self) {
        for token in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            if connection.is_late(self.now) {
                connection.refuse_late(&mut self.out, &self.server.counters[self.index]);
                self.server.counters[self.index].idle_kicks.add(1);
                self.close(token, "idle_timeout");
            }
        }
    }

    fn close_where(&mut self, late: impl Fn(&Connection, &Server, u64) -> bool) {
        for token in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get(token) else { continue };
            if late(connection, &self.server, self.now) {
                self.server.counters[self.index].idle_kicks.add(1);
                self.close(token, "idle_timeout");
            }
        }
    }

    /// Closes idle connections; `true` when none is left, or the time for draining is over.
    fn is_drained(&mut self) -> bool {
        self.listeners.clear();
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.server.config.drain);
        if Instant::now() >= deadline {
            return true;
        }
        self.serve_last();
        for token in 0..self.connections.len() {
            // Requests that arrived before the stop are still performed.
            if let Some(Some(connection)) = self.connections.get_mut(token) {
                connection.note_readable();
                self.turn(token, &[]);
            }
            if self.connections.get(token).is_some_and(|c| c.as_ref().is_some_and(Connection::is_idle)) {
                self.close(token, "shutdown");
            }
        }
        self.connections.iter().all(Option::is_none)
    }
}
