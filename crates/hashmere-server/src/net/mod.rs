//! Moving bytes: one event loop a thread, the first of them accepts.

mod connection;
mod listener;
mod mailbox;
mod send;
mod stream;
mod worker;

use crate::config::Config;
use crate::server::Server;
use hashmere::Store;
use listener::Listener;
use mailbox::Mailbox;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use worker::Worker;

/// Files that a process needs beside its connections.
const OTHER_FILES: u64 = 64;

/// Serves a store until SIGTERM, SIGINT or the `shutdown` command; then lets clients take the replies that are on their way.
/// SIGHUP reads the account file again. `ready` is called once every socket listens, with their addresses.
///
/// # Errors
/// A socket that cannot be opened, a file that cannot be read, in words.
pub fn serve(store: Store, config: Config, ready: impl FnOnce(&[String])) -> Result<(), String> {
    let mut config = config;
    let inherited = std::mem::take(&mut config.inherited);
    let listeners = listener::open_all(&config, inherited)?;
    let metrics = config.metrics.map(crate::metrics::open).transpose()?;
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
    if let Some(user) = &config.user {
        hashmere_os::process::become_user(user).map_err(|error| format!("cannot become user {user}: {error}"))?;
    }
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|error| format!("cannot handle signals: {error}"))?;
    let server = Arc::new(Server::new(store, config)?);
    let workers = start(&server, listeners)?;
    if let Some(listener) = metrics {
        crate::metrics::start(listener, server.clone())?;
    }
    ready(&workers.addresses);
    for signal in signals.forever() {
        match signal {
            SIGHUP => match server.reload_accounts() {
                Ok(()) => server.say(1, || "accounts read again".into()),
                Err(error) => server.say(0, || error),
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

fn start(server: &Arc<Server>, listeners: Vec<Listener>) -> Result<Running, String> {
    let failed = |error: std::io::Error| format!("cannot start an event loop: {error}");
    let tls = crate::tls::Acceptor::new(&server.config)?;
    let addresses = listeners.iter().map(|listener| listener.name.clone()).collect();
    let mut polls = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..server.counters.len() {
        let poll = mio::Poll::new().map_err(failed)?;
        mailboxes.push(Arc::new(Mailbox::new(&poll).map_err(failed)?));
        polls.push(poll);
    }
    let mut listeners = Some(listeners);
    let mut threads = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        let listeners = listeners.take().unwrap_or_default();
        let worker = Worker::new(server.clone(), index, poll, mailboxes.clone(), listeners, tls.clone());
        let mut worker = worker.map_err(failed)?;
        let thread = std::thread::Builder::new().name(format!("serve-{index}"));
        threads.push(thread.spawn(move || worker.run()).map_err(failed)?);
    }
    Ok(Running { threads, mailboxes, addresses })
}

fn stop(server: &Arc<Server>, running: Running) {
    server.say(1, || "stopping".into());
    server.stopping.store(true, Ordering::SeqCst);
    running.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    for thread in running.threads {
        // A loop that panicked has said so already; the others still stop in order.
        let _ = thread.join();
    }
}
