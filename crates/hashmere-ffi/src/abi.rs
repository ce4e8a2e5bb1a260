//! The structures of the header, field by field. The header says what the fields mean.

#![allow(missing_docs)]

use hashmere::{Item, Metadata, Stored};
use std::ffi::{c_char, c_int, c_void};

/// `hm_error`.
#[repr(C)]
pub struct HmError {
    pub code: i32,
    pub os_error: i32,
    pub pid: u32,
    pub text_len: u32,
    pub text: [c_char; 1008],
}

/// `hm_bytes`. Where a caller provides it, nothing says yet that it is valid: see `arrays::Many`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmBytes {
    pub data: *const c_void,
    pub len: usize,
}

impl From<&[u8]> for HmBytes {
    fn from(bytes: &[u8]) -> HmBytes {
        HmBytes { data: bytes.as_ptr().cast(), len: bytes.len() }
    }
}

/// `hm_key`. As with [`HmBytes`], nothing says yet that it is valid: see `key::Named`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmKey {
    pub data: *const c_void,
    pub len: usize,
    pub number: u64,
    pub kind: u32,
    pub reserved: u32,
}

/// `hm_attributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmAttributes {
    pub flags: u32,
    pub expiry: i32,
    pub expiry_ms: i64,
    pub min_version: u64,
}

/// `hm_metadata`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmMetadata {
    pub value_len: u64,
    pub version: u64,
    pub expires_at_ms: u64,
    pub uid: u32,
    pub flags: u32,
    pub reserved: u64,
}

impl From<Metadata> for HmMetadata {
    fn from(meta: Metadata) -> HmMetadata {
        HmMetadata {
            value_len: meta.value_len,
            version: meta.version.0,
            expires_at_ms: meta.expires_at_ms.unwrap_or(0),
            uid: meta.uid.0,
            flags: meta.flags,
            reserved: 0,
        }
    }
}

/// `hm_stored`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmStored {
    pub version: u64,
    pub uid: u32,
    pub created: u32,
}

impl From<Stored> for HmStored {
    fn from(stored: Stored) -> HmStored {
        HmStored { version: stored.version.0, uid: stored.uid.0, created: u32::from(stored.created) }
    }
}

/// `hm_pair`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmPair {
    pub key: HmBytes,
    pub value: HmBytes,
    pub metadata: HmMetadata,
}

impl HmPair {
    pub(crate) fn new(key: &[u8], value: &[u8], meta: Metadata) -> HmPair {
        HmPair { key: key.into(), value: value.into(), metadata: meta.into() }
    }

    pub(crate) fn of_item(key: &[u8], item: &Item) -> HmPair {
        HmPair::new(key, &item.value, item.metadata)
    }
}

/// `hm_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmOptions {
    pub size: usize,
    pub flags: u64,
    pub max_bytes: u64,
    pub expected_items: u64,
    pub busy_timeout_ms: u64,
    pub sync_every_ms: u64,
    pub segment_bytes: u32,
    pub leaf_bytes: u32,
    pub fixed_key_len: u32,
    pub fixed_value_len: u32,
    pub permissions: u32,
    pub origin: u32,
    pub on_recovery: Option<HmProgress>,
    pub on_recovery_user: *mut c_void,
    pub feed: u64,
}

/// `hm_view`.
#[repr(C)]
pub struct HmView {
    pub data: *const c_void,
    pub len: usize,
    pub metadata: HmMetadata,
    pub zero_copy: u32,
    pub reserved: u32,
    pub opaque: [u64; 24],
}

/// `hm_reservation`.
#[repr(C)]
pub struct HmReservation {
    pub data: *mut c_void,
    pub len: usize,
    pub opaque: [u64; 46],
}

/// `hm_change`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmChange {
    pub action: i32,
    pub reserved: u32,
    pub value: HmBytes,
    pub attributes: HmAttributes,
}

/// `hm_counter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmCounter {
    pub initial: u64,
    pub attributes: HmAttributes,
}

/// `hm_signed_counter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmSignedCounter {
    pub initial: i64,
    pub attributes: HmAttributes,
}

/// `hm_float_counter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmFloatCounter {
    pub initial: f64,
    pub attributes: HmAttributes,
}

/// `hm_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmFilter {
    pub size: usize,
    pub flags: u64,
    pub prefix: HmBytes,
    pub glob: HmBytes,
    pub regex: HmBytes,
    pub part: u32,
    pub parts: u32,
}

