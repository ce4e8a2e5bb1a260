//! What all event loops share.

use crate::access::Access;
use crate::auth::Accounts;
use crate::config::Config;
use crate::peers::Peers;
use crate::stats::counters::Counters;
use hashmere::Store;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One server.
#[derive(Debug)]
pub struct Server {
    /// The data.
    pub store: Store,
    /// The options.
    pub config: Config,
    /// Counters of each event loop.
    pub counters: Box<[Counters]>,
    /// When it started.
    pub started: Instant,
    /// Open connections.
    pub open: AtomicUsize,
    /// Who is connected.
    pub peers: Peers,
    /// Bytes of unfinished values and long lines that connections hold.
    pub input: AtomicUsize,
    /// How much is said.
    pub verbosity: AtomicU8,
    /// Accesses to keys.
    pub access: Access,
    /// When everything is to be removed, in milliseconds since 1970; 0 for never.
    pub flush_at: AtomicU64,
    /// The server is stopping.
    pub stopping: AtomicBool,
    accounts: RwLock<Option<Arc<Accounts>>>,
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Server {
    /// A server on this store.
    ///
    /// # Errors
    /// The account file cannot be read.
    pub fn new(store: Store, config: Config) -> Result<Server, String> {
        let accounts = config.accounts.as_deref().map(Accounts::load).transpose()?.map(Arc::new);
        let threads = config.threads.max(1);
        Ok(Server {
            store,
            counters: (0..threads).map(|_| Counters::default()).collect(),
            started: Instant::now(),
            open: AtomicUsize::new(0),
            peers: Peers::default(),
            input: AtomicUsize::new(0),
            verbosity: AtomicU8::new(config.verbosity),
            access: Access::default(),
            flush_at: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            accounts: RwLock::new(accounts),
            config,
        })
    }

    /// The accounts, if connections have to authenticate.
    pub fn accounts(&self) -> Option<Arc<Accounts>> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the account file again. What cannot be read leaves the accounts as they are.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn reload_accounts(&self) -> Result<(), String> {
        let Some(path) = self.config.accounts.as_deref() else { return Ok(()) };
        let accounts = Arc::new(Accounts::load(path)?);
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = Some(accounts);
        Ok(())
    }

    /// Removes everything now, and forgets a removal that was planned.
    ///
    /// # Errors
    /// What the store says.
    pub fn flush(&self) -> Result<(), hashmere::WriteError> {
        self.flush_at.store(0, Ordering::Relaxed);
        self.store.clear()
    }

    /// Removes everything if the time for it has come.
    pub fn flush_if_due(&self, now_ms: u64) {
        let at = self.flush_at.load(Ordering::Relaxed);
        let mine = || self.flush_at.compare_exchange(at, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if at != 0 && at <= now_ms && mine() {
            // A store without room for an empty index stays as it is; the next flush may succeed.
            let _ = self.store.clear();
        }
    }

    /// Asks the whole server to stop, as a signal would.
    pub fn ask_to_stop(&self) {
        // Fails only for a number that is no signal.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
    }

    /// Writes a message of this importance to standard error, if it is wanted.
    pub fn say(&self, importance: u8, text: impl FnOnce() -> String) {
        if self.verbosity.load(Ordering::Relaxed) >= importance {
            eprintln!("hashmere serve: {}", text());
        }
    }
}
