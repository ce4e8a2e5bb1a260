//! Hot backups.

use crate::error::OrRaise;
use crate::store::{name_of, StoreBase};
use hashmere::{BackupReport, Store};
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymethods]
impl StoreBase {
    /// Copies the store to a new file as it is at one moment, while others go on reading and writing.
    ///
    /// The file appears when it is complete and on the medium; ``replace`` puts it in the place of a store of that name
    /// in one step. ``progress(done, of)`` is called with the number of keys copied and about how many there are.
    /// Returns a dict with ``items``, ``bytes_file`` and ``thinned`` (a full cache dropped keys during the copy).
    #[pyo3(signature = (path, /, *, replace=false, progress=None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        path: &Bound<'py, PyAny>,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let path = name_of(path)?;
        let store = self.enter(py)?;
        let store: &Store = &store;
        let mut raised = None;
        let tell = |done: u64, of: u64| {
            if let (Some(progress), None) = (&progress, &raised) {
                raised = Python::attach(|py| progress.call1(py, (done, of))).err();
            }
        };
        let done = py.detach(|| store.backup(path).replace(replace).on_progress(tell).run());
        let BackupReport { items, bytes_file, thinned, .. } = done.or_raise(py)?;
        if let Some(error) = raised {
            return Err(error);
        }
        let report = PyDict::new(py);
        report.set_item("items", items)?;
        report.set_item("bytes_file", bytes_file)?;
        report.set_item("thinned", thinned)?;
        Ok(report)
    }
}
