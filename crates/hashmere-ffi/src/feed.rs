//! `hashmere_feed.h`: the changes of a store.

use crate::args::{Bytes, Filled, Input, Label, Open, Out, Owned, Plain};
use crate::failure::Failure;
use crate::feed_abi::{HmFeedEvent, HmFeedInfo, HmFeedOptions};
use crate::handle::HmStore;
use crate::opening::{put_text, Text};
use crate::queue::close;
use crate::result::{ABSENT, OK, TIMEOUT};
use hashmere_feed::{disable, enable, Event, Feed, FeedError, FeedOptions, FeedStart, ReadyFd};
use std::ffi::{c_char, c_int, CStr, CString};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

const WITH_VALUES: u64 = 1;

/// `hm_feed`.
pub struct HmFeed {
    feed: Feed,
    ready: Option<ReadyFd>,
    /// The caller has pointers into what was returned last, and into the text of its token.
    last: Option<(Event, CString)>,
}

/// Where a consumer begins; NULL: now.
struct Start;
impl Start {
    unsafe fn read<'a>(name: &'static str, start: *const c_char) -> Result<&'a str, Failure> {
        if start.is_null() {
            return Ok("now");
        }
        // SAFETY: as ours.
        unsafe { Label::read(name, start) }
    }
}

fn start_of(text: &str) -> Result<FeedStart, FeedError> {
    match text {
        "now" => Ok(FeedStart::Now),
        "start" => Ok(FeedStart::Start),
        token => Ok(FeedStart::At(token.parse()?)),
    }
}

fn options_of(given: &HmFeedOptions) -> Result<FeedOptions, Failure> {
    if given.flags & !WITH_VALUES != 0 {
        return Err(Failure::Argument("options", "`flags` has bits that this version of the library does not know"));
    }
    // SAFETY: the options are an argument of a call, and so is what they lead to.
    let prefix = unsafe { Bytes::read("options.prefix", given.prefix.data, given.prefix.len) }?;
    Ok(FeedOptions::new().values(given.flags & WITH_VALUES != 0).prefix(prefix))
}

export! {
    /// See `hashmere_feed.h`.
    fn hm_feed_enable(
        store: Open = (store: *mut HmStore),
        bytes: Plain = (bytes: u64),
        values: Plain = (values: c_int),
    ) {
        enable(store, bytes, values != 0)?;
        Ok(OK)
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_disable(store: Open = (store: *mut HmStore)) {
        Ok(if disable(store)? { OK } else { ABSENT })
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_get_info(store: Open = (store: *mut HmStore), info: Filled<HmFeedInfo> = (info: *mut HmFeedInfo)) {
        let Some(known) = hashmere_feed::info(store) else { return Ok(ABSENT) };
        info.put(known.into());
        Ok(OK)
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_open(
        store: Open = (store: *mut HmStore),
        start: Start = (start: *const c_char),
        options: Input<HmFeedOptions> = (options: *const HmFeedOptions),
        feed: Out<*mut HmFeed> = (feed: *mut *mut HmFeed),
    ) {
        feed.put(ptr::null_mut());
        let opened = Feed::open(store, start_of(start)?, options_of(&options)?)?;
        feed.put(Box::into_raw(Box::new(HmFeed { feed: opened, ready: None, last: None })));
        Ok(OK)
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_next(
        feed: Owned = (feed: *mut HmFeed),
        timeout_ms: Plain = (timeout_ms: u64),
        event: Out<HmFeedEvent> = (event: *mut HmFeedEvent),
    ) {
        let Some(next) = feed.feed.next_within(Duration::from_millis(timeout_ms))? else {
            if let Some(ready) = &feed.ready {
                ready.arm(&feed.feed);
            }
            return Ok(TIMEOUT);
        };
        let token = next.token().map(ToString::to_string).unwrap_or_default();
        // A token has no NUL.
        let (next, token) = feed.last.insert((next, CString::new(token).unwrap_or_default()));
        event.put(HmFeedEvent::of(next, token as &CStr));
        Ok(OK)
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_token(
        feed: Owned = (feed: *mut HmFeed),
        buffer: Text = (buffer: *mut c_char, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        Ok(put_text(feed.feed.token().to_string().as_bytes(), buffer, &len))
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_ready_fd(feed: Owned = (feed: *mut HmFeed), fd: Out<c_int> = (fd: *mut c_int)) {
        let ready = match &mut feed.ready {
            Some(ready) => ready,
            none => none.insert(feed.feed.ready_fd()?),
        };
        fd.put(ready.as_raw_fd());
        Ok(OK)
    }

    /// See `hashmere_feed.h`.
    fn hm_feed_lag(feed: Owned = (feed: *mut HmFeed), lag: Out<u64> = (lag: *mut u64)) {
        lag.put(feed.feed.lag());
        Ok(OK)
    }
}

/// See `hashmere_feed.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_feed_close(feed: *mut HmFeed) {
    // SAFETY: as the header says.
    unsafe { close(feed) }
}
