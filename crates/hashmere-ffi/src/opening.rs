//! Opening and closing.

use crate::abi::{HmOptions, HmProgress};
use crate::args::{Input, Name, Open, Out, Plain};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::result::{ABSENT, BUFFER_TOO_SMALL, OK};
use hashmere::{Mode, Options, Store};
use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

const NO_CREATE: u64 = 1 << 0;
const CREATE_NEW: u64 = 1 << 1;
const READ_ONLY: u64 = 1 << 2;
const STRICT: u64 = 1 << 3;
const CACHE: u64 = 1 << 4;
const DURABLE: u64 = 1 << 5;
const REMOVE_ON_LAST_CLOSE: u64 = 1 << 6;
const FOREIGN_OWNER: u64 = 1 << 7;
const NO_VALUES: u64 = 1 << 8;
const FEED_VALUES: u64 = 1 << 9;
const KNOWN: u64 = 2 * FEED_VALUES - 1;

/// A callback with its `user`. The engine keeps it for no longer than opening takes.
pub(crate) struct Told(pub(crate) HmProgress, pub(crate) *mut c_void);
// SAFETY: it is called by the thread that opens, and dropped by it.
unsafe impl Send for Told {}
// SAFETY: as above.
unsafe impl Sync for Told {}

impl Told {
    pub(crate) fn tell(&self, done: u64, of: u64) {
        (self.0)(self.1, done, of);
    }
}

/// The engine's options from those of C.
pub(crate) fn options_from(given: &HmOptions) -> Result<Options, Failure> {
    let bad = |what| Err(Failure::Argument("options", what));
    let has = |flag| given.flags & flag != 0;
    if given.flags & !KNOWN != 0 {
        return bad("`flags` has bits that this version of the library does not know");
    }
    if has(STRICT) && has(CACHE) {
        return bad("HM_STRICT and HM_CACHE exclude each other");
    }
    if has(CREATE_NEW) && (has(NO_CREATE) || has(READ_ONLY)) {
        return bad("HM_CREATE_NEW creates a store, HM_NO_CREATE and HM_READ_ONLY open one; choose");
    }
    if has(NO_VALUES) && given.fixed_value_len != 0 {
        return bad("HM_NO_VALUES and `fixed_value_len` exclude each other");
    }
    let mut options = Options::new();
    let mut when = |condition: bool, set: fn(Options, &HmOptions) -> Options| {
        if condition {
            options = set(std::mem::take(&mut options), given);
        }
    };
    when(has(NO_CREATE), |o, _| o.create(false));
    when(has(CREATE_NEW), |o, _| o.create_new(true));
    when(has(READ_ONLY), |o, _| o.read_only());
    when(has(STRICT), |o, _| o.mode(Mode::Strict));
    when(has(CACHE), |o, _| o.mode(Mode::Cache));
    when(has(DURABLE), |o, _| o.durable());
    when(has(REMOVE_ON_LAST_CLOSE), |o, _| o.remove_on_last_close(true));
    when(has(FOREIGN_OWNER), |o, _| o.allow_foreign_owner());
    when(has(NO_VALUES), |o, _| o.fixed_value_len(0));
    when(given.max_bytes != 0, |o, g| o.max_bytes(g.max_bytes));
    when(given.expected_items != 0, |o, g| o.expected_items(g.expected_items));
    when(given.busy_timeout_ms != 0, |o, g| o.busy_timeout(Duration::from_millis(g.busy_timeout_ms)));
    when(given.sync_every_ms != 0, |o, g| o.sync_every(Duration::from_millis(g.sync_every_ms)));
    when(given.segment_bytes != 0, |o, g| o.segment_bytes(g.segment_bytes));
    when(given.leaf_bytes != 0, |o, g| o.leaf_bytes(g.leaf_bytes));
    when(given.fixed_key_len != 0, |o, g| o.fixed_key_len(g.fixed_key_len));
    when(given.fixed_value_len != 0, |o, g| o.fixed_value_len(g.fixed_value_len));
    when(given.permissions != 0, |o, g| o.permissions(g.permissions));
    when(given.feed != 0, |o, g| o.feed(g.feed));
    when(has(FEED_VALUES), |o, _| o.feed_values(true));
    when(given.origin != 0, |o, g| o.origin(g.origin));
    if let Some(on_recovery) = given.on_recovery {
        let told = Told(on_recovery, given.on_recovery_user);
        options = options.on_recovery(move |done, of| told.tell(done, of));
    }
    Ok(options)
}

/// Room for text with a NUL at its end.
pub(crate) struct Text;
impl Text {
    pub(crate) unsafe fn read<'a>(name: &'static str, text: *mut c_char, room: usize) -> Result<&'a mut [u8], Failure> {
        // SAFETY: as for any buffer.
        unsafe { crate::args::Buffer::read(name, text.cast(), room) }
    }
}

fn put_path(path: &Path, buffer: &mut [u8], len: &Out<usize>) -> c_int {
    put_text(path.as_os_str().as_bytes(), buffer, len)
}

pub(crate) fn put_text(bytes: &[u8], buffer: &mut [u8], len: &Out<usize>) -> c_int {
    len.put(bytes.len());
    match buffer.get_mut(..=bytes.len()) {
        None => BUFFER_TOO_SMALL,
        Some(room) => {
            room[..bytes.len()].copy_from_slice(bytes);
            room[bytes.len()] = 0;
            OK
        }
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_open(
        name: Name = (name: *const c_char),
        options: Input<HmOptions> = (options: *const HmOptions),
        store: Out<*const HmStore> = (store: *mut *const HmStore),
    ) {
        store.put(std::ptr::null());
        let opened = options_from(&options)?.open(name)?;
        store.put(HmStore::open(opened));
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_close(tag: Plain = (store: *mut HmStore)) {
        if tag.is_null() {
            return Ok(OK);
        }
        // SAFETY: the caller has it from `hm_open`, and uses it no more.
        drop(unsafe { HmStore::close(tag) }?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_remove(name: Name = (name: *const c_char)) {
        Ok(if Store::remove(name)? { OK } else { ABSENT })
    }

    /// See `hashmere.h`.
    fn hm_path_of(
        name: Name = (name: *const c_char),
        buffer: Text = (buffer: *mut c_char, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(put_path(&Store::path_of(name)?, buffer, &len))
    }

    /// See `hashmere.h`.
    fn hm_path(
        store: Open = (store: *mut HmStore),
        buffer: Text = (buffer: *mut c_char, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(put_path(store.path(), buffer, &len))
    }

    /// See `hashmere.h`.
    fn hm_is_read_only(store: Open = (store: *mut HmStore)) {
        Ok(if store.is_read_only() { OK } else { ABSENT })
    }
}
