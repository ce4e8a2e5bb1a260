//! `hashmere_queue.h`: pools, queues, endpoints.

use crate::abi::{HmElement, HmPoolOptions, HmPoolStats, HmQueueOptions};
use crate::args::{Filled, Input, Label, Maybe, Open, Out, Owned, Plain, Shared};
use crate::failure::{guard, Failure};
use crate::handle::HmStore;
use crate::result::{ABSENT, OK, QUEUE_FULL, TIMEOUT};
use hashmere_queue::{Element, Endpoint, Kind, OnDeath, Pool, PoolOptions, Queue, QueueOptions, ReadyFd};
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Elements that an endpoint holds one by one.
const PLACES: usize = 64;

/// `hm_pool`.
pub struct HmPool(Pool);
/// `hm_queue`.
pub struct HmQueue(pub(crate) Queue);
/// `hm_ready_fd`.
pub struct HmReadyFd(ReadyFd);

/// `hm_endpoint`.
pub struct HmEndpoint {
    /// Borrow from `endpoint`; dropped first, as fields are dropped in order.
    elements: [Option<Element<'static>>; PLACES],
    /// Free places, one bit each.
    free: u64,
    /// On the heap, and never moved from there.
    endpoint: Box<Endpoint>,
}

impl HmEndpoint {
    /// Keeps an element, and tells the caller what it is.
    #[inline(always)]
    fn keep(&mut self, mut element: Element<'static>) -> HmElement {
        // The endpoint of the library holds no more than there are places.
        let place = (self.free.trailing_zeros() as usize).min(PLACES - 1);
        self.free &= !(1 << place);
        let (data, len) = (element.as_mut_ptr().cast::<c_void>(), element.len());
        let told = HmElement { data, len, index: element.index(), slot: place as u32 + 1 };
        self.elements[place] = Some(element);
        told
    }

    /// Takes the element that the caller means.
    #[inline(always)]
    pub(crate) fn let_go(&mut self, which: &HmElement) -> Result<Element<'static>, Failure> {
        let place = (which.slot as usize).wrapping_sub(1);
        let held = self.elements.get_mut(place).filter(|held| held.as_ref().map(Element::index) == Some(which.index));
        match held.and_then(Option::take) {
            Some(element) => {
                self.free |= 1 << place;
                Ok(element)
            }
            None => Err(Failure::Argument("element", "this endpoint does not hold it (any more)")),
        }
    }

    #[inline(always)]
    pub(crate) fn popped(&mut self, popped: Option<Element<'_>>) -> Option<HmElement> {
        // SAFETY: it borrows the endpoint in the box, which does not move, and is dropped before it.
        popped.map(|element| self.keep(unsafe { std::mem::transmute::<Element<'_>, Element<'static>>(element) }))
    }

    /// Keeps an element that could not be pushed, where it was before.
    #[inline(always)]
    pub(crate) fn keep_again(&mut self, back: Element<'static>, place: u32) {
        let place = (place as usize).wrapping_sub(1).min(PLACES - 1);
        self.free &= !(1 << place);
        self.elements[place] = Some(back);
    }

    /// The endpoint for its batch: alone, as Rust wants it.
    pub(crate) fn whole(&mut self) -> Result<&mut Endpoint, Failure> {
        if self.free != u64::MAX {
            return Err(Failure::InvalidState(
                "the endpoint holds elements that were popped alone; push them or give them back first",
            ));
        }
        Ok(&mut self.endpoint)
    }
}

/// The endpoint, apart from what it keeps.
#[inline(always)]
pub(crate) fn endpoint_of<'a>(endpoint: &HmEndpoint) -> &'a Endpoint {
    // SAFETY: it is in a box of its own for as long as the call takes; what is changed during the call is beside it.
    unsafe { &*ptr::from_ref::<Endpoint>(&endpoint.endpoint) }
}

/// Tells the caller what was popped.
#[inline(always)]
fn told(popped: Option<HmElement>, out: &Out<HmElement>, nothing: c_int) -> c_int {
    let Some(element) = popped else { return nothing };
    out.put(element);
    OK
}

pub(crate) fn none() -> HmElement {
    HmElement { data: ptr::null_mut(), len: 0, index: 0, slot: 0 }
}

/// Names of queues for elements of crashed processes, each once forever: options of the queues' crate hold static ones.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn for_ever(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into());
    names.push(kept);
    kept
}

fn pool_options(given: &HmPoolOptions) -> Result<PoolOptions, Failure> {
    let mut options = PoolOptions::new(given.elements, given.bytes);
    if given.max_queues != 0 {
        options = options.max_queues(given.max_queues);
    }
    if given.max_endpoints != 0 {
        options = options.max_endpoints(given.max_endpoints);
    }
    if given.batch != 0 {
        options = options.batch(given.batch);
    }
    if !given.on_death.is_null() {
        // SAFETY: the options are an argument of a call, and so is what they lead to.
        let name = unsafe { Label::read("options.on_death", given.on_death) }?;
        options = options.on_death(OnDeath::Queue(for_ever(name)));
    }
    Ok(options)
}

fn queue_options(given: &HmQueueOptions) -> Result<QueueOptions, Failure> {
    let mut options = QueueOptions::new();
    let kind = match given.kind {
        0 => None,
        1 => Some(Kind::Mpmc),
        2 => Some(Kind::Mpsc),
        3 => Some(Kind::Spsc),
        _ => return Err(Failure::Argument("options", "`kind` is none of hm_queue_kind")),
    };
    if let Some(kind) = kind {
        options = options.kind(kind);
    }
    Ok(if given.bound == 0 { options } else { options.bound(given.bound) })
}

