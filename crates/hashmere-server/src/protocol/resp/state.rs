//! The state of a connection, and what a command is.

use super::about::About;
use super::direct::Direct;
use super::keys::Perform;
use super::lock::lock;
use super::parse::Args;
use super::pubsub::Subscription;
use super::reply::Reply;
use crate::turn::Turn;
use hashmere::{Cursor, Version};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// It changes keys.
pub const WRITE: u16 = 1;
/// It reads keys.
pub const READ: u16 = 1 << 1;
/// It takes a short time, whatever it is given.
pub const FAST: u16 = 1 << 2;
/// It is allowed before authentication.
pub const NO_AUTH: u16 = 1 << 3;
/// It is allowed to a subscriber that speaks RESP2.
pub const SUBSCRIBED: u16 = 1 << 4;
/// It is performed, not queued, within `MULTI`.
pub const NOT_QUEUED: u16 = 1 << 5;
/// It is not allowed within `MULTI`.
pub const NO_MULTI: u16 = 1 << 6;
/// It may need memory.
pub const DENY_OOM: u16 = 1 << 7;
/// It has subcommands.
pub const CONTAINER: u16 = 1 << 8;
/// It is about the server.
pub const ADMIN: u16 = 1 << 9;
/// It is about messages.
pub const PUBSUB: u16 = 1 << 10;

/// What a command leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is answered.
    Done,
    /// It goes on when its output was sent.
    More,
    /// The connection is to be closed.
    Close,
}

/// A command on the connection or the server.
pub type Session = fn(&mut Client, &mut Turn<'_>, Args<'_>) -> Step;

/// A command, or a subcommand, whose name has a `|`.
#[derive(Debug)]
pub struct Command {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Arguments with its name; below zero: at least that number.
    pub arity: i32,
    /// See the constants.
    pub flags: u16,
    /// First key, last key (below zero: from the end), step between them.
    pub keys: (i32, i32, i32),
    /// The group that it is documented in.
    pub group: &'static str,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// How it is performed by itself.
    pub direct: Option<Direct>,
    /// How it is performed within a transaction; without `direct` by itself too.
    pub perform: Option<Perform>,
    /// How it is performed if it is not about keys.
    pub session: Option<Session>,
}

impl Command {
    /// Whether it takes this many arguments.
    #[inline]
    pub fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        let arity = i64::from(self.arity);
        if arity < 0 {
            count >= -arity
        } else {
            count == arity
        }
    }

    /// Whether it has this flag.
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The places of its keys among this many arguments.
    pub fn key_places(&self, count: usize) -> impl Iterator<Item = usize> {
        let (first, last, step) = self.keys;
        let count = count as i32;
        let last = if last < 0 { count + last } else { last.min(count - 1) };
        let places = if first > 0 { first..last + 1 } else { 0..0 };
        places.step_by(step.max(1) as usize).map(|place| place as usize)
    }
}

/// What is to be done by `EXEC`.
#[derive(Debug, Default)]
pub struct Queue {
    /// The commands.
    pub commands: Vec<Queued>,
    /// Bytes of memory that they take.
    pub bytes: usize,
    /// A command was refused: nothing is done.
    pub aborted: bool,
}

impl Queue {
    /// Commands in it.
    pub fn len(&self) -> i64 {
        self.commands.len() as i64
    }
}

/// A command of it.
#[derive(Debug)]
pub struct Queued {
    /// What it is.
    pub command: &'static Command,
    bytes: Box<[u8]>,
    ranges: Box<[Range<usize>]>,
}

impl Queued {
    /// With a copy of the arguments.
    pub fn new(command: &'static Command, args: Args<'_>) -> Queued {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::with_capacity(args.count()));
        for arg in args.from(0) {
            ranges.push(bytes.len()..bytes.len() + arg.len());
            bytes.extend_from_slice(arg);
        }
        Queued { command, bytes: bytes.into(), ranges: ranges.into() }
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> usize {
        size_of::<Queued>() + self.bytes.len() + self.ranges.len() * size_of::<Range<usize>>()
    }

    /// Its arguments.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.ranges)
    }
}

