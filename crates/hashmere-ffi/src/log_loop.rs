//! `hashmere_log.h`: draining and following in a loop of the caller's, and what logs and rings there are.

use crate::abi::HmBytes;
use crate::args::{Callback, Input, Maybe, Open, Out, Owned, Plain, Shared};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::log::HmLog;
use crate::log_abi::{HmDrainOptions, HmRing, HmShowName, HmShowRing};
use crate::log_drain::{sink_of, HmFollower, STANDBY};
use crate::result::OK;
use hashmere_log::{Log, ManualDrainer};
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

/// `hm_log_drain`'s sister, in the hands of the caller: `hm_manual_drainer`.
pub struct HmManualDrainer(ManualDrainer);

export! {
    /// See `hashmere_log.h`.
    fn hm_manual_drainer_open(
        log: Shared = (log: *mut HmLog),
        options: Input<HmDrainOptions> = (options: *const HmDrainOptions),
        drainer: Out<*mut HmManualDrainer> = (drainer: *mut *mut HmManualDrainer),
    ) {
        drainer.put(ptr::null_mut());
        let sink = sink_of(&options)?;
        if options.flags & STANDBY != 0 {
            return Err(Failure::Argument("options", "`flags` has HM_DRAIN_STANDBY, but this call does not wait: try again later"));
        }
        drainer.put(Box::into_raw(Box::new(HmManualDrainer(log.0.drain_manual(sink)?))));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_manual_drainer_ready_fd(drainer: Owned = (drainer: *mut HmManualDrainer), fd: Out<c_int> = (fd: *mut c_int)) {
        fd.put(drainer.0.ready_fd()?.as_raw_fd());
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_manual_drainer_poll(drainer: Owned = (drainer: *mut HmManualDrainer), lines: Maybe<u64> = (lines: *mut u64)) {
        lines.put(drainer.0.poll()?.0);
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_manual_drainer_wait(drainer: Owned = (drainer: *mut HmManualDrainer), timeout_ms: Plain = (timeout_ms: u64)) {
        drainer.0.wait(Duration::from_millis(timeout_ms));
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_manual_drainer_finish(drainer: Plain = (drainer: *mut HmManualDrainer), lines: Maybe<u64> = (lines: *mut u64)) {
        if drainer.is_null() {
            return Ok(OK);
        }
        // SAFETY: made by `hm_manual_drainer_open`, and not used any more.
        let drainer = unsafe { Box::from_raw(drainer) };
        lines.put(drainer.0.finish()?);
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_follower_ready_fd(follower: Owned = (follower: *mut HmFollower), fd: Out<c_int> = (fd: *mut c_int)) {
        fd.put(follower.follower.ready_fd()?.as_raw_fd());
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_each_log(
        store: Open = (store: *mut HmStore),
        show: Callback = (show: Option<HmShowName>),
        user: Plain = (user: *mut c_void),
    ) {
        let _ = Log::list(store).iter().all(|name| show(user, HmBytes::from(name.as_bytes())) == 0);
        Ok(OK)
    }

    /// See `hashmere_log.h`.
    fn hm_each_ring(
        log: Shared = (log: *mut HmLog),
        show: Callback = (show: Option<HmShowRing>),
        user: Plain = (user: *mut c_void),
    ) {
        let rings = log.0.rings()?;
        let _ = rings.iter().map(HmRing::of).all(|ring| show(user, &ring) == 0);
        Ok(OK)
    }
}
