//! Hot keys for the dashboard: sampled by a thread that exists as long as clients ask.

use hashmere::Store;
use hashmere_observe::{HotKeys, Sampler};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long samples are collected before they are shown.
const WINDOW: Duration = Duration::from_secs(2);
/// How long after the last question sampling goes on.
const AFTER: Duration = Duration::from_secs(5);

/// What was sampled last.
#[derive(Debug, Default)]
pub(crate) struct Hot {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When a client asked last.
    asked: Option<Instant>,
    /// There is a thread.
    is_sampled: bool,
    last: Option<Arc<HotKeys>>,
    /// Why there is nothing.
    error: Option<String>,
}

impl Hot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hot keys of the last seconds; `None`: sampling has just begun.
    ///
    /// # Errors
    /// Why the store cannot be sampled.
    pub(crate) fn ask(self: &Arc<Self>, store: &Store) -> Result<Option<Arc<HotKeys>>, String> {
        let mut state = self.state();
        state.asked = Some(Instant::now());
        if !state.is_sampled {
            let (hot, store) = (Arc::downgrade(self), store.clone());
            let thread = std::thread::Builder::new().name("hot keys".into()).spawn(move || run(&hot, &store));
            state.is_sampled = thread.map_err(|error| error.to_string()).map(|_| true)?;
        }
        state.error.take().map_or_else(|| Ok(state.last.clone()), Err)
    }
}

/// Samples until no client has asked for a while, or the server is gone.
fn run(hot: &Weak<Hot>, store: &Store) {
    let is_wanted = || hot.upgrade().is_some_and(|hot| hot.state().asked.is_some_and(|at| at.elapsed() < AFTER));
    loop {
        let sampled = Sampler::start(store).and_then(|mut sampler| {
            sampler.poll_for(WINDOW, || !is_wanted())?;
            Ok(sampler.hot_keys())
        });
        let Some(hot) = hot.upgrade() else { return };
        let mut state = hot.state();
        match sampled {
            Ok(keys) if state.asked.is_some_and(|at| at.elapsed() < AFTER) => state.last = Some(Arc::new(keys)),
            ended => {
                state.error = ended.err().map(|error| error.to_string());
                state.last = None;
                state.is_sampled = false;
                return;
            }
        }
    }
}
