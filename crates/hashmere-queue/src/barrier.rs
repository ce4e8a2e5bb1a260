//! A barrier: a fixed number of participants start together, again and again; those that crash are not waited for.

use crate::error::QueueError;
use crate::mutex::refuse_cache;
use hashmere_engine::{ClientId, SharedEngine, StoreHandle, Update, WriteError};
use hashmere_os::{fork, random};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep between two looks at whether the others live.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The most participants. Numbers of rounds and participants stay below 2^62, or the words are damaged.
const SIZE_MAX: u64 = 1 << 32;
const COUNT_MAX: u64 = 1 << 62;

/// A participant of a barrier between processes. The key is its own. Dropping it leaves: the others go on without.
///
/// In a forked child it is the parent's: dropping it there does nothing, and the child joins by itself.
#[derive(Debug)]
pub struct Barrier {
    store: Arc<SharedEngine>,
    key: Vec<u8>,
    /// That of the barrier which it joined.
    id: u64,
    me: Participant,
    /// The round that this one has arrived for.
    target: Option<u64>,
    born: u64,
}

/// All participants have arrived: the result of [`Barrier::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    /// Number of the round, from 1.
    pub round: u64,
    /// How many participants had died or left by then.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Participant {
    client: u64,
    /// Tells those of one client apart.
    number: u64,
    /// The last round that it arrived for.
    arrived: u64,
}

/// What the key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    round: u64,
    size: u64,
    lost: u64,
    /// What `lost` was when the round opened.
    lost_then: u64,
    /// Participants so far, for their numbers.
    joined: u64,
    /// Drawn when the barrier is made: one that is made under the same key after a clear is another.
    id: u64,
    present: Vec<Participant>,
}

impl State {
    fn decode(value: &[u8]) -> Result<State, QueueError> {
        let word = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let words: Vec<u64> = value.chunks_exact(8).map(word).collect();
        match words.split_first_chunk::<6>() {
            Some((&[round, size, lost, lost_then, joined, id], list))
                if value.len() % 8 == 0
                    && list.len() % 3 == 0
                    && size <= SIZE_MAX
                    && [round, lost, lost_then, joined].iter().all(|count| *count <= COUNT_MAX) =>
            {
                let present = list.chunks_exact(3);
                let present = present.map(|w| Participant { client: w[0], number: w[1], arrived: w[2] }).collect();
                Ok(State { round, size, lost, lost_then, joined, id, present })
            }
            _ => Err(QueueError::Broken("the key of a barrier holds something else")),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let head = [self.round, self.size, self.lost, self.lost_then, self.joined, self.id];
        let list = self.present.iter().flat_map(|p| [p.client, p.number, p.arrived]);
        head.into_iter().chain(list).flat_map(u64::to_le_bytes).collect()
    }

    /// Opens the barrier if all participants that are left have arrived.
    fn open_if_complete(&mut self) {
        let arrived = self.present.iter().filter(|p| p.arrived == self.round + 1).count() as u64;
        if arrived > 0 && arrived + self.lost >= self.size {
            self.round += 1;
            self.lost_then = self.lost;
        }
    }
}

impl Barrier {
    /// Joins the barrier of a key as one of `size` participants; the first to come makes it.
    ///
    /// # Errors
    /// [`Broken`](QueueError::Broken) if it is one of another size, or has that many participants;
    /// [`BadOption`](QueueError::BadOption) if the store is a cache, or the size is not from 1 to 2^32.
    pub fn join(store: &impl StoreHandle, key: &[u8], size: u64) -> Result<Barrier, QueueError> {
        let store = store.shared();
        refuse_cache(store)?;
        if !(1..=SIZE_MAX).contains(&size) {
            return Err(QueueError::BadOption("a barrier has 1 to 2^32 participants"));
        }
        let client = store.client()?.pack();
        let fresh = random::random_u64().map_err(|source| WriteError::Io { action: "draw a random number", source })?;
        let mut barrier = Barrier {
            store: store.clone(),
            key: key.to_vec(),
            id: 0,
            me: Participant { client, number: 0, arrived: 0 },
            target: None,
            born: fork::generation(),
        };
        let (mut me, mut id) = (barrier.me, 0);
        barrier.change(|state| {
            if state.size == 0 {
                (state.size, state.id) = (size, fresh);
            }
            if state.size != size {
                return Err(QueueError::Broken("there is a barrier of another size under this key"));
            }
            if state.present.len() as u64 + state.lost >= size {
                return Err(QueueError::Broken("the barrier has all its participants already"));
            }
            state.joined += 1;
            me = Participant { client, number: state.joined, arrived: state.round };
            state.present.push(me);
            id = state.id;
            Ok(())
        })?;
        (barrier.me, barrier.id) = (me, id);
        Ok(barrier)
    }

