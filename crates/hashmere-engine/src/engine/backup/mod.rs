//! Backups: [`snapshot`] tells those who go on writing what a backup needs, [`retained`] finds the records that were
//! superseded since it began, [`copy`] copies both into another store.

pub(super) mod copy;
pub(super) mod retained;
pub(super) mod snapshot;
