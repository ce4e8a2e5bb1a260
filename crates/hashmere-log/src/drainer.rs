//! A thread that drains, until it is stopped or the process exits.

use crate::error::LogError;
use crate::handle::Handle;
use crate::manual_drainer::{take_role, ManualDrainer};
use crate::sink::Sink;
use hashmere_os::process::at_exit;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// After an output failed it is tried again this often.
const RETRY: Duration = Duration::from_millis(100);
/// Who waits for the role looks this often.
const STANDBY: Duration = Duration::from_millis(50);
/// How long the exit of the process waits for the rest to be drained.
const EXIT: Duration = Duration::from_secs(5);

/// Drains a log in a thread of this process. Stopping, dropping it, and the exit of the process (not its death) drain
/// the rest.
#[derive(Debug)]
pub struct Drainer {
    work: Arc<Work>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Work {
    handle: Arc<Handle>,
    stop: AtomicBool,
    active: AtomicBool,
    end: Mutex<Option<Result<u64, LogError>>>,
    ended: Condvar,
}

/// Drainers of this process, for its exit.
static DRAINERS: Mutex<Vec<Weak<Work>>> = Mutex::new(Vec::new());

impl Drainer {
    pub(crate) fn start(handle: Arc<Handle>, sink: Sink, standby: bool) -> Result<Drainer, LogError> {
        let drain = match take_role(&handle) {
            Ok(()) => Ok(ManualDrainer::with_role(handle.clone(), sink)?),
            Err(LogError::Taken { .. }) if standby => Err(sink),
            Err(error) => return Err(error),
        };
        let work = Arc::new(Work {
            handle,
            stop: AtomicBool::new(false),
            active: AtomicBool::new(drain.is_ok()),
            end: Mutex::new(None),
            ended: Condvar::new(),
        });
        register(&work);
        let worker = work.clone();
        let thread = std::thread::Builder::new().name("hashmere-log".into()).spawn(move || worker.run(drain));
        let thread = thread.map_err(LogError::output("start the thread of the drainer"))?;
        Ok(Drainer { work, thread: Some(thread) })
    }

    /// Whether it drains: not yet, if it waits for another one, and not any more if it failed.
    pub fn is_active(&self) -> bool {
        self.work.active.load(Ordering::Acquire)
    }

    /// Drains the rest and ends. Returns how many lines this drainer has taken in all.
    ///
    /// # Errors
    /// The last one, if lines could not be delivered: they stay in the log.
    pub fn stop(mut self) -> Result<u64, LogError> {
        self.end()
    }

    fn end(&mut self) -> Result<u64, LogError> {
        let Some(thread) = self.thread.take() else { return Ok(0) };
        if !self.work.handle.region.is_ours() {
            // A forked child has no such thread.
            return Ok(0);
        }
        self.work.tell_to_stop();
        let _ = thread.join();
        let end = self.work.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        end.unwrap_or(Ok(0))
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn register(work: &Arc<Work>) {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| at_exit(drain_the_rest));
    let mut drainers = DRAINERS.lock().unwrap_or_else(PoisonError::into_inner);
    drainers.retain(|work| work.strong_count() > 0);
    drainers.push(Arc::downgrade(work));
}

extern "C" fn drain_the_rest() {
    // The holder of the lock may be a thread that a fork has left behind.
    let Ok(drainers) = DRAINERS.try_lock() else { return };
    for work in drainers.iter().filter_map(Weak::upgrade).filter(|work| work.handle.region.is_ours()) {
        work.tell_to_stop();
        let end = work.end.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = work.ended.wait_timeout_while(end, EXIT, |end| end.is_none());
    }
}

impl Work {
    fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.handle.core().wake_drainer();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn run(&self, drain: Result<ManualDrainer, Sink>) {
        let end = match self.role(drain) {
            Ok(Some(drain)) => drain.recover_rings().and_then(|()| self.drain(drain)),
            Ok(None) => Ok(0),
            Err(error) => Err(error),
        };
        self.active.store(false, Ordering::Release);
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.ended.notify_all();
    }

    /// Waits for the role.
    fn role(&self, drain: Result<ManualDrainer, Sink>) -> Result<Option<ManualDrainer>, LogError> {
        let sink = match drain {
            Ok(drain) => return Ok(Some(drain)),
            Err(sink) => sink,
        };
        while !self.is_stopped() {
            match take_role(&self.handle) {
                Ok(()) => {
                    self.active.store(true, Ordering::Release);
                    return ManualDrainer::with_role(self.handle.clone(), sink).map(Some);
                }
                Err(LogError::Taken { .. }) if !self.handle.region.is_dropped() => std::thread::sleep(STANDBY),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn drain(&self, mut drain: ManualDrainer) -> Result<u64, LogError> {
        let mut lines = 0;
        loop {
            match drain.poll() {
                Ok((some, more)) => {
                    lines += some;
                    if self.is_stopped() {
                        return drain.finish().map(|rest| lines + rest);
                    }
                    if !more {
                        drain.wait(Duration::MAX);
                    }
                }
                Err(LogError::Output { source, .. }) if can_recover(&source) && !self.is_stopped() => {
                    std::thread::sleep(RETRY);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A disk may have room again; a reader that went away does not come back.
fn can_recover(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::BrokenPipe
}
