//! The whole store.

use crate::abi::{HmBackupReport, HmBytes, HmClient, HmProgress, HmReport, HmShowClient, HmShowProblem, HmStats};
use crate::args::{Callback, Filled, Maybe, MaybeFilled, Name, Open, Out, Plain};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::result::{MISMATCH, OK};
use hashmere::{BackupReport, CheckReport, ClientStats, Mode, Stats};
use std::ffi::{c_char, c_int, c_void};

/// Flag of `hm_backup`.
const REPLACE: u64 = 1 << 0;

pub(crate) fn stats_from(s: &Stats) -> HmStats {
    HmStats {
        size: 0,
        is_cache: u64::from(s.mode == Mode::Cache),
        items: s.items,
        bytes_live: s.bytes_live,
        bytes_dead: s.bytes_dead,
        bytes_free: s.bytes_free,
        bytes_file: s.bytes_file,
        bytes_allocated: s.bytes_allocated,
        bytes_max: s.bytes_max,
        segments_total: s.segments_total,
        segments_log: s.segments_log,
        segments_index: s.segments_index,
        segments_large: s.segments_large,
        segments_free: s.segments_free,
        segments_waiting: s.segments_waiting,
        segments_offline: s.segments_offline,
        segment_bytes: s.segment_bytes,
        index_slots: s.index_slots,
        index_used: s.index_used,
        index_depth: s.index_depth,
        index_overflow: s.index_overflow,
        splits: s.splits,
        segments_cleaned: s.segments_cleaned,
        records_moved: s.records_moved,
        evictions: s.evictions,
        expiries: s.expiries,
        hits: s.hits,
        misses: s.misses,
        sets: s.sets,
        deletes: s.deletes,
        lock_waits: s.lock_waits,
        takeovers: s.takeovers,
        read_retries: s.read_retries,
        clears: s.clears,
        recycle_epoch: s.recycle_epoch,
        is_durable: u64::from(s.durable),
        syncs: s.syncs,
        last_sync_ms: s.last_sync_ms,
        is_poisoned: u64::from(s.poisoned),
        clients: s.clients.len() as u64,
        no_space_since_ms: s.no_space_since_ms,
    }
}

fn client_from(c: &ClientStats) -> HmClient {
    HmClient {
        slot: c.slot,
        pid: c.pid,
        since_ms: c.since_ms,
        hits: c.hits,
        misses: c.misses,
        sets: c.sets,
        deletes: c.deletes,
        pins: c.pins,
        name: HmBytes::from(c.name.as_bytes()),
    }
}

/// Whether the flags of a backup say that a store is replaced.
pub(crate) fn replaces(flags: u64) -> Result<bool, Failure> {
    if flags & !REPLACE != 0 {
        return Err(Failure::Argument("flags", "it has bits that this version of the library does not know"));
    }
    Ok(flags & REPLACE != 0)
}

pub(crate) fn report_of(done: &BackupReport) -> HmBackupReport {
    let (items, bytes_file, is_thinned) = (done.items, done.bytes_file, u64::from(done.thinned));
    HmBackupReport { size: 0, items, bytes_file, is_thinned }
}

/// Shows the problems that a check has found, and returns its result.
pub(crate) fn checked(
    found: &CheckReport,
    report: &MaybeFilled<HmReport>,
    show: Option<HmShowProblem>,
    user: *mut c_void,
) -> c_int {
    if let Some(show) = show {
        let mut problems = found.problems.iter();
        let _ = problems.all(|p| show(user, p.code.as_bytes().into(), p.offset, p.text.as_bytes().into()) == 0);
    }
    let (items, segments, leaves, dead_locks) = (found.items, found.segments, found.leaves, found.dead_locks);
    report.put(HmReport { size: 0, problems: found.problems.len() as u64, items, segments, leaves, dead_locks });
    if found.is_clean() {
        OK
    } else {
        MISMATCH
    }
}

export! {
    /// See `hashmere.h`.
    fn hm_len(store: Open = (store: *mut HmStore), count: Out<u64> = (count: *mut u64)) {
        count.put(store.len());
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_len_exact(store: Open = (store: *mut HmStore), count: Out<u64> = (count: *mut u64)) {
        count.put(store.len_exact()?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_clear(store: Open = (store: *mut HmStore)) {
        store.clear()?;
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_sync(store: Open = (store: *mut HmStore)) {
        store.sync()?;
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_compact(store: Open = (store: *mut HmStore), freed: Maybe<u64> = (freed: *mut u64)) {
        freed.put(store.compact()?);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_get_stats(store: Open = (store: *mut HmStore), stats: Filled<HmStats> = (stats: *mut HmStats)) {
        stats.put(stats_from(&store.stats()));
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_each_client(
        store: Open = (store: *mut HmStore),
        show: Callback = (show: Option<HmShowClient>),
        user: Plain = (user: *mut c_void),
    ) {
        let stats = store.stats();
        let _ = stats.clients.iter().map(client_from).all(|client| show(user, &client) == 0);
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_backup(
        store: Open = (store: *mut HmStore),
        path: Name = (path: *const c_char),
        flags: Plain = (flags: u64),
        progress: Plain = (progress: Option<HmProgress>),
        user: Plain = (user: *mut c_void),
        report: MaybeFilled<HmBackupReport> = (report: *mut HmBackupReport),
    ) {
        let mut backup = store.backup(path).replace(replaces(flags)?);
        if let Some(progress) = progress {
            backup = backup.on_progress(move |done, of| progress(user, done, of));
        }
        report.put(report_of(&backup.run()?));
        Ok(OK)
    }

    /// See `hashmere.h`.
    fn hm_check(
        store: Open = (store: *mut HmStore),
        report: MaybeFilled<HmReport> = (report: *mut HmReport),
        show: Plain = (show: Option<HmShowProblem>),
        user: Plain = (user: *mut c_void),
    ) {
        Ok(checked(&store.check(), &report, show, user))
    }
}
