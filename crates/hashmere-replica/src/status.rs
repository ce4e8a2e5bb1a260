//! How far a replica is, for every process that has it open.

/// What a replicator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaPhase {
    /// It copies every key: the replica is a mixture of what it was and what its source is.
    #[default]
    Copying,
    /// It follows.
    Live,
}

impl ReplicaPhase {
    /// In lower case, as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaPhase::Copying => "copying",
            ReplicaPhase::Live => "live",
        }
    }
}

/// How far a replica is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaStatus {
    /// What the replicator does, or did last.
    pub phase: ReplicaPhase,
    /// Process id of the replicator; `None`: none runs.
    pub pid: Option<u32>,
    /// Position in the source's feed up to which its changes are applied.
    pub position: u64,
    /// Where the source's feed ended when this was written.
    pub source_position: u64,
    /// Age of the newest change that is applied, if there are others behind it, in milliseconds; else 0.
    pub lag_ms: u64,
    /// Changes that were applied since the first copy began.
    pub changes: u64,
    /// Keys that the last first copy read.
    pub copied: u64,
    /// When this was written, in milliseconds since 1970.
    pub updated_ms: u64,
}

impl ReplicaStatus {
    /// Its lag in milliseconds at this time (since 1970): as it was written, and for how long nothing was written
    /// since, if that is more than a second. So it grows while no replicator runs.
    pub fn lag_ms_at(&self, now_ms: u64) -> u64 {
        let since = now_ms.saturating_sub(self.updated_ms);
        self.lag_ms + if since > 1000 { since } else { 0 }
    }

    /// How far it is behind, in positions.
    pub fn lag(&self) -> u64 {
        self.source_position.saturating_sub(self.position)
    }
}