/// A key as it was when it was watched; `None`: absent.
#[derive(Debug)]
pub struct Watched {
    /// The key.
    pub key: Box<[u8]>,
    /// Its version and expiry.
    pub state: Option<(Version, Option<u64>)>,
}

/// A `KEYS` that goes on.
#[derive(Debug, Default)]
pub struct Walk {
    /// Where.
    pub cursor: Cursor,
    /// The reply, without its head.
    pub found: Vec<u8>,
    /// Keys in it.
    pub count: usize,
}

/// Whether commands are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Yes.
    Off,
    /// The next one is not.
    Next,
    /// No.
    On,
}

/// The state of a connection.
#[derive(Debug)]
pub struct Client {
    /// It speaks RESP3.
    pub resp3: bool,
    /// It has not authenticated yet.
    pub locked: bool,
    /// Whether commands are answered.
    pub silence: Silence,
    /// Between `MULTI` and `EXEC`.
    pub queue: Option<Queue>,
    /// Watched keys.
    pub watched: Vec<Watched>,
    /// Its channels and patterns.
    pub subscription: Option<Subscription>,
    /// The argument that a command goes on with.
    pub place: usize,
    /// What a listing goes on with.
    pub walk: Option<Walk>,
    /// The commands that there are.
    pub commands: &'static [Command],
    /// Its entry in the list of connections.
    pub about: Option<Arc<Mutex<About>>>,
}

impl Client {
    /// A new one.
    pub fn new(locked: bool, commands: &'static [Command]) -> Client {
        Client {
            resp3: false,
            locked,
            silence: Silence::Off,
            queue: None,
            watched: Vec::new(),
            subscription: None,
            place: 0,
            walk: None,
            commands,
            about: None,
        }
    }

    /// Adds it to the list of connections, once.
    #[inline]
    pub fn enter(&mut self, turn: &Turn<'_>) {
        if self.about.is_none() {
            self.about = Some(turn.server.resp.enter(turn.connection));
        }
    }

    /// Where replies go.
    pub fn reply_to<'a>(&self, turn: &'a mut Turn<'_>) -> Reply<'a> {
        Reply { out: &mut turn.out.bytes, resp3: self.resp3 }
    }

    /// An open transaction does nothing any more.
    pub fn abort(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.aborted = true;
        }
    }

    /// There is no open transaction any more.
    pub fn discard(&mut self) {
        self.queue = None;
        self.watched.clear();
    }

    /// Whether it may only change its subscriptions.
    pub fn is_only_subscriber(&self) -> bool {
        !self.resp3 && self.subscription.is_some()
    }

    /// Notes what it speaks.
    pub fn speak(&mut self, resp3: bool) {
        self.resp3 = resp3;
        if let Some(subscription) = &self.subscription {
            subscription.speak(resp3);
        }
        self.note(|about| about.resp3 = resp3);
    }

    /// Notes who it is.
    pub fn admit(&mut self, user: &[u8]) {
        self.locked = false;
        self.note(|about| about.user = user.to_vec());
    }

    /// As a new connection is.
    pub fn reset(&mut self, locked: bool) {
        let about = self.about.take();
        *self = Client { about, ..Client::new(locked, self.commands) };
        self.note(|about| *about = About::new(about.id));
    }

    /// Gives it a name.
    pub fn set_name(&self, name: &[u8]) {
        self.note(|about| about.name = name.to_vec());
    }

    /// Changes that entry.
    pub fn note(&self, change: impl FnOnce(&mut About)) {
        if let Some(about) = &self.about {
            change(&mut lock(about));
        }
    }

    /// Its name.
    pub fn name(&self) -> Vec<u8> {
        self.about.as_ref().map_or_else(Vec::new, |about| lock(about).name.clone())
    }

    /// Where it comes from.
    pub fn address(&self, turn: &Turn<'_>) -> String {
        let peers = turn.server.peers.list();
        peers.iter().find(|peer| peer.id == turn.connection).map_or_else(String::new, |peer| peer.place().into())
    }
}

/// Replies with an error. An open transaction fails by it.
pub fn refuse(client: &mut Client, turn: &mut Turn<'_>, text: &str) -> Step {
    client.abort();
    Reply { out: &mut turn.out.bytes, resp3: client.resp3 }.error(text);
    Step::Done
}
