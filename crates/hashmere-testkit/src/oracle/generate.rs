//! Random actions: every operation, on few keys, with the lengths at which encodings change.

use super::perform::counter;
use super::{Action, Hashed, Numbered, To, Want, Whole};
use crate::limits::wall_ms;
use crate::rng::Rng;
use hashmere::{Attributes, Counter, Ttl, Update, Version};
use std::time::Duration;

/// Lengths of special keys, one or a few of each.
const KEY_LENGTHS: [usize; 10] = [0, 1, 1, 7, 8, 9, 127, 128, 250, 251];
const VALUE_LENGTHS: [usize; 8] = [0, 1, 7, 8, 9, 255, 511, 512];
const LONG_VALUES: [usize; 6] = [4095, 4096, 4097, 5000, 9000, 20_000];

/// Makes actions.
#[derive(Debug)]
pub(crate) struct Generator {
    pub rng: Rng,
    /// How many numbered keys there are beside the special ones.
    pub keys: u64,
    /// Whether values longer than a segment are among them.
    pub long_values: bool,
    /// Percent of removals among the writes; changes in phases, so that the store grows and shrinks.
    pub removals: u64,
}

impl Generator {
    /// A key: special, or numbered.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        if self.rng.chance(25) {
            let number = self.rng.index(KEY_LENGTHS.len());
            return vec![b'A' + number as u8; KEY_LENGTHS[number]];
        }
        let number = self.rng.below(self.keys);
        format!("n{number}").into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(100) {
            0..20 => return self.rng.below(200).to_string().into_bytes(),
            20..22 => return (u64::MAX - self.rng.below(3)).to_string().into_bytes(),
            22..85 => *self.rng.pick(&VALUE_LENGTHS),
            85..97 => self.rng.index(700),
            _ if self.long_values => *self.rng.pick(&LONG_VALUES),
            _ => 100,
        };
        self.rng.bytes(len)
    }

    fn short(&mut self) -> Vec<u8> {
        let len = self.rng.index(20);
        self.rng.bytes(len)
    }

    /// Never, far away, or past; nothing that passes while a test runs.
    fn ttl(&mut self) -> Ttl {
        match self.rng.below(10) {
            0..4 => Ttl::Never,
            4..6 => Ttl::After(Duration::from_secs(3600 + self.rng.below(1 << 20))),
            6..8 => Ttl::At(wall_ms() + 3_600_000 + self.rng.below(1 << 40)),
            8 => Ttl::After(Duration::ZERO),
            _ => Ttl::At(1 + self.rng.below(1 << 30)),
        }
    }

    /// One that does not pass: what `get_and_touch` returns of a value that is gone at once is a test of its own.
    fn future(&mut self) -> Ttl {
        match self.ttl() {
            Ttl::At(ms) if ms < wall_ms() => Ttl::Never,
            Ttl::After(Duration::ZERO) => Ttl::Never,
            other => other,
        }
    }

    fn attributes(&mut self) -> Attributes {
        let flags = if self.rng.chance(50) { self.rng.word() as u32 } else { 0 };
        // Some ask for a version above the time of the day, from where versions begin.
        let asked = if flags % 5 == 1 { wall_ms() + u64::from(flags) } else { 0 };
        Attributes { flags, ttl: self.ttl(), min_version: Version(asked) }
    }

    fn counter(&mut self) -> Counter {
        let initial = if self.rng.chance(70) { Some(self.rng.below(1000)) } else { None };
        let attributes = self.attributes();
        counter(initial, attributes)
    }

    fn update(&mut self) -> Update {
        match self.rng.below(8) {
            0 => Update::Keep,
            1 => Update::Remove,
            2 => Update::SetWith(self.value(), self.attributes()),
            3 => Update::SetMinVersion(self.value(), Version(wall_ms() + (1 << 32))),
            _ => Update::Set(self.value()),
        }
    }

    /// An action on a key.
    pub(crate) fn action(&mut self) -> Action {
        if self.rng.chance(self.removals) {
            return if self.rng.chance(70) { Action::Delete } else { Action::Take };
        }
        match self.rng.below(40) {
            0..2 => Action::Get,
            2 => Action::GetInto,
            3 => Action::GetItem,
            4 => Action::View,
            5 => Action::Exists,
            6 => Action::ValueLen,
            7 => Action::Ttl,
            8..12 => Action::Set(self.value()),
            12..14 => Action::SetWith(self.value(), self.attributes()),
            14..16 => Action::Add(self.value(), self.attributes()),
            16..18 => Action::Replace(self.value(), self.attributes()),
            18 => Action::Append(self.short()),
            19 => Action::Prepend(self.short()),
            20 => Action::Reserve(self.value(), Some(Attributes::NONE)),
            21 => {
                let commit = if self.rng.chance(50) { Some(self.attributes()) } else { None };
                Action::Reserve(self.value(), commit)
            }
            22..25 => self.cas(),
            25..27 => Action::Update(self.update()),
            27 => Action::Edit(self.short()),
            28..30 => Action::Incr(self.rng.below(100), self.counter()),
            30 => Action::Decr(self.rng.below(100), self.counter()),
            31 if self.rng.chance(50) => Action::IncrBy(self.rng.below(100) as i64 - 50, self.counter()),
            31 => {
                // At times beyond what there is.
                let by = if self.rng.chance(10) { i64::MIN } else { self.rng.below(200) as i64 - 120 };
                let Counter { initial, attributes } = self.counter();
                Action::IncrSigned(by, Counter { initial: initial.map(|initial| 50 - initial as i64), attributes })
            }
            32 => Action::IncRef(self.rng.below(4)),
            33 => Action::DecRef(self.rng.below(4)),
            34 => Action::Touch(self.ttl()),
            35 => Action::GetAndTouch(self.future()),
            _ => Action::At(self.numbered()),
        }
    }

    fn cas(&mut self) -> Action {
        let want = match self.rng.below(6) {
            0 => Want::Absent,
            1 | 2 => Want::ThisVersion,
            3 => Want::OldVersion,
            4 => Want::ThisValue,
            _ => Want::Value(self.value()),
        };
        let to = match self.rng.below(4) {
            0 => To::Remove,
            1 => To::SetWith(self.value(), self.attributes()),
            _ => To::Set(self.value()),
        };
        Action::Cas(want, to)
    }

    fn numbered(&mut self) -> Numbered {
        match self.rng.below(9) {
            0 => Numbered::GetByUid,
            1 => Numbered::GetById,
            2 => Numbered::GetInto,
            3..5 => Numbered::Set(self.value()),
            5 => Numbered::Update(self.update()),
            6 => Numbered::Delete,
            7 => Numbered::GetStale,
            _ => Numbered::SetStale(self.value()),
        }
    }

    /// An action with a caller-supplied hash, and its key.
    pub(crate) fn hashed(&mut self) -> (Vec<u8>, Hashed) {
        let key = format!("h{}", self.rng.below(60)).into_bytes();
        let action = match self.rng.below(14) {
            0 => Hashed::Get,
            1 => Hashed::GetInto,
            2 => Hashed::Exists,
            3..6 => Hashed::Set(self.value()),
            6 => Hashed::Add(self.value()),
            7 | 8 => Hashed::Delete,
            9 => Hashed::Incr(self.rng.below(100), self.counter()),
            10 => Hashed::Edit(self.short()),
            11 => Hashed::SetByUid(self.value()),
            12 => Hashed::DeleteByUid,
            _ => Hashed::OtherHash,
        };
        (key, action)
    }

    /// An action on many keys or all.
    pub(crate) fn whole(&mut self) -> Whole {
        let count = self.rng.index(20);
        match self.rng.below(100) {
            0..25 => Whole::GetMany((0..count).map(|_| self.key()).collect()),
            25..35 => Whole::GetManyWith((0..count).map(|_| self.key()).collect()),
            35..55 => Whole::SetMany((0..count).map(|_| (self.key(), self.value())).collect()),
            55..70 => Whole::DeleteMany((0..count).map(|_| self.key()).collect()),
            70..75 => Whole::ScanPrefix(format!("n{}", self.rng.below(10)).into_bytes()),
            75..80 => Whole::ScanGlob(self.rng.pick(&[&b"n1*"[..], b"n?", b"n[2-4]*", b"*9", b"[!n]*"]).to_vec()),
            80..85 => Whole::Random,
            85..87 => Whole::Clear,
            87..93 => Whole::Maintain,
            93..97 => Whole::Reopen,
            _ => Whole::CloseAndOpen,
        }
    }
}
