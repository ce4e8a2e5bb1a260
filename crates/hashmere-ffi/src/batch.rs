//! `hashmere_queue.h`: moves of several elements, or of two at once; waits and looks that take none.

use crate::abi::HmElement;
use crate::arg::{Buffer, Out, Owned, Plain, Shared};
use crate::queue::{hand_of, none, HmHand, HmQueue};
use crate::reading::fits;
use crate::result::{ABSENT, OK, QUEUE_FULL, TIMEOUT};
use std::ffi::c_void;
use std::time::Duration;

entry! {
    /// See `hashmere_queue.h`.
    fn hm_pull_many(
        hand: Owned = (hand: *mut HmHand),
        from: Shared = (from: *mut HmQueue),
        max: Plain = (max: u64),
        count: Out<u64> = (count: *mut u64),
    ) {
        count.put(hand.whole()?.pull_many(&from.0, max)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_push_many(
        hand: Owned = (hand: *mut HmHand),
        to: Shared = (to: *mut HmQueue),
        max: Plain = (max: u64),
        count: Out<u64> = (count: *mut u64),
    ) {
        count.put(hand.whole()?.push_many(&to.0, max)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_batch_count(hand: Owned = (hand: *mut HmHand), count: Out<u64> = (count: *mut u64)) {
        count.put(hand.whole()?.batch_len());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_batch_at(
        hand: Owned = (hand: *mut HmHand),
        index: Plain = (index: u64),
        data: Out<*mut c_void> = (data: *mut *mut c_void),
        len: Out<usize> = (len: *mut usize),
    ) {
        let hand = hand.whole()?;
        if index >= hand.batch_len() {
            return Ok(ABSENT);
        }
        let bytes = hand.batch_mut(index);
        data.put(bytes.as_mut_ptr().cast());
        len.put(bytes.len());
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_push_pull(
        hand: Owned = (hand: *mut HmHand),
        element: Owned = (element: *mut HmElement),
        to: Shared = (to: *mut HmQueue),
        from: Shared = (from: *mut HmQueue),
    ) {
        let held = hand.let_go(element)?;
        let out = std::mem::replace(element, none());
        match hand_of(hand).push_pull(held, &to.0, &from.0)? {
            Ok(pulled) => {
                let Some(pulled) = hand.pulled(pulled) else { return Ok(ABSENT) };
                *element = pulled;
                Ok(OK)
            }
            Err(back) => {
                hand.keep_again(back, out.place);
                *element = out;
                Ok(QUEUE_FULL)
            }
        }
    }

    /// See `hashmere_queue.h`.
    fn hm_push_pull_many(
        hand: Owned = (hand: *mut HmHand),
        to: Shared = (to: *mut HmQueue),
        from: Shared = (from: *mut HmQueue),
        max: Plain = (max: u64),
        pushed: Out<u64> = (pushed: *mut u64),
        pulled: Out<u64> = (pulled: *mut u64),
    ) {
        let (there, back) = hand.whole()?.push_pull_many(&to.0, &from.0, max)?;
        pushed.put(there);
        pulled.put(back);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_drain(
        hand: Owned = (hand: *mut HmHand),
        from: Shared = (from: *mut HmQueue),
        to: Shared = (to: *mut HmQueue),
        moved: Out<u64> = (moved: *mut u64),
    ) {
        moved.put(hand.whole()?.drain(&from.0, &to.0)?);
        Ok(OK)
    }

    /// See `hashmere_queue.h`.
    fn hm_queue_wait(
        hand: Owned = (hand: *mut HmHand),
        from: Shared = (from: *mut HmQueue),
        timeout_ms: Plain = (timeout_ms: u64),
    ) {
        let is_there = hand_of(hand).wait(&from.0, Duration::from_millis(timeout_ms))?;
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
