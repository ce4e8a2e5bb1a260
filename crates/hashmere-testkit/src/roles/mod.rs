//! What the worker program can be: one file per role. A role ends when its standard input is closed, and panics (the
//! process then fails) when the store does what it must not.

pub mod atomic;
pub mod backup;
pub mod bank;
pub mod confined;
mod crowd;
mod fill;
mod fork;
mod hammer;
mod last_close;
pub mod lock;
pub mod log;
mod many;
pub mod mix;
mod opener;
mod queue;
mod reader;
mod replicate;
mod shell;
mod viewer;

use crate::procs::LIMIT;
use hashmere::{Options, Store};
use nix::sys::resource::{setrlimit, Resource};
use std::io::BufRead;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Runs a role.
///
/// # Panics
/// If there is none of this name, or the role's promise is broken.
pub fn run(role: &str, arguments: Vec<String>) {
    let mut arguments = Arguments(arguments.into_iter());
    match role {
        "backup" => backup::backup(&mut arguments),
        "half-a-backup" => backup::half_a_backup(&mut arguments),
        "bank" => bank::run(&mut arguments),
        "burst" => crowd::burst(&mut arguments),
        "churn" => crowd::churn(&mut arguments),
        "confined" => confined::run(&mut arguments),
        "crowd" => crowd::crowd(&mut arguments),
        "fill" => fill::run(&mut arguments),
        "barrier" => queue::barrier(&mut arguments),
        "fork" => fork::run(&mut arguments),
        "hammer" => hammer::run(&mut arguments),
        "last-close" => last_close::run(&mut arguments),
        "holder" => queue::holder(&mut arguments),
        "drainer" => log::drainer(&mut arguments),
        "leaver" => log::leaver(&mut arguments),
        "log-fork" => log::forker(&mut arguments),
        "logger" => log::logger(&mut arguments),
        "many" => many::run(&mut arguments),
        "mix" => mix::run(&mut arguments),
        "mutate" => replicate::mutate(&mut arguments),
        "mutex" => queue::mutex(&mut arguments),
        "once" => queue::once_only(&mut arguments),
        "opener" => opener::run(&mut arguments),
        "passers" => crowd::passers(&mut arguments),
        "queue" => queue::run(&mut arguments),
        "atomic" => atomic::atomic(&mut arguments),
        "atomic-waiter" => atomic::waiter(&mut arguments),
        "rwlock" => lock::rwlock(&mut arguments),
        "rwlock-holder" => lock::rwlock_holder(&mut arguments),
        "semaphore" => lock::semaphore(&mut arguments),
        "reader" => reader::run(&mut arguments),
        "replicate" => replicate::replicate(&mut arguments),
        "sequence" => backup::sequence(&mut arguments),
        "echo" => backup::echo(&mut arguments),
        "shell" => shell::run(&mut arguments),
        "two-way" => replicate::two_way(&mut arguments),
        "viewer" => viewer::run(&mut arguments),
        _ => panic!("no role {role:?}"),
    }
}

/// The arguments of a role, in order.
struct Arguments(std::vec::IntoIter<String>);

impl Arguments {
    fn next<T: FromStr>(&mut self) -> T {
        let text = self.0.next().expect("one more argument");
        text.parse().unwrap_or_else(|_| panic!("argument {text:?}"))
    }

    /// All that are left.
    fn rest(&mut self) -> Vec<String> {
        self.0.by_ref().collect()
    }

    /// Opens the existing store that is the next argument. Who holds a lock may not be run for long on a busy machine:
    /// only one that is never given back is refused.
    fn store(&mut self) -> Store {
        let path: String = self.next();
        Options::new()
            .create(false)
            .busy_timeout(LIMIT)
            .open(&path)
            .unwrap_or_else(|error| panic!("open {path}: {error}"))
    }
}

/// Becomes true when standard input is closed.
fn input_closed() -> Arc<AtomicBool> {
    let closed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&closed);
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines() {}
        seen.store(true, Ordering::Relaxed);
    });
    closed
}

/// Sets one of the limits of this process.
pub(crate) fn limit(what: Resource, most: u64) {
    setrlimit(what, most, most).unwrap_or_else(|error| panic!("limit {what:?} to {most}: {error}"));
}
