//! `hashmere_dump.h`: stores as text, and what is done with a store by its name.

use crate::abi::{HmBackupReport, HmFilter, HmOptions, HmReport, HmShowProblem, HmStats};
use crate::args::{Filled, Input, Maybe, MaybeFilled, Name, Open, Plain};
use crate::failure::Failure;
use crate::handle::HmStore;
use crate::opening::options_from;
use crate::result::OK;
use crate::scanning::filter_from;
use crate::store::{checked, replaces, report_of, stats_from};
use hashmere_dump::{Format, Records};
use std::ffi::{c_char, c_int, c_void};

/// `hm_format`.
struct Form;
impl Form {
    unsafe fn read(name: &'static str, format: c_int) -> Result<Option<Format>, Failure> {
        match format {
            0 => Ok(None),
            1 => Ok(Some(Format::Tsv)),
            2 => Ok(Some(Format::Jsonl)),
            _ => Err(Failure::Argument(name, "it is none of HM_FORMAT_OF_NAME, HM_TSV and HM_JSONL")),
        }
    }
}

export! {
    /// See `hashmere_dump.h`.
    fn hm_dump(
        store: Open = (store: *mut HmStore),
        path: Name = (path: *const c_char),
        format: Form = (format: c_int),
        filter: Input<HmFilter> = (filter: *const HmFilter),
        records: Maybe<u64> = (records: *mut u64),
    ) {
        records.put(store.dump(path, format, filter_from(&filter)?)?);
        Ok(OK)
    }

    /// See `hashmere_dump.h`.
    fn hm_load(
        store: Open = (store: *mut HmStore),
        path: Name = (path: *const c_char),
        format: Form = (format: c_int),
        records: Maybe<u64> = (records: *mut u64),
    ) {
        records.put(store.load(path, format)?);
        Ok(OK)
    }

    /// See `hashmere_dump.h`.
    fn hm_check_named(
        name: Name = (name: *const c_char),
        report: MaybeFilled<HmReport> = (report: *mut HmReport),
        show: Plain = (show: Option<HmShowProblem>),
        user: Plain = (user: *mut c_void),
    ) {
        Ok(checked(&hashmere::check(name)?, &report, show, user))
    }

    /// See `hashmere_dump.h`.
    fn hm_get_stats_named(name: Name = (name: *const c_char), stats: Filled<HmStats> = (stats: *mut HmStats)) {
        stats.put(stats_from(&hashmere::stats(name)?));
        Ok(OK)
    }

    /// See `hashmere_dump.h`.
    fn hm_backup_named(
        name: Name = (name: *const c_char),
        path: Name = (path: *const c_char),
        flags: Plain = (flags: u64),
        report: MaybeFilled<HmBackupReport> = (report: *mut HmBackupReport),
    ) {
        report.put(report_of(&hashmere::backup(name, path, replaces(flags)?)?));
        Ok(OK)
    }

    /// See `hashmere_dump.h`.
    fn hm_dump_named(
        name: Name = (name: *const c_char),
        path: Name = (path: *const c_char),
        format: Form = (format: c_int),
        filter: Input<HmFilter> = (filter: *const HmFilter),
        records: Maybe<u64> = (records: *mut u64),
    ) {
        records.put(hashmere_dump::dump(name, path, format, filter_from(&filter)?)?);
        Ok(OK)
    }

    /// See `hashmere_dump.h`.
    fn hm_load_named(
        name: Name = (name: *const c_char),
        options: Input<HmOptions> = (options: *const HmOptions),
        path: Name = (path: *const c_char),
        format: Form = (format: c_int),
        records: Maybe<u64> = (records: *mut u64),
    ) {
        records.put(hashmere_dump::load(name, &options_from(&options)?, path, format)?);
        Ok(OK)
    }
}
