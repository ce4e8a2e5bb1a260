//! `hashmere_transaction.h`: batches, with conditions and without, and snapshot reads.

use crate::abi::{
    HmAttributes, HmBatchResult, HmBytes, HmCondition, HmCounter, HmFloatCounter, HmPair, HmShowItem, HmShowResult,
    HmSignedCounter, HmStored,
};
use crate::args::{Attached, Bytes, Callback, Create, Expiry, Open, Out, Owned, Plain, Shared};
use crate::arrays::{Conditions, Many};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::queue::close;
use crate::result::{ABSENT, MISMATCH, OK};
use hashmere::{BatchResult, Metadata, WriteBatch};
use std::ffi::{c_int, c_void};
use std::ptr;

/// `hm_write_batch`.
pub struct HmWriteBatch(WriteBatch);

/// A batch; NULL is one without operations.
struct MaybeBatch;
impl MaybeBatch {
    /// # Safety
    /// That of `args`.
    unsafe fn read<'a>(_: &'static str, batch: *mut HmWriteBatch) -> Result<Option<&'a WriteBatch>, Failure> {
        // SAFETY: as ours.
        Ok(unsafe { batch.as_ref() }.map(|batch| &batch.0))
    }
}

/// What one operation did, as the header has it. It borrows the value of a get.
fn told(result: &BatchResult) -> HmBatchResult {
    let nothing = HmBytes { data: ptr::null(), len: 0 };
    let stored = HmStored { version: 0, uid: 0, created: 0 };
    let metadata = Metadata::default().into();
    let mut told = HmBatchResult {
        result: OK,
        reserved: 0,
        number: 0,
        signed_number: 0,
        float_number: 0.0,
        stored,
        value: nothing,
        metadata,
    };
    let was_there = match result {
        BatchResult::Stored(done) => {
            told.stored = (*done).into();
            true
        }
        BatchResult::Deleted(was_there) | BatchResult::Extended(was_there) | BatchResult::Touched(was_there) => {
            *was_there
        }
        BatchResult::Counted(number) => {
            told.number = number.unwrap_or(0);
            number.is_some()
        }
        BatchResult::CountedSigned(number) => {
            told.signed_number = number.unwrap_or(0);
            number.is_some()
        }
        BatchResult::CountedFloat(number) => {
            told.float_number = number.unwrap_or(0.0);
            number.is_some()
        }
        BatchResult::Item(item) => {
            if let Some(item) = item {
                (told.value, told.metadata) = (item.value.as_slice().into(), item.metadata.into());
            }
            item.is_some()
        }
        // Every operation of this interface is above.
        _ => true,
    };
    told.result = if was_there { OK } else { ABSENT };
    told
}

fn show_all(results: &[BatchResult], show: Option<HmShowResult>, user: *mut c_void) {
    let Some(show) = show else { return };
    let _ = results.iter().enumerate().all(|(index, result)| show(user, index, &told(result)) == 0);
}

export! {
    /// See `hashmere_transaction.h`.
    fn hm_write_batch_open(batch: Out<*mut HmWriteBatch> = (batch: *mut *mut HmWriteBatch)) {
        batch.put(Box::into_raw(Box::new(HmWriteBatch(WriteBatch::new()))));
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_clear(batch: Owned = (batch: *mut HmWriteBatch)) {
        batch.0.clear();
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_len(batch: Shared = (batch: *mut HmWriteBatch), count: Out<usize> = (count: *mut usize)) {
        count.put(batch.0.len());
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_set(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        value: Bytes = (value: *const c_void, value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
    ) {
        batch.0.set_with(key, value, attributes);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_delete(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
    ) {
        batch.0.delete(key);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_incr_by(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmCounter),
    ) {
        batch.0.incr(key, by, create);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_incr_signed(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: i64),
        create: Create = (create: *const HmSignedCounter),
    ) {
        batch.0.incr_signed(key, by, create);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_incr_float(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        by: Plain = (by: f64),
        create: Create = (create: *const HmFloatCounter),
    ) {
        batch.0.incr_float(key, by, create);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_append(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        tail: Bytes = (tail: *const c_void, tail_len: usize),
    ) {
        batch.0.append(key, tail);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_prepend(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        head: Bytes = (head: *const c_void, head_len: usize),
    ) {
        batch.0.prepend(key, head);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_touch(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
        ttl: Expiry = (expiry: c_int, expiry_ms: i64),
    ) {
        batch.0.touch(key, ttl);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_get(
        batch: Owned = (batch: *mut HmWriteBatch),
        key: Bytes = (key: *const c_void, key_len: usize),
    ) {
        batch.0.get(key);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_commit(
        store: Open = (store: *mut HmStore),
        batch: Shared = (batch: *mut HmWriteBatch),
        show: Plain = (show: Option<HmShowResult>),
        user: Plain = (user: *mut c_void),
    ) {
        show_all(&store.write_batch(&batch.0)?, show, user);
        Ok(OK)
    }

    /// See `hashmere_transaction.h`.
    fn hm_write_batch_commit_if(
        store: Open = (store: *mut HmStore),
        conditions: Conditions = (conditions: *const HmCondition, count: usize),
        then: MaybeBatch = (then: *mut HmWriteBatch),
        otherwise: MaybeBatch = (otherwise: *mut HmWriteBatch),
        show: Plain = (show: Option<HmShowResult>),
        user: Plain = (user: *mut c_void),
    ) {
        let nothing = WriteBatch::new();
        let branch =
            store.write_batch_if(&conditions, then.unwrap_or(&nothing), otherwise.unwrap_or(&nothing))?;
        show_all(&branch.results, show, user);
        Ok(if branch.succeeded { OK } else { MISMATCH })
    }

    /// See `hashmere_transaction.h`.
    fn hm_get_many_snapshot(
        store: Open = (store: *mut HmStore),
        keys: Many = (keys: *const HmBytes, count: usize),
        show: Callback = (show: Option<HmShowItem>),
        user: Plain = (user: *mut c_void),
    ) {
        let items = store.get_many_snapshot(keys)?;
        let _ = keys.iter().zip(&items).enumerate().all(|(index, (key, item))| {
            let pair = item.as_ref().map(|item| HmPair::of_item(key.as_ref(), item));
            show(user, index, pair.as_ref().map_or(ptr::null(), ptr::from_ref)) == 0
        });
        Ok(OK)
    }
}

/// See `hashmere_transaction.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_write_batch_close(batch: *mut HmWriteBatch) {
    // SAFETY: as the header says.
    unsafe { close(batch) }
}
