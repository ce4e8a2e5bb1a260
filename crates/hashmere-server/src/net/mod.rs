//! Moving bytes: one event loop a thread, the first of them accepts.

mod connection;
mod listener;
pub(crate) mod mailbox;
mod plain;
mod read_batch;
mod ring_stream;
mod ring_turns;
mod ringed;
mod send;
mod stream;
mod worker;

use crate::config::{Config, EventLoop};
use crate::protocol::resp::notify;
use crate::server::{Secrets, Server};
use hashmere::Store;
use hashmere_uring::Ring;
use listener::Listener;
use mailbox::Mailbox;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use worker::Worker;

/// Files that a process needs beside its connections.
const OTHER_FILES: u64 = 64;

/// Serves a store until SIGTERM, SIGINT or the `shutdown` command; then lets clients take the replies that are on their
/// way. SIGHUP reads accounts, token and certificates again. `open` opens the store, as the user that the server
/// becomes. `ready` is called once every socket listens, with the store and their addresses.
///
/// # Errors
/// A socket that cannot be opened, a file that cannot be read, in words; and what `open` says.
pub fn serve<E: From<String>>(
    config: Config,
    open: impl FnOnce() -> Result<Store, E>,
    ready: impl FnOnce(&Store, &[String]),
) -> Result<(), E> {
    let prepared = prepare(config)?;
    let store = open()?;
    Ok(run(store, prepared, ready)?)
}

/// What is opened with the privileges that the server gives up.
struct Prepared {
    config: Config,
    listeners: Vec<Listener>,
    secrets: Secrets,
}

fn prepare(config: Config) -> Result<Prepared, String> {
    let mut config = config;
    config.check_http()?;
    let inherited = std::mem::take(&mut config.inherited);
    let listeners = listener::open_all(&config, inherited)?;
    let files = config.connections as u64 + OTHER_FILES;
    match hashmere_os::process::raise_file_limit(files) {
        Ok(limit) if limit < files => {
            return Err(format!(
                "{files} open files are needed for -c {}, and the limit is {limit}",
                config.connections
            ));
        }
        Err(error) => return Err(format!("cannot raise the limit on open files: {error}")),
        Ok(_) => {}
    }
    let secrets = Secrets::load(&config)?;
    if let Some(user) = &config.user {
        hashmere_os::process::become_user(user).map_err(|error| format!("cannot become user {user}: {error}"))?;
    }
    Ok(Prepared { config, listeners, secrets })
}

fn run(store: Store, prepared: Prepared, ready: impl FnOnce(&Store, &[String])) -> Result<(), String> {
    let Prepared { mut config, listeners, secrets } = prepared;
    let rings = rings(&config)?;
    config.event_loop = if rings.is_ok() { EventLoop::IoUring } else { EventLoop::Epoll };
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|error| format!("cannot handle signals: {error}"))?;
    if let Some(bytes) = config.feed {
        let enabled = hashmere_feed::enable(&store, bytes, true);
        enabled.map_err(|error| format!("cannot keep the store's changes: {error}"))?;
    }
    let server = Arc::new(Server::with(store, config, secrets));
    if let Err(reason) = &rings {
        server.log(1, || format!("sockets by epoll: {reason}"));
    }
    let followed = notify::open(&server.store, &server.config.keyspace_events)?;
    let workers = start(&server, listeners, rings.unwrap_or_default())?;
    if let Some((mut feed, wanted)) = followed {
        let server = server.clone();
        let thread = std::thread::Builder::new().name("keyspace".into());
        let spawned = thread.spawn(move || notify::follow(&server, &mut feed, wanted));
        // It ends with the process, or a moment after the event loops.
        spawned.map_err(|error| format!("cannot start the thread of keyspace events: {error}"))?;
    }
    ready(&server.store, &workers.addresses);
    for signal in signals.forever() {
        match signal {
            SIGHUP => match server.reload() {
                Ok(()) => server.log(1, || "accounts, token and certificates read again".into()),
                Err(error) => server.log(0, || error),
            },
            _ => break,
        }
    }
    stop(&server, workers);
    Ok(())
}

struct Running {
    threads: Vec<std::thread::JoinHandle<()>>,
    mailboxes: Vec<Arc<Mailbox>>,
    addresses: Vec<String>,
}

/// A ring for each event loop; or why there are none. An error if there have to be.
fn rings(config: &Config) -> Result<Result<Vec<Ring>, String>, String> {
    if config.event_loop == EventLoop::Epoll {
        return Ok(Err("asked for".into()));
    }
    let loops = config.threads.max(1);
    let made = hashmere_uring::probe().and_then(|()| (0..loops).map(|_| Ring::new()).collect::<std::io::Result<_>>());
    match made {
        Err(error) if config.event_loop == EventLoop::IoUring => {
            Err(format!("io_uring cannot be used here: {error}; -o event_loop=epoll does without"))
        }
        made => Ok(made.map_err(|error| error.to_string())),
    }
}

fn start(server: &Arc<Server>, listeners: Vec<Listener>, rings: Vec<Ring>) -> Result<Running, String> {
    let failed = |error: std::io::Error| format!("cannot start an event loop: {error}");
    let addresses: Vec<String> = listeners.iter().map(|listener| listener.name.clone()).collect();
    addresses.iter().for_each(|address| server.peers.listens(address.clone(), crate::server::now_ms() / 1000));
    let mut polls = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..server.counters.len() {
        let poll = mio::Poll::new().map_err(failed)?;
        mailboxes.push(Arc::new(Mailbox::new(&poll).map_err(failed)?));
        polls.push(poll);
    }
    server.watchers.set_wakers(&mailboxes);
    server.streams.set_wakers(&mailboxes);
    let mut listeners = Some(listeners);
    let mut rings = rings.into_iter();
    let mut threads = Vec::new();
    // Before the first connection, which may ask for the figures.
    server.start_counting();
    for (index, poll) in polls.into_iter().enumerate() {
        let listeners = listeners.take().unwrap_or_default();
        let worker = Worker::new(server.clone(), index, poll, mailboxes.clone(), listeners);
        let mut worker = worker.map_err(failed)?;
        let thread = std::thread::Builder::new().name(format!("serve-{index}"));
        let ring = rings.next();
        threads.push(thread.spawn(move || worker.run(ring)).map_err(failed)?);
    }
    Ok(Running { threads, mailboxes, addresses })
}

fn stop(server: &Arc<Server>, running: Running) {
    server.log(1, || "stopping".into());
    server.stopping.store(true, Ordering::SeqCst);
    server.streams.stop();
    running.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    for thread in running.threads {
        // A loop that panicked has said so already; the others still stop in order.
        let _ = thread.join();
    }
}