export! {
    /// See `hashmere_queue.h`.
    fn hm_pool_open(
        store: Open = (store: *mut HmStore),
        name: Label = (name: *const c_char),
        options: Input<HmPoolOptions> = (options: *const HmPoolOptions),
        pool: Out<*mut HmPool> = (pool: *mut *mut HmPool),
    ) {
        pool.put(ptr::null_mut());
        // Without a structure there is no size either.
        let opened = if options.size == 0 { Pool::open(store, name)? } else { pool_options(&options)?.open(store, name)? };
        pool.put(Box::into_raw(Box::new(HmPool(opened))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_pool_remove(store: Open = (store: *mut HmStore), name: Label = (name: *const c_char)) {
        Ok(if Pool::remove(store, name)? { OK } else { ABSENT })
    }

    /// See `hashmere_queue.h`.
    fn hm_pool_recover(pool: Shared = (pool: *mut HmPool), given_back: Maybe<u64> = (given_back: *mut u64)) {
        given_back.put(pool.0.recover()?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_pool_get_stats(pool: Shared = (pool: *mut HmPool), stats: Filled<HmPoolStats> = (stats: *mut HmPoolStats)) {
        let s = pool.0.stats();
        stats.put(HmPoolStats {
            size: 0,
            elements: s.elements,
            bytes: s.element_bytes,
            bytes_all: s.bytes,
            endpoints: s.endpoints,
            max_endpoints: s.max_endpoints,
            queues: s.queues.len() as u64,
            max_queues: s.max_queues,
            held: s.held,
            recovered: s.recovered,
        });
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_open(
        pool: Shared = (pool: *mut HmPool),
        name: Label = (name: *const c_char),
        options: Input<HmQueueOptions> = (options: *const HmQueueOptions),
        queue: Out<*mut HmQueue> = (queue: *mut *mut HmQueue),
    ) {
        queue.put(ptr::null_mut());
        let opened = pool.0.queue_with(name, queue_options(&options)?)?;
        queue.put(Box::into_raw(Box::new(HmQueue(opened))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_len(queue: Shared = (queue: *mut HmQueue), count: Out<u64> = (count: *mut u64)) {
        count.put(queue.0.len());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_ready_fd_open(
        queue: Shared = (queue: *mut HmQueue),
        ready_fd: Out<*mut HmReadyFd> = (ready_fd: *mut *mut HmReadyFd),
        fd: Out<c_int> = (fd: *mut c_int),
    ) {
        ready_fd.put(ptr::null_mut());
        let made = queue.0.ready_fd()?;
        fd.put(made.as_raw_fd());
        ready_fd.put(Box::into_raw(Box::new(HmReadyFd(made))));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_ready_fd_acknowledge(ready_fd: Shared = (ready_fd: *mut HmReadyFd)) {
        ready_fd.0.acknowledge();
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_endpoint_open(pool: Shared = (pool: *mut HmPool), endpoint: Out<*mut HmEndpoint> = (endpoint: *mut *mut HmEndpoint)) {
        endpoint.put(ptr::null_mut());
        let taken = Box::new(pool.0.endpoint()?);
        let made = HmEndpoint { elements: [const { None }; PLACES], free: u64::MAX, endpoint: taken };
        endpoint.put(Box::into_raw(Box::new(made)));
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_pop(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        from: Shared = (from: *mut HmQueue),
        element: Out<HmElement> = (element: *mut HmElement),
    ) {
        let popped = endpoint_of(endpoint).pop(&from.0)?;
        Ok(told(endpoint.popped(popped), &element, ABSENT))
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_pop_wait(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        from: Shared = (from: *mut HmQueue),
        timeout_ms: Plain = (timeout_ms: u64),
        element: Out<HmElement> = (element: *mut HmElement),
    ) {
        let popped = endpoint_of(endpoint).pop_wait(&from.0, Duration::from_millis(timeout_ms))?;
        Ok(told(endpoint.popped(popped), &element, TIMEOUT))
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_push(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        element: Owned = (element: *mut HmElement),
        to: Shared = (to: *mut HmQueue),
    ) {
        let held = endpoint.let_go(element)?;
        let out = std::mem::replace(element, none());
        match held.push(&to.0)? {
            None => Ok(OK),
            Some(back) => {
                endpoint.keep_again(back, out.slot);
                *element = out;
                Ok(QUEUE_FULL)
            }
        }
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_give_back(endpoint: Owned = (endpoint: *mut HmEndpoint), element: Owned = (element: *mut HmElement)) {
        drop(endpoint.let_go(element)?);
        *element = none();
        Ok(OK)
    }
}

/// Drops what one of the calls above made.
///
/// # Safety
/// NULL, or made by `Box::into_raw` and not used any more.
pub(crate) unsafe fn close<T>(opened: *mut T) {
    let close = || {
        if !opened.is_null() {
            // SAFETY: as ours.
            drop(unsafe { Box::from_raw(opened) });
        }
        Ok(OK)
    };
    // SAFETY: NULL is allowed.
    unsafe { guard(ptr::null_mut(), close) };
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_pool_close(pool: *mut HmPool) {
    // SAFETY: as the header says.
    unsafe { close(pool) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_queue_close(queue: *mut HmQueue) {
    // SAFETY: as the header says.
    unsafe { close(queue) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_ready_fd_close(ready_fd: *mut HmReadyFd) {
    // SAFETY: as the header says.
    unsafe { close(ready_fd) }
}

/// See `hashmere_queue.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_endpoint_close(endpoint: *mut HmEndpoint) {
    // SAFETY: as the header says.
    unsafe { close(endpoint) }
}
