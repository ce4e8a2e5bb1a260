//! A log as one process has it open.

use crate::error::LogError;
use crate::layout::{Geometry, LogCore};
use crate::line::Level;
use crate::options::LogOptions;
use crate::ring::Liveness;
use crate::timestamp;
use hashmere_engine::{ClientId, Region, SharedEngine, WriteError};
use hashmere_format::region::kind;
use hashmere_mem::MapMem;
use hashmere_os::backoff::Backoff;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The region, and what was read from it once.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) region: Region,
    pub(crate) geometry: Geometry,
    pub(crate) client: ClientId,
    pub(crate) clock: u64,
    store: Arc<SharedEngine>,
    /// When a thread of this process waited last for a ring, and got none.
    in_vain: Mutex<Option<Instant>>,
}

/// How long a thread waits for a ring of one that is ending, and for how long after that in vain no other does.
pub(crate) const ENDING: Duration = Duration::from_secs(1);
const IN_VAIN: Duration = Duration::from_secs(10);

impl Handle {
    /// How long to sleep, again and again, until a ring may have been given back by a thread that is ending.
    pub(crate) fn wait_for_endings(&self) -> Backoff {
        let in_vain = *self.in_vain.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = in_vain.is_some_and(|then| then.elapsed() < IN_VAIN);
        Backoff::new(if lately { Duration::ZERO } else { ENDING })
    }

    /// No thread was ending.
    pub(crate) fn waited_in_vain(&self) {
        let mut in_vain = self.in_vain.lock().unwrap_or_else(PoisonError::into_inner);
        if in_vain.is_none_or(|then| then.elapsed() >= IN_VAIN) {
            *in_vain = Some(Instant::now());
        }
    }

    pub(crate) fn existing(store: &Arc<SharedEngine>, name: &str) -> Result<Handle, LogError> {
        let region = store.open_region(kind::LOG, name.as_bytes())?;
        let region = region.ok_or_else(|| LogError::NotFound(name.into()))?;
        Handle::new(store, region)
    }

    pub(crate) fn open(store: &Arc<SharedEngine>, name: &str, options: &LogOptions) -> Result<Handle, LogError> {
        let geometry = options.geometry().ok_or(LogError::BadOption(
            "a log has 1 to 1024 rings of at most 32 MiB each, and a history of at most 1 TiB",
        ))?;
        loop {
            match Handle::existing(store, name) {
                Err(LogError::NotFound(_)) => {}
                other => return other,
            }
            let fill = |mem: &MapMem, base: u64| geometry.format(mem, base, timestamp::choose(), Level::Trace as u64);
            let made = store.create_region(kind::LOG, name.as_bytes(), geometry.size(), fill);
            if let Some(region) = made.map_err(|error| LogError::no_room(error, geometry.size()))? {
                return Handle::new(store, region);
            }
        }
    }

    fn new(store: &Arc<SharedEngine>, region: Region) -> Result<Handle, LogError> {
        let geometry = Geometry::read(region.mem(), region.offset(), region.len())?;
        let client = store.client()?;
        let clock =
            LogCore { mem: region.mem(), base: region.offset(), geometry: &geometry }.get(crate::layout::at::CLOCK);
        Ok(Handle { region, geometry, client, clock, store: store.clone(), in_vain: Mutex::new(None) })
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> LogCore<'_, MapMem> {
        LogCore { mem: self.region.mem(), base: self.region.offset(), geometry: &self.geometry }
    }

    pub(crate) fn store(&self) -> &Arc<SharedEngine> {
        &self.store
    }
}

impl Liveness for Handle {
    fn is_gone(&self, client: ClientId) -> Result<bool, WriteError> {
        self.store.is_gone(client)
    }
}
