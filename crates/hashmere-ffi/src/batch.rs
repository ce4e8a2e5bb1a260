//! `hashmere_queue.h`: moves of several elements, or of two at once; waits and looks that take none.

use crate::abi::HmElement;
use crate::args::{Buffer, Out, Owned, Plain, Shared};
use crate::queue::{endpoint_of, none, HmEndpoint, HmQueue};
use crate::reading::fits;
use crate::result::{ABSENT, OK, QUEUE_FULL, TIMEOUT};
use std::ffi::c_void;
use std::time::Duration;

export! {
    /// See `hashmere_queue.h`.
    fn hm_queue_pop_many(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        from: Shared = (from: *mut HmQueue),
        max: Plain = (max: u64),
        count: Out<u64> = (count: *mut u64),
    ) {
        count.put(endpoint.whole()?.pop_many(&from.0, max)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_push_many(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        to: Shared = (to: *mut HmQueue),
        max: Plain = (max: u64),
        count: Out<u64> = (count: *mut u64),
    ) {
        count.put(endpoint.whole()?.push_many(&to.0, max)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_batch_len(endpoint: Owned = (endpoint: *mut HmEndpoint), count: Out<u64> = (count: *mut u64)) {
        count.put(endpoint.whole()?.batch_len());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_batch_at(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        index: Plain = (index: u64),
        data: Out<*mut c_void> = (data: *mut *mut c_void),
        len: Out<usize> = (len: *mut usize),
    ) {
        let endpoint = endpoint.whole()?;
        if index >= endpoint.batch_len() {
            return Ok(ABSENT);
        }
        let bytes = endpoint.batch_mut(index);
        data.put(bytes.as_mut_ptr().cast());
        len.put(bytes.len());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_push_pop(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        element: Owned = (element: *mut HmElement),
        to: Shared = (to: *mut HmQueue),
        from: Shared = (from: *mut HmQueue),
    ) {
        let held = endpoint.let_go(element)?;
        let out = std::mem::replace(element, none());
        match endpoint_of(endpoint).push_pop(held, &to.0, &from.0)? {
            Ok(popped) => {
                let Some(popped) = endpoint.popped(popped) else { return Ok(ABSENT) };
                *element = popped;
                Ok(OK)
            }
            Err(back) => {
                endpoint.keep_again(back, out.slot);
                *element = out;
                Ok(QUEUE_FULL)
            }
        }
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_push_pop_many(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        to: Shared = (to: *mut HmQueue),
        from: Shared = (from: *mut HmQueue),
        max: Plain = (max: u64),
        pushed: Out<u64> = (pushed: *mut u64),
        popped: Out<u64> = (popped: *mut u64),
    ) {
        let (there, back) = endpoint.whole()?.push_pop_many(&to.0, &from.0, max)?;
        pushed.put(there);
        popped.put(back);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_drain(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        from: Shared = (from: *mut HmQueue),
        to: Shared = (to: *mut HmQueue),
        moved: Out<u64> = (moved: *mut u64),
    ) {
        moved.put(endpoint.whole()?.drain(&from.0, &to.0)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_wait(
        endpoint: Owned = (endpoint: *mut HmEndpoint),
        from: Shared = (from: *mut HmQueue),
        timeout_ms: Plain = (timeout_ms: u64),
    ) {
        let is_there = endpoint_of(endpoint).wait(&from.0, Duration::from_millis(timeout_ms))?;
        Ok(if is_there { OK } else { TIMEOUT })
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_peek(
        queue: Shared = (queue: *mut HmQueue),
        buffer: Buffer = (buffer: *mut c_void, room: usize),
        len: Out<usize> = (len: *mut usize),
    ) {
        let Some(bytes) = queue.0.peek() else { return Ok(ABSENT) };
        if let Some(room) = buffer.get_mut(..bytes.len()) {
            room.copy_from_slice(&bytes);
        }
        len.put(bytes.len());
        Ok(fits(bytes.len(), buffer))
    }
}