    /// Changes the state; returns what it is then.
    fn change(&self, mut act: impl FnMut(&mut State) -> Result<(), QueueError>) -> Result<State, QueueError> {
        let mut outcome = Ok(State::default());
        self.store.update_with(&self.key, |item| {
            let state = item.map_or(Ok(State::default()), |item| State::decode(&item.value));
            outcome = state.and_then(|mut state| act(&mut state).map(|()| state));
            match &outcome {
                Ok(state) if state.present.is_empty() => Update::Remove,
                Ok(state) if item.is_some_and(|item| item.value == state.encode()) => Update::Keep,
                Ok(state) => Update::Set(state.encode()),
                Err(_) => Update::Keep,
            }
        })?;
        outcome
    }

    /// The same, if it is the barrier that this one joined.
    fn change_mine(&self, mut act: impl FnMut(&mut State)) -> Result<State, QueueError> {
        self.change(|state| {
            self.is_mine(state)?;
            act(state);
            Ok(())
        })
    }

    fn is_mine(&self, state: &State) -> Result<(), QueueError> {
        if state.size != 0 && state.id == self.id {
            return Ok(());
        }
        Err(QueueError::Broken(
            "the barrier that this participant joined is gone: the store was cleared, or its key deleted; join it again",
        ))
    }

    /// Arrives, and waits until all others have, as long as `timeout`. `None`: a living participant has not; call it
    /// again to wait on.
    ///
    /// # Errors
    /// The store's; [`Broken`](QueueError::Broken) if another writer changed the key, or the store was cleared: then
    /// the barrier is gone for every participant, each of which has to join again;
    /// [`Forked`](QueueError::Forked) in a forked child.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<BarrierWaitResult>, QueueError> {
        if self.born != fork::generation() {
            return Err(QueueError::Forked);
        }
        let until = Instant::now().checked_add(timeout);
        let number = self.me.number;
        let mut target = self.target;
        self.change(|state| {
            self.is_mine(state)?;
            let round = target.unwrap_or(state.round + 1);
            target = Some(round);
            let me = state.present.iter_mut().find(|p| p.number == number);
            me.ok_or(QueueError::Broken("this participant was taken off the barrier"))?.arrived = round;
            state.open_if_complete();
            Ok(())
        })?;
        self.target = target;
        loop {
            let item = self.store.get_item(&self.key)?;
            let state = item.as_ref().map_or(Ok(State::default()), |item| State::decode(&item.value))?;
            self.is_mine(&state)?;
            if Some(state.round) >= target {
                self.target = None;
                return Ok(Some(BarrierWaitResult { round: state.round, lost: state.lost_then }));
            }
            if self.remove_crashed_participants(&state)? {
                continue;
            }
            let left = until.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.store.wait(&self.key, item.map(|item| item.metadata.version), left.min(LOOK_EVERY))?;
        }
    }

    fn remove_crashed_participants(&self, state: &State) -> Result<bool, QueueError> {
        let mut gone = Vec::new();
        for participant in &state.present {
            if ClientId::unpack(participant.client).is_none_or(|client| self.store.is_gone(client).unwrap_or(false)) {
                gone.push(participant.number);
            }
        }
        if gone.is_empty() {
            return Ok(false);
        }
        self.change_mine(|state| {
            let before = state.present.len();
            state.present.retain(|p| !gone.contains(&p.number));
            state.lost += (before - state.present.len()) as u64;
            state.open_if_complete();
        })?;
        Ok(true)
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        if self.born != fork::generation() {
            return;
        }
        let number = self.me.number;
        let _ = self.change_mine(|state| {
            let before = state.present.len();
            state.present.retain(|p| p.number != number);
            state.lost += (before - state.present.len()) as u64;
            state.open_if_complete();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_and_nonsense_is_refused() {
        let present = (1..4).map(|i| Participant { client: i, number: i * 7, arrived: i % 2 }).collect();
        let state = State { round: 5, size: 4, lost: 1, lost_then: 0, joined: 9, id: 77, present };
        assert_eq!(State::decode(&state.encode()).unwrap(), state);
        for bad in [&b""[..], b"12345678", &[0; 40], &[0; 49], &[0; 56]] {
            assert!(State::decode(bad).is_err());
        }
        // Words that would overflow when they are counted on.
        let forged = |word: usize, value: u64| {
            let mut bytes = state.encode();
            bytes[8 * word..][..8].copy_from_slice(&value.to_le_bytes());
            State::decode(&bytes)
        };
        for word in 0..5 {
            assert!(forged(word, u64::MAX).is_err() && forged(word, 1 << 63).is_err(), "word {word}");
        }
        assert!(forged(1, SIZE_MAX + 1).is_err() && forged(5, u64::MAX).is_ok());
    }
}
