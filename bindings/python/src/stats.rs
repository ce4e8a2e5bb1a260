//! Statistics as dicts.

use hashmere::{ClientStats, Mode, Stats};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Puts fields into a dict under their own names.
macro_rules! fields {
    ($dict:ident, $from:ident, $($field:ident),* $(,)?) => { $($dict.set_item(stringify!($field), $from.$field)?;)* };
}

/// All of them.
pub fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("mode", if stats.mode == Mode::Cache { "cache" } else { "strict" })?;
    fields!(
        dict,
        stats,
        items,
        bytes_live,
        bytes_dead,
        bytes_free,
        bytes_file,
        bytes_allocated,
        bytes_max,
        no_space_since_ms,
        segments_total,
        segments_log,
        segments_index,
        segments_large,
        segments_free,
        segment_bytes,
        index_slots,
        index_used,
        index_depth,
        index_overflow,
        splits,
        segments_cleaned,
        records_moved,
        evictions,
        expiries,
        hits,
        misses,
        sets,
        deletes,
        lock_waits,
        takeovers,
        read_retries,
        clears,
        recycle_epoch,
        durable,
        syncs,
        last_sync_ms,
        segments_waiting,
        segments_offline,
        poisoned,
    );
    let clients = stats.clients.iter().map(|c| client(py, c)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("clients", PyList::new(py, clients)?)?;
    Ok(dict)
}

fn client<'py>(py: Python<'py>, client: &ClientStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &client.name)?;
    fields!(dict, client, slot, pid, since_ms, hits, misses, sets, deletes, pins);
    Ok(dict)
}
