//! Values written in place, in room that the caller provides.

use crate::abi::{HmAttributes, HmReservation, HmStored};
use crate::args::{Attached, Maybe, Plain};
use crate::failure::Failure;
use crate::result::OK;
use hashmere::{Reservation, Store};
use std::mem::{align_of, size_of};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::{self, ThreadId};

const LIVE: u64 = u64::from_le_bytes(*b"hm_room\0");
const GONE: u64 = 0;

/// The content of `opaque` behind the word that says whether there is something.
struct HeldReservation {
    /// Borrows from `store`; dropped first, as fields are dropped in order.
    reservation: Reservation<'static>,
    /// The thread that made it: the client slot that it writes with is that thread's.
    thread: ThreadId,
    /// Keeps the file open. Shared, so that it stays where it is.
    _store: Arc<Store>,
}

const _: () = assert!(size_of::<HeldReservation>() <= 45 * 8 && align_of::<HeldReservation>() <= 8);

/// Room for a reservation.
struct ReservationSlot(NonNull<HmReservation>);
impl ReservationSlot {
    unsafe fn read(name: &'static str, room: *mut HmReservation) -> Result<ReservationSlot, Failure> {
        let room = NonNull::new(room).map(ReservationSlot).ok_or_else(|| Failure::Argument(name, "it is NULL"))?;
        // SAFETY: not NULL, so the caller's to write.
        unsafe { room.place().0.write(GONE) };
        Ok(room)
    }

    fn place(&self) -> (*mut u64, *mut HeldReservation) {
        // SAFETY: the field lies within the structure.
        let opaque = unsafe { (&raw mut (*self.0.as_ptr()).opaque).cast::<u64>() };
        (opaque, opaque.wrapping_add(1).cast())
    }

    fn fill(&self, mut held: HeldReservation) {
        let room = self.0.as_ptr();
        let (state, place) = self.place();
        // SAFETY: the structure is the caller's to write during the call, and `HeldReservation` fits where it goes. The
        // bytes do not move with it: they are in the file.
        unsafe {
            (&raw mut (*room).data).write(held.reservation.as_mut_ptr().cast());
            (&raw mut (*room).len).write(held.reservation.len());
            place.write(held);
            state.write(LIVE);
        }
    }
}

/// A reservation on its way out, if it is live and this thread's.
struct Taken;
impl Taken {
    unsafe fn read(name: &'static str, room: *mut HmReservation) -> Result<HeldReservation, Failure> {
        let room = NonNull::new(room).map(ReservationSlot).ok_or_else(|| Failure::Argument(name, "it is NULL"))?;
        let (state, place) = room.place();
        // SAFETY: the caller's structure; if the state is `LIVE`, `fill` wrote what is there, and no call has taken it
        // out yet.
        unsafe {
            if state.read() != LIVE {
                return Err(Failure::InvalidState(
                    "the reservation was committed or abandoned before, or was never made",
                ));
            }
            if (*place).thread != thread::current().id() {
                return Err(Failure::InvalidState(
                    "the reservation belongs to another thread; commit or abandon it there",
                ));
            }
            state.write(GONE);
            Ok(place.read())
        }
    }
}

export_by_key! {
    /// See `hashmere.h`.
    fn hm_reserve | hm_reserve_at(
        store,
        key,
        value_len: Plain = (value_len: usize),
        attributes: Attached = (attributes: *const HmAttributes),
        room: ReservationSlot = (reservation: *mut HmReservation),
    ) {
        let store = Arc::new(store.clone());
        // SAFETY: the store does not move, is kept beside the reservation, and dropped after it.
        let borrowed: &'static Store = unsafe { &*Arc::as_ptr(&store) };
        let reservation = borrowed.reserve(key, value_len as u64, attributes)?;
        room.fill(HeldReservation { reservation, thread: thread::current().id(), _store: store });
        Ok(OK)
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_reservation_commit(
        held: Taken = (reservation: *mut HmReservation),
        stored: Maybe<HmStored> = (stored: *mut HmStored),
    ) {
        let HeldReservation { reservation, _store, .. } = held;
        stored.put(reservation.commit()?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_reservation_abandon(held: Taken = (reservation: *mut HmReservation)) {
        drop(held);
        Ok(OK)
    }
}