/// `hm_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HmStats {
    pub size: usize,
    pub is_cache: u64,
    pub items: u64,
    pub bytes_live: u64,
    pub bytes_dead: u64,
    pub bytes_free: u64,
    pub bytes_file: u64,
    pub bytes_allocated: u64,
    pub bytes_max: u64,
    pub segments_total: u64,
    pub segments_log: u64,
    pub segments_index: u64,
    pub segments_large: u64,
    pub segments_free: u64,
    pub segments_waiting: u64,
    pub segments_offline: u64,
    pub segment_bytes: u64,
    pub index_slots: u64,
    pub index_used: u64,
    pub index_depth: u64,
    pub index_overflow: u64,
    pub splits: u64,
    pub segments_cleaned: u64,
    pub records_moved: u64,
    pub evictions: u64,
    pub expiries: u64,
    pub hits: u64,
    pub misses: u64,
    pub sets: u64,
    pub deletes: u64,
    pub lock_waits: u64,
    pub takeovers: u64,
    pub read_retries: u64,
    pub clears: u64,
    pub recycle_epoch: u64,
    pub is_durable: u64,
    pub syncs: u64,
    pub last_sync_ms: u64,
    pub is_poisoned: u64,
    pub clients: u64,
    pub no_space_since_ms: u64,
}

/// `hm_client`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmClient {
    pub slot: u32,
    pub pid: u32,
    pub since_ms: u64,
    pub hits: u64,
    pub misses: u64,
    pub sets: u64,
    pub deletes: u64,
    pub pins: u64,
    pub name: HmBytes,
}

/// `hm_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HmReport {
    pub size: usize,
    pub problems: u64,
    pub items: u64,
    pub segments: u64,
    pub leaves: u64,
    pub dead_locks: u64,
}

/// `hm_backup_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmBackupReport {
    pub size: usize,
    pub items: u64,
    pub bytes_file: u64,
    pub is_thinned: u64,
}

/// `hm_pool_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmPoolOptions {
    pub size: usize,
    pub elements: u64,
    pub bytes: u64,
    pub max_queues: u64,
    pub max_endpoints: u64,
    pub batch: u64,
    pub on_death: *const c_char,
}

/// `hm_pool_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmPoolStats {
    pub size: usize,
    pub elements: u64,
    pub bytes: u64,
    pub bytes_all: u64,
    pub endpoints: u64,
    pub max_endpoints: u64,
    pub queues: u64,
    pub max_queues: u64,
    pub held: u64,
    pub recovered: u64,
}

/// `hm_queue_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmQueueOptions {
    pub size: usize,
    pub kind: u64,
    pub bound: u64,
}

/// `hm_element`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmElement {
    pub data: *mut c_void,
    pub len: usize,
    pub index: u32,
    pub slot: u32,
}

/// `hm_batch_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmBatchResult {
    pub result: i32,
    pub reserved: u32,
    pub number: u64,
    pub signed_number: i64,
    pub float_number: f64,
    pub stored: HmStored,
    pub value: HmBytes,
    pub metadata: HmMetadata,
}

/// `hm_condition`. As with [`HmBytes`], nothing says yet that it is valid: see `arrays::Conditions`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HmCondition {
    pub key: HmBytes,
    pub value: HmBytes,
    pub version: u64,
    pub kind: u32,
    pub reserved: u32,
}

/// `hm_show`.
pub type HmShow = extern "C" fn(user: *mut c_void, pair: *const HmPair) -> c_int;
/// `hm_show_value`.
pub type HmShowValue = extern "C" fn(user: *mut c_void, index: usize, value: *const HmBytes) -> c_int;
/// `hm_show_item`.
pub type HmShowItem = extern "C" fn(user: *mut c_void, index: usize, item: *const HmPair) -> c_int;
/// `hm_show_result`.
pub type HmShowResult = extern "C" fn(user: *mut c_void, index: usize, result: *const HmBatchResult) -> c_int;
/// `hm_show_client`.
pub type HmShowClient = extern "C" fn(user: *mut c_void, client: *const HmClient) -> c_int;
/// `hm_show_problem`.
pub type HmShowProblem = extern "C" fn(user: *mut c_void, code: HmBytes, offset: u64, text: HmBytes) -> c_int;
/// `hm_progress`.
pub type HmProgress = extern "C" fn(user: *mut c_void, done: u64, of: u64);
/// `hm_compute`.
pub type HmCompute = extern "C" fn(user: *mut c_void, value: *mut HmBytes) -> c_int;
/// `hm_visitor`.
pub type HmVisitor = extern "C" fn(user: *mut c_void, old: *const HmPair, change: *mut HmChange);
