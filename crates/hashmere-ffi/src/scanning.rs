//! All keys.

use crate::abi::{HmFilter, HmPair, HmShow, HmVisitor};
use crate::args::{Bytes, Callback, Input, Maybe, Open, Out, Plain};
use crate::conditions::Asked;
use crate::failure::{guard, Failure};
use crate::handle::HmStore;
use crate::result::{ABSENT, END, OK};
use hashmere::{Cursor, Filter, Pair, Scan, Store};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const KEYS_ONLY: u64 = 1;

/// `hm_scan`.
pub struct HmScan {
    /// Borrows from `store`; dropped first, as fields are dropped in order.
    scan: Scan<'static>,
    /// What was returned last: the caller has pointers into it.
    pair: Option<Pair>,
    /// Keeps the file open. Shared, so that it stays where it is.
    _store: Arc<Store>,
}

/// A running scan.
struct Running;
impl Running {
    unsafe fn read<'a>(name: &'static str, scan: *mut HmScan) -> Result<&'a mut HmScan, Failure> {
        // SAFETY: NULL, or made by `hm_scan_open` and not closed; one thread at a time uses it.
        unsafe { scan.as_mut() }.ok_or_else(|| Failure::Argument(name, "it is NULL; open one with hm_scan_open"))
    }
}

pub(crate) fn filter_from(given: &HmFilter) -> Result<Filter, Failure> {
    if given.flags & !KEYS_ONLY != 0 {
        return Err(Failure::Argument("filter", "`flags` has bits that this version of the library does not know"));
    }
    // SAFETY: the filter is an argument of a call, and so is what it leads to.
    let (prefix, glob, regex) = unsafe {
        let prefix = Bytes::read("filter.prefix", given.prefix.data, given.prefix.len)?;
        let glob = Bytes::read("filter.glob", given.glob.data, given.glob.len)?;
        (prefix, glob, Bytes::read("filter.regex", given.regex.data, given.regex.len)?)
    };
    let mut filter = Filter::all().prefix(prefix);
    if !given.glob.data.is_null() {
        filter = filter.glob(glob)?;
    }
    if !given.regex.data.is_null() {
        let regex = std::str::from_utf8(regex);
        let regex = regex.map_err(|_| Failure::Argument("filter.regex", "it is not UTF-8; `(?-u)\\xff` is a byte"))?;
        filter = filter.regex(regex)?;
    }
    if (given.part, given.parts) != (0, 0) {
        filter = filter.part(given.part, given.parts)?;
    }
    Ok(if given.flags & KEYS_ONLY != 0 { filter.keys_only() } else { filter })
}

/// A callback that may be called from any thread.
struct Show(HmShow, *mut c_void);
// SAFETY: the header says that it is called from several threads at the same time.
unsafe impl Sync for Show {}

impl Show {
    /// Whether to go on.
    fn show(&self, pair: &Pair) -> bool {
        (self.0)(self.1, &HmPair::new(&pair.key, &pair.value, pair.metadata)) == 0
    }
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_cursor_of | hm_cursor_of_at(store, key, cursor: Out<u64> = (cursor: *mut u64)) {
        let Some(found) = store.cursor_of(key)? else { return Ok(ABSENT) };
        cursor.put(found.0);
        Ok(OK)
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_update_each(
        store: Open = (store: *mut HmStore),
        filter: Input<HmFilter> = (filter: *const HmFilter),
        visitor: Callback = (visitor: Option<HmVisitor>),
        user: Plain = (user: *mut c_void),
        changed: Maybe<u64> = (changed: *mut u64),
    ) {
        let mut asked = Asked::new(visitor, user);
        let done = store.update_each(filter_from(&filter)?, |key, item| asked.ask_unless_failed(key, item))?;
        changed.put(done);
        asked.failed().map_or(Ok(OK), Err)
    }

    /// See `hashmere.h`.
    fn hm_scan_open(
        store: Open = (store: *mut HmStore),
        filter: Input<HmFilter> = (filter: *const HmFilter),
        cursor: Plain = (cursor: u64),
        scan: Out<*mut HmScan> = (scan: *mut *mut HmScan),
    ) {
        let filter = filter_from(&filter)?;
        let store = Arc::new(store.clone());
        // SAFETY: the store does not move, is kept beside the scan, and dropped after it.
        let borrowed: &'static Store = unsafe { &*Arc::as_ptr(&store) };
        let running = HmScan { scan: borrowed.scan(Cursor(cursor), filter), pair: None, _store: store };
        scan.put(Box::into_raw(Box::new(running)));
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_scan_next(scan: Running = (scan: *mut HmScan), pair: Out<HmPair> = (pair: *mut HmPair)) {
        let Some(next) = scan.scan.next().transpose()? else { return Ok(END) };
        let next = scan.pair.insert(next);
        pair.put(HmPair::new(&next.key, &next.value, next.metadata));
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_scan_cursor(scan: Running = (scan: *mut HmScan), cursor: Out<u64> = (cursor: *mut u64)) {
        let Some(reached) = scan.scan.cursor() else { return Ok(END) };
        cursor.put(reached.0);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_parallel_scan(
        store: Open = (store: *mut HmStore),
        threads: Plain = (threads: usize),
        filter: Input<HmFilter> = (filter: *const HmFilter),
        show: Callback = (show: Option<HmShow>),
        user: Plain = (user: *mut c_void),
    ) {
        if !(1..=1024).contains(&threads) {
            return Err(Failure::Argument("threads", "it is not from 1 to 1024"));
        }
        let show = Show(show, user);
        let goes_on = AtomicBool::new(true);
        store.parallel_scan(threads, &filter_from(&filter)?, |pair| {
            if goes_on.load(Ordering::Relaxed) && !show.show(&pair) {
                goes_on.store(false, Ordering::Relaxed);
            }
        })?;
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_random(
        store: Open = (store: *mut HmStore),
        show: Callback = (show: Option<HmShow>),
        user: Plain = (user: *mut c_void),
    ) {
        let Some(pair) = store.random()? else { return Ok(ABSENT) };
        Show(show, user).show(&pair);
        Ok(OK)
    }
}

/// See `hashmere.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_scan_close(scan: *mut HmScan) {
    let close = || {
        if !scan.is_null() {
            // SAFETY: made by `hm_scan_open`, and not used any more.
            drop(unsafe { Box::from_raw(scan) });
        }
        Ok(OK)
    };
    // SAFETY: NULL is allowed.
    unsafe { guard(std::ptr::null_mut(), close) };
}
