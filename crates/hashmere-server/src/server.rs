//! What all event loops share.

use crate::access_times::AccessTimes;
use crate::asked::{Counting, Tails};
use crate::auth::{self, Accounts};
use crate::config::Config;
use crate::feed_stream::Streams;
use crate::flushed::Flushed;
use crate::hot::Hot;
use crate::peers::Peers;
use crate::protocol::resp::shared::Shared;
use crate::stats::counters::Counters;
use crate::stats::detail::Detail;
use crate::tls::Acceptor;
use crate::watch::Watchers;
use hashmere::{Cursor, Filter, ReadError, Stats, Store};
use hashmere_observe::{LookupProbe, LookupTimes, Observer, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How old figures of the store may be at least, for clients that ask again and again: making them goes through
/// segments and leaves.
const STATS_AGE: Duration = Duration::from_millis(500);
/// The same for a large index: the time that making them took, times this. It is at most 0.4 % of a core then.
const STATS_SHARE: u32 = 250;
/// But no more than this.
const STATS_AGE_MAX: Duration = Duration::from_secs(10);

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
    /// The connections, for `stats conns`.
    pub peers: Peers,
    /// Bytes of unfinished values and long lines that connections hold.
    pub input: AtomicUsize,
    /// Verbosity of the messages.
    pub verbosity: AtomicU8,
    /// Accesses to keys over sockets.
    pub(crate) access: AccessTimes,
    /// Connections that receive the lines of `watch`.
    pub(crate) watchers: Watchers,
    /// Connections that receive the store's changes.
    pub(crate) streams: Arc<Streams>,
    /// What clients of Redis share.
    pub(crate) resp: Arc<Shared>,
    /// Requests by prefix.
    pub(crate) detail: Detail,
    /// Keys that the last flush removed.
    pub(crate) flushed: Flushed,
    /// When everything is to be removed, in milliseconds since 1970; 0 for never.
    pub flush_at: AtomicU64,
    /// The server is stopping.
    pub stopping: AtomicBool,
    /// The operations of other processes when counting began.
    others: Mutex<Others>,
    /// Makes TLS connections, if they are configured.
    pub(crate) tls: Option<Acceptor>,
    accounts: RwLock<Option<Arc<Accounts>>>,
    http_token: RwLock<Option<Arc<[u8]>>>,
    recent: Mutex<Option<Arc<Recent>>>,
    /// Samples the keys for the dashboard.
    pub(crate) hot: Arc<Hot>,
    /// Counts the keys for the dashboard.
    pub(crate) counting: Counting,
    /// The logs that the dashboard shows.
    pub(crate) tails: Tails,
    /// Looks up keys for the dashboard.
    probe: Mutex<LookupProbe>,
}

/// Operations of other processes on the store, servers among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// Reads that found their key.
    pub(crate) hits: u64,
    /// Reads that did not.
    pub(crate) misses: u64,
    /// Values stored.
    pub(crate) sets: u64,
    /// Keys deleted.
    pub(crate) deletes: u64,
}

impl Others {
    /// Since the store was made: all, less what this process did.
    fn of(stats: &Stats) -> Others {
        Others {
            hits: stats.hits.wrapping_sub(stats.own.hits),
            misses: stats.misses.wrapping_sub(stats.own.misses),
            sets: stats.sets.wrapping_sub(stats.own.sets),
            deletes: stats.deletes.wrapping_sub(stats.own.deletes),
        }
    }
}

/// Figures of the store, and when they were made.
#[derive(Debug)]
pub(crate) struct Recent {
    /// Milliseconds since 1970.
    pub(crate) made_ms: u64,
    /// Until when they are recent.
    until: Instant,
    /// The figures.
    pub(crate) stats: Stats,
    /// Queues, logs, the replica.
    pub(crate) seen: Snapshot,
    /// What look-ups took; `None`: there were no keys.
    pub(crate) lookups: Option<LookupTimes>,
}

/// What the server reads from private files before it gives up its privileges.
#[derive(Debug)]
pub(crate) struct Secrets {
    accounts: Option<Accounts>,
    http_token: Option<Vec<u8>>,
    tls: Option<Acceptor>,
}

