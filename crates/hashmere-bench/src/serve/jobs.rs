//! The parts of W5.

use super::connection::Connection;
use super::KEYS;
use crate::workload::Random;
use crate::Outcome;

/// What one request is.
enum Kind {
    /// The number of gets or sets at once.
    Get(u64),
    Set(u64),
    /// The number of gets, and of keys in each.
    Multi(u64, u64),
    /// The number of rounds, and of keys: in a round every connection sets its share of the keys one by one, then gets
    /// them.
    Rounds(u64, u64),
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
pub fn all() -> [Job; 12] {
    let job = |name, connections, kind| Job { name, connections, kind };
    [
        job("get", 4, Kind::Get(64)),
        job("set", 4, Kind::Set(64)),
        job("multi", 4, Kind::Multi(4, 100)),
        job("get1", 1, Kind::Get(1)),
        job("set1", 1, Kind::Set(1)),
        job("get50", 50, Kind::Get(1)),
        job("set50", 50, Kind::Set(1)),
        job("get1000", 1000, Kind::Get(1)),
        job("set1000", 1000, Kind::Set(1)),
        job("get100", 4, Kind::Get(100)),
        job("set100", 4, Kind::Set(100)),
        job("rounds", 20, Kind::Rounds(10, 10_000)),
    ]
}

impl Job {
    /// Requests that one answer counts for.
    pub fn requests(&self) -> u64 {
        match self.kind {
            Kind::Get(depth) | Kind::Set(depth) | Kind::Multi(depth, _) => depth,
            Kind::Rounds(..) => 1,
        }
    }

    /// How many answers a connection gets in all, if that is what ends the job.
    pub fn answers(&self) -> Option<u64> {
        match self.kind {
            Kind::Rounds(rounds, keys) => Some(rounds * 2 * keys / self.connections as u64),
            _ => None,
        }
    }

    /// Sends the next of the connection with this number; it has received `answered` answers.
    pub fn ask(&self, connection: &mut Connection, random: &mut Random, number: usize, answered: u64) -> Outcome {
        connection.begin();
        if let Kind::Rounds(_, keys) = self.kind {
            let share = keys / self.connections as u64;
            let (turn, key) = (answered / share, number as u64 * share + answered % share);
            match turn % 2 {
                0 => connection.set(key),
                _ => connection.get(std::iter::once(key)),
            }
            return connection.send();
        }
        for _ in 0..self.requests() {
            match self.kind {
                Kind::Get(_) => connection.get(std::iter::once(random.below(KEYS))),
                Kind::Set(_) => connection.set(random.below(KEYS)),
                Kind::Multi(_, keys) => connection.get((0..keys).map(|_| random.below(KEYS))),
                Kind::Rounds(..) => {}
            }
        }
        connection.send()
    }
}
