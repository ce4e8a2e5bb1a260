//! The parts of W5.

use super::connection::Connection;
use super::KEYS;
use crate::workload::Random;
use crate::Outcome;

/// What one request is.
enum Kind {
    /// So many gets or sets at once.
    Get(u64),
    Set(u64),
    /// So many gets of so many keys at once.
    Multi(u64, u64),
}

/// One part.
pub struct Job {
    /// Its name.
    pub name: &'static str,
    /// Connections.
    pub connections: usize,
    kind: Kind,
}

/// All of them.
pub fn all() -> [Job; 7] {
    let job = |name, connections, kind| Job { name, connections, kind };
    [
        job("get", 4, Kind::Get(64)),
        job("set", 4, Kind::Set(64)),
        job("multi", 4, Kind::Multi(4, 100)),
        job("get50", 50, Kind::Get(1)),
        job("set50", 50, Kind::Set(1)),
        job("get100", 4, Kind::Get(100)),
        job("set100", 4, Kind::Set(100)),
    ]
}

impl Job {
    /// Requests that one answer counts for.
    pub fn requests(&self) -> u64 {
        match self.kind {
            Kind::Get(depth) | Kind::Set(depth) | Kind::Multi(depth, _) => depth,
        }
    }

    /// Sends the next.
    pub fn ask(&self, connection: &mut Connection, random: &mut Random) -> Outcome {
        connection.begin();
        for _ in 0..self.requests() {
            match self.kind {
                Kind::Get(_) => connection.get(std::iter::once(random.below(KEYS))),
                Kind::Set(_) => connection.set(random.below(KEYS)),
                Kind::Multi(_, keys) => connection.get((0..keys).map(|_| random.below(KEYS))),
            }
        }
        connection.send()
    }
}