impl Secrets {
    /// Reads what the options name.
    pub(crate) fn load(config: &Config) -> Result<Secrets, String> {
        let accounts = config.accounts.as_deref().map(Accounts::load).transpose()?;
        let http_token = config.http.token.as_deref().map(auth::load_token).transpose()?;
        Ok(Secrets { accounts, http_token, tls: Acceptor::new(config)? })
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Server {
    /// A server on this store.
    ///
    /// # Errors
    /// The account file, a certificate or a key cannot be read.
    pub fn new(store: Store, config: Config) -> Result<Server, String> {
        let secrets = Secrets::load(&config)?;
        Ok(Server::with(store, config, secrets))
    }

    /// A server on this store, with secrets that were read before.
    pub(crate) fn with(store: Store, config: Config, secrets: Secrets) -> Server {
        let threads = config.threads.max(1);
        let access = AccessTimes::new(now_ms() / 1000);
        if config.access_times {
            access.begin();
        }
        Server {
            streams: Arc::new(Streams::new(store.clone())),
            store,
            counters: (0..threads).map(|_| Counters::default()).collect(),
            started: Instant::now(),
            open: AtomicUsize::new(0),
            peers: Peers::default(),
            input: AtomicUsize::new(0),
            verbosity: AtomicU8::new(config.verbosity),
            access,
            watchers: Watchers::default(),
            resp: Arc::default(),
            detail: Detail::new(config.delimiter),
            flushed: Flushed::default(),
            flush_at: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            others: Mutex::default(),
            tls: secrets.tls,
            accounts: RwLock::new(secrets.accounts.map(Arc::new)),
            http_token: RwLock::new(secrets.http_token.map(Arc::from)),
            recent: Mutex::default(),
            hot: Arc::default(),
            counting: Counting::default(),
            tails: Tails::default(),
            probe: Mutex::default(),
            config,
        }
    }

    /// The figures of the store, half a second old at most, or older if the index is large: so however many clients
    /// ask, little time is spent on them.
    pub(crate) fn recent_stats(&self) -> Arc<Recent> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        if let Some(known) = recent.as_ref().filter(|known| start < known.until) {
            return known.clone();
        }
        let (made_ms, stats) = (now_ms(), self.store.stats());
        let seen = Observer::of(self.store.clone()).snapshot();
        // What cannot be read is not timed: `check` says why.
        let lookups = self.probe.lock().unwrap_or_else(PoisonError::into_inner).poll(&self.store).unwrap_or(None);
        let age = (start.elapsed() * STATS_SHARE).clamp(STATS_AGE, STATS_AGE_MAX);
        let made = Arc::new(Recent { made_ms, until: start + age, stats, seen, lookups });
        *recent = Some(made.clone());
        made
    }

    /// Counts operations of other processes from now on.
    pub(crate) fn start_counting(&self) {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = Others::of(&self.store.stats());
    }

    /// Operations of other processes since counting began.
    pub(crate) fn others(&self, stats: &Stats) -> Others {
        let before = *self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Others::of(stats);
        // The figures are read one after another while other processes change them: a difference may be slightly off.
        let since = |now: u64, before: u64| u64::try_from(now.wrapping_sub(before) as i64).unwrap_or(0);
        Others {
            hits: since(now.hits, before.hits),
            misses: since(now.misses, before.misses),
            sets: since(now.sets, before.sets),
            deletes: since(now.deletes, before.deletes),
        }
    }

    /// Sets all counters to zero.
    pub(crate) fn reset_counters(&self) {
        self.counters.iter().for_each(Counters::reset);
        self.detail.reset();
        self.start_counting();
    }

    /// The accounts, if connections have to authenticate.
    pub fn accounts(&self) -> Option<Arc<Accounts>> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The token of HTTP clients, if they need one.
    pub(crate) fn http_token(&self) -> Option<Arc<[u8]>> {
        self.http_token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads accounts, token and certificates again. On an error the old ones stay.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn reload(&self) -> Result<(), String> {
        if let Some(path) = self.config.accounts.as_deref() {
            let accounts = Arc::new(Accounts::load(path)?);
            *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = Some(accounts);
        }
        if let Some(path) = self.config.http.token.as_deref() {
            let token = auth::load_token(path)?;
            *self.http_token.write().unwrap_or_else(PoisonError::into_inner) = Some(token.into());
        }
        self.reload_certificates().map(|_| ())
    }

    /// Reads certificates and key again: connections from now on get them, those that are open keep theirs. `false`:
    /// there is no TLS.
    ///
    /// # Errors
    /// Why they cannot be read; the old ones stay.
    pub fn reload_certificates(&self) -> Result<bool, String> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload().map(|()| true))
    }

    /// Removes everything now, and forgets a removal that was planned.
    ///
    /// # Errors
    /// What the store says.
    pub fn flush(&self) -> Result<(), hashmere::WriteError> {
        self.flush_at.store(0, Ordering::Relaxed);
        self.clear()
    }

    fn clear(&self) -> Result<(), hashmere::WriteError> {
        let keys = self.store.scan(Cursor::START, Filter::all().keys_only());
        self.flushed.remember(keys.map_while(Result::ok).map(|pair| pair.key));
        self.store.clear()
    }

    /// Removes everything if the time for it has come.
    pub fn flush_if_due(&self, now_ms: u64) {
        let at = self.flush_at.load(Ordering::Relaxed);
        let mine = || self.flush_at.compare_exchange(at, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if at != 0 && at <= now_ms && mine() {
            // A store without room for an empty index stays as it is; the next flush may succeed.
            let _ = self.clear();
        }
    }

    /// Tells the operator of a damaged record, which is a miss to the client.
    pub fn report_unreadable(&self, error: &ReadError) {
        self.log(0, || format!("cannot read: {error}"));
    }

    /// Asks the whole server to stop, as a signal would.
    pub fn ask_to_stop(&self) {
        // Fails only for a number that is no signal.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
    }

    /// Writes a message of this importance to standard error, if it is wanted.
    pub fn log(&self, importance: u8, text: impl FnOnce() -> String) {
        if self.verbosity.load(Ordering::Relaxed) >= importance {
            eprintln!("hashmere serve: {}", text());
        }
    }
}
