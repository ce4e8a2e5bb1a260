//! The structures of `hashmere_feed.h`, field by field, and what becomes them. The header says what the fields mean.

#![allow(missing_docs)]

use crate::abi::HmBytes;
use crate::args::Versioned;
use hashmere_feed::{Change, Event, FeedInfo, Operation, ResetReason, Value};
use std::ffi::CStr;

/// `hm_feed_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmFeedInfo {
    pub size: usize,
    pub number: u64,
    pub position: u64,
    pub oldest: u64,
    pub bytes: u64,
    pub values: u64,
}

/// `hm_feed_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmFeedOptions {
    pub size: usize,
    pub flags: u64,
    pub prefix: HmBytes,
}

/// `hm_feed_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmFeedEvent {
    pub kind: i32,
    pub operation: i32,
    pub reason: i32,
    pub value_state: i32,
    pub key: HmBytes,
    pub value: HmBytes,
    pub version: u64,
    pub expires_at_ms: u64,
    pub ts_ms: u64,
    pub value_len: u32,
    pub flags: u32,
    pub origin: u32,
    pub has_supplied_hash: u32,
    pub supplied_hash: u64,
    pub transaction_id: u64,
    pub transaction_index: u32,
    pub transaction_len: u32,
    pub token: HmBytes,
}

// SAFETY: it is.
unsafe impl Versioned for HmFeedInfo {
    const NAME: &'static str = "info";
}
// SAFETY: it is.
unsafe impl Versioned for HmFeedOptions {
    const NAME: &'static str = "options";
}

impl From<FeedInfo> for HmFeedInfo {
    fn from(info: FeedInfo) -> HmFeedInfo {
        HmFeedInfo {
            size: 0,
            number: info.number,
            position: info.position,
            oldest: info.oldest,
            bytes: info.bytes,
            values: info.values.into(),
        }
    }
}

fn operation_of(operation: Operation) -> i32 {
    match operation {
        Operation::Read => 0,
        Operation::Set => 1,
        Operation::Delete => 2,
        Operation::Touch => 3,
        Operation::Evict => 4,
        Operation::Expire => 5,
        // One that this interface has no number for yet.
        _ => -1,
    }
}

fn reason_of(reason: ResetReason) -> i32 {
    match reason {
        ResetReason::Asked => 0,
        ResetReason::Gone => 1,
        ResetReason::OtherFeed => 2,
        ResetReason::Gap => 3,
        _ => -1,
    }
}

fn state_of(value: &Value) -> i32 {
    match value {
        Value::Absent => 0,
        Value::Bytes(_) => 1,
        Value::NotKept => 2,
        Value::Superseded => 3,
        _ => -1,
    }
}

impl HmFeedEvent {
    /// The event, good as long as it and the text of its token are.
    pub(crate) fn of(event: &Event, token: &CStr) -> HmFeedEvent {
        let empty = HmBytes::from(&[][..]);
        let mut made = HmFeedEvent {
            kind: -1,
            operation: 0,
            reason: 0,
            value_state: 0,
            key: empty,
            value: empty,
            version: 0,
            expires_at_ms: 0,
            ts_ms: 0,
            value_len: 0,
            flags: 0,
            origin: 0,
            has_supplied_hash: 0,
            supplied_hash: 0,
            transaction_id: 0,
            transaction_index: 0,
            transaction_len: 0,
            token: token.to_bytes().into(),
        };
        match event {
            Event::Reset { reason } => (made.kind, made.reason) = (0, reason_of(*reason)),
            Event::Read(change) => made.take(1, change),
            Event::Synced { .. } => made.kind = 2,
            Event::Change(change) => made.take(3, change),
            Event::Clear { ts_ms, .. } => (made.kind, made.ts_ms) = (4, *ts_ms),
            _ => {}
        }
        made
    }

    fn take(&mut self, kind: i32, change: &Change) {
        self.kind = kind;
        self.operation = operation_of(change.operation);
        self.value_state = state_of(&change.value);
        self.key = change.key.as_slice().into();
        self.value = change.value.bytes().unwrap_or_default().into();
        self.version = change.version.0;
        self.expires_at_ms = change.expires_at_ms.unwrap_or(0);
        self.ts_ms = change.ts_ms;
        (self.value_len, self.flags, self.origin) = (change.value_len, change.flags, change.origin);
        self.has_supplied_hash = change.supplied_hash.is_some().into();
        self.supplied_hash = change.supplied_hash.unwrap_or(0);
        if let Some(part) = change.transaction {
            (self.transaction_id, self.transaction_index, self.transaction_len) = (part.id, part.index, part.len);
        }
    }
}
