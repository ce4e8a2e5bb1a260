//! Zero-copy views, in room that the caller provides.

use crate::abi::{HmMetadata, HmView};
use crate::args::Out;
use crate::failure::{guard, Failure};
use crate::result::{ABSENT, MISMATCH, OK};
use hashmere::View;
use std::ffi::c_void;
use std::mem::{align_of, size_of};
use std::ptr::NonNull;

const LIVE: u64 = u64::from_le_bytes(*b"hm_view\0");
const GONE: u64 = 0;

// The view is in `opaque` behind the word that says whether there is one.
const _: () = assert!(size_of::<View>() <= 23 * 8 && align_of::<View>() <= 8);

fn place(view: NonNull<HmView>) -> (*mut u64, *mut View) {
    // SAFETY: the field lies within the structure.
    let opaque = unsafe { (&raw mut (*view.as_ptr()).opaque).cast::<u64>() };
    (opaque, opaque.wrapping_add(1).cast())
}

/// Room for a view.
struct ViewSlot(NonNull<HmView>);
impl ViewSlot {
    unsafe fn read(name: &'static str, view: *mut HmView) -> Result<ViewSlot, Failure> {
        // SAFETY: as ours; only whether it is NULL is looked at.
        let _ = unsafe { Out::read(name, view) }?;
        let room = NonNull::new(view).map(ViewSlot);
        let room = room.ok_or_else(|| Failure::Argument(name, "it is NULL"))?;
        room.empty();
        Ok(room)
    }

    /// Nothing to release yet.
    fn empty(&self) {
        // SAFETY: the caller's to write during the call.
        unsafe { place(self.0).0.write(GONE) };
    }

    fn fill(&self, view: View) {
        let (state, place) = place(self.0);
        let meta = HmMetadata::from(view.metadata());
        let zero_copy = u32::from(view.is_zero_copy());
        let (data, len): (*const c_void, usize) = (view.as_ptr().cast(), view.len());
        let room = self.0.as_ptr();
        // SAFETY: the structure is the caller's to write during the call, and the view fits where it goes. Its bytes do
        // not move with it: they are in the file or on the heap.
        unsafe {
            (&raw mut (*room).data).write(data);
            (&raw mut (*room).len).write(len);
            (&raw mut (*room).metadata).write(meta);
            (&raw mut (*room).zero_copy).write(zero_copy);
            (&raw mut (*room).reserved).write(0);
            place.write(view);
            state.write(LIVE);
        }
    }
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_view_acquire | hm_view_acquire_at(
        store,
        key,
        view: ViewSlot = (view: *mut HmView),
    ) {
        let Some(taken) = store.view(key)? else { return Ok(ABSENT) };
        view.fill(taken);
        Ok(OK)
    }
}

/// A view that was acquired and not released.
struct Held;
impl Held {
    /// # Safety
    /// That of `args`.
    unsafe fn read<'a>(name: &'static str, view: *const HmView) -> Result<&'a View, Failure> {
        let view = NonNull::new(view.cast_mut()).ok_or(Failure::Argument(name, "it is NULL"))?;
        let (state, place) = place(view);
        // SAFETY: as in `hm_view_release`; it stays during the call.
        unsafe {
            if state.read() != LIVE {
                return Err(Failure::Argument(name, "it was released, or hm_view_acquire has not filled it"));
            }
            Ok(&*place)
        }
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_view_is_up_to_date(view: Held = (view: *const HmView)) {
        Ok(if view.is_up_to_date()? { OK } else { MISMATCH })
    }
}

/// See `hashmere.h`.
#[no_mangle]
pub unsafe extern "C" fn hm_view_release(view: *mut HmView) {
    let release = || {
        if let Some(view) = NonNull::new(view) {
            let (state, place) = place(view);
            // SAFETY: the structure is the caller's; `hm_view_acquire` wrote the state, and if it is `LIVE` there is a
            // view, which no call has taken out yet.
            unsafe {
                if state.read() == LIVE {
                    state.write(GONE);
                    drop(place.read());
                }
            }
        }
        Ok(OK)
    };
    // SAFETY: NULL is allowed.
    unsafe { guard(std::ptr::null_mut(), release) };
}
