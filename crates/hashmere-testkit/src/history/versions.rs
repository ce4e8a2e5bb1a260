//! Versions of a key: never given twice, and larger for a write that began after another had returned.

use super::Operation;

/// Checks the versions which the writes on one key returned.
///
/// # Errors
/// The two operations that contradict.
pub fn check_versions(operations: &[Operation]) -> Result<(), String> {
    let mut writes: Vec<&Operation> = operations.iter().filter(|operation| operation.version != 0).collect();
    writes.sort_by_key(|write| write.version);
    for pair in writes.windows(2) {
        if pair[0].version == pair[1].version {
            return Err(format!("given twice: {:?} and {:?}", pair[0], pair[1]));
        }
    }
    // Going down in versions, remember the earliest return: nothing with a smaller version may be called after it.
    let mut earliest: Option<&Operation> = None;
    for write in writes.into_iter().rev() {
        if let Some(newer) = earliest {
            if newer.returned < write.called {
                return Err(format!("went back: {newer:?} had returned before {write:?}"));
            }
        }
        if earliest.is_none_or(|newer| write.returned < newer.returned) {
            earliest = Some(write);
        }
    }
    Ok(())
}
