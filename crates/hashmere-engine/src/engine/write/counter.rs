//! Counters: decimal text, so that every language and protocol reads the same.

use crate::engine::write::counter_kind::CounterKind;
use crate::engine::write::decimal::DIGITS;
use crate::engine::write::draft::When;
use crate::engine::write::in_place::Since;
use crate::engine::{Current, Decision, Draft, Engine, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::Counter;
use hashmere_format::record::{field, Head};
use hashmere_mem::{Host, Mem};

/// What a counter call makes of a present counter.
pub enum Tick<N> {
    /// Has this number.
    Set(N),
    /// Goes.
    Delete,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Counts: reads a decimal number, lets `tick` say what it becomes, and stores that, as one step. The particulars
    /// of what was stored are left in the writer.
    #[inline(always)]
    pub fn tick<K: CounterKind>(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        kind: &K,
        counter: Counter<K::Number>,
        tick: impl Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        let least = counter.attributes.min_version.0;
        match self.tick_looked_up(writer, (key, kh), kind, least, &tick)? {
            Some(number) => Ok(Some(number)),
            None => self.tick_slowly(writer, (key, kh), kind, counter, &tick),
        }
    }

    /// Counts straight through: the number is read and the new one written before the key is locked, and under the lock
    /// one word says whether the key still has the record that was read. `None`: it has not, or the record is none that
    /// says only a number (a touch may change the expiry of one that expires in place, and the word would be the same).
    #[inline(always)]
    fn tick_looked_up<K: CounterKind>(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        kind: &K,
        least: u64,
        tick: &impl Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        const MORE: u64 = field::LONG | field::EXPIRES | field::FLAGS | field::HASHED;
        let Some(lookup) = self.look_up(key, kh) else { return Ok(None) };
        let Some(found) = lookup.found.as_ref().filter(|found| !found.header.has(MORE)) else { return Ok(None) };
        let number = self.read_number(kind, found);
        if !self.validate(found, lookup.epoch) {
            return Ok(None);
        }
        let Tick::Set(next) = tick(number.ok_or(WriteError::NotANumber)?)? else { return Ok(None) };
        let mut digits = [0u8; DIGITS];
        let text = self.digits(kind, next, &mut digits)?;
        if least == 0 && self.replace_in_place(writer, &lookup, (key, kh), text, Since::Unchanged)? {
            return Ok(Some(next));
        }
        self.align_for_next(writer, &lookup, text)?;
        let head = Head { version: least, ..Self::plain_head(key, kh, text.len() as u64) };
        let draft = self.begin_with(writer, key, kh, head)?;
        self.mem.write(draft.value, text);
        self.seal(&draft);
        self.refuse_if_poisoned()?;
        match self.put_looked_up(writer, Some(lookup), kh, &draft, When::Present) {
            Ok(None) => {
                self.abandon(writer, &Draft { ..draft });
                self.leave(writer);
                Ok(None)
            }
            Ok(Some(outcome)) => self.conclude(writer, (key, kh), draft, Ok(outcome)).map(|_| Some(next)),
            Err(error) => self.conclude(writer, (key, kh), draft, Err(error)).map(|_| None),
        }
    }

    /// The same by the whole protocol, under the key's lock.
    #[cold]
    #[inline(never)]
    fn tick_slowly<K: CounterKind>(
        &self,
        writer: &mut Writer,
        (key, kh): (&[u8], KeyHash),
        kind: &K,
        counter: Counter<K::Number>,
        tick: &dyn Fn(K::Number) -> Result<Tick<K::Number>, WriteError>,
    ) -> Result<Option<K::Number>, WriteError> {
        let wide = self.counter_len()?;
        self.admit(key.len() as u64, wide)?;
        let widest = Head {
            expires: Some(0),
            flags: 1,
            key_len: key.len() as u64,
            value_len: wide,
            hash: kh.word(),
            ..Head::default()
        };
        let least = counter.attributes.min_version.0;
        if least != 0 {
            self.ask_version(writer, least)?;
        }
        let room = self.draft(writer, key, kh, widest, wide)?;
        let (mut value, mut created) = (None, false);
        let mut early = None;
        if fault::is(Fault::CountEarly) {
            early = self.read(key, kh, |found| Ok(self.number(kind, found).ok()))?.flatten();
        }
        let outcome = self.mutate(writer, key, kh, |current| {
            let current = current.filter(|c| !kind.is_absent((self.flags_of(c) >> 32) as u32));
            created = current.is_none();
            let (next, head) = match current {
                Some(c) => match tick(early.map_or_else(|| self.number(kind, c), Ok)?)? {
                    Tick::Delete => {
                        value = Some(kind.zero());
                        return Ok(Decision::Remove);
                    }
                    Tick::Set(next) => (next, self.head_of(c)),
                },
                None => match counter.initial {
                    None => return Ok(Decision::Keep),
                    Some(initial) => (initial, self.head(key, kh, 0, counter.attributes)),
                },
            };
            value = Some(next);
            let mut digits = [0u8; DIGITS];
            let text = self.digits(kind, next, &mut digits)?;
            let head = Head { value_len: text.len() as u64, dead: 0, version: 0, member: None, ..head };
            let draft = Draft { least, ..self.write_head(room.offset, key, kh, head, room.is_large()) };
            self.mem.write(draft.value, text);
            self.seal(&draft);
            Ok(Decision::Put(draft))
        });
        self.conclude(writer, (key, kh), room, outcome)?;
        writer.stored.created = created;
        Ok(value)
    }

    /// Bytes of the longest counter of this store. Where values are longer than any number nothing can be counted: that
    /// is said before room is made for such a value.
    fn counter_len(&self) -> Result<u64, WriteError> {
        let most = DIGITS as u64;
        match self.layout.fixed.1.map(u64::from) {
            Some(fixed) if fixed > most => Err(WriteError::WrongLength { what: "value", given: most, fixed }),
            Some(fixed) => Ok(fixed),
            None => Ok(most),
        }
    }

    #[inline(always)]
    fn digits<'a, K: CounterKind>(
        &self,
        kind: &K,
        number: K::Number,
        buffer: &'a mut [u8; DIGITS],
    ) -> Result<&'a [u8], WriteError> {
        let mut at = kind.format(number, buffer);
        if self.layout.has_fixed {
            at = self.pad(at, buffer)?;
        }
        Ok(&buffer[at..])
    }

    /// In a store of fixed lengths a counter is filled up with zeros in front of its digits. Returns where it begins
    /// then.
    #[cold]
    fn pad(&self, at: usize, buffer: &mut [u8; DIGITS]) -> Result<usize, WriteError> {
        let Some(fixed) = self.layout.fixed.1.map(|fixed| fixed as usize) else { return Ok(at) };
        // Longer than any number: of such values none is a counter.
        let given = if fixed > DIGITS { DIGITS } else { DIGITS - at };
        if given > fixed || fixed > DIGITS {
            return Err(WriteError::WrongLength { what: "value", given: given as u64, fixed: fixed as u64 });
        }
        let start = DIGITS - fixed;
        let is_negative = buffer[at] == b'-';
        buffer[start..at + usize::from(is_negative)].fill(b'0');
        if is_negative {
            buffer[start] = b'-';
        }
        Ok(start)
    }

    /// The number that a value spells.
    #[inline(always)]
    fn number<K: CounterKind>(&self, kind: &K, current: &Current) -> Result<K::Number, WriteError> {
        self.read_number(kind, current).ok_or(WriteError::NotANumber)
    }

    // An error made for each number would be dropped for each: its destructor alone takes twenty instructions.
    #[inline(always)]
    fn read_number<K: CounterKind>(&self, kind: &K, current: &Current) -> Option<K::Number> {
        let mut text = [0u8; 32];
        let text = text.get_mut(..current.value_len())?;
        self.mem.read(current.value(), text);
        kind.parse(text, self.layout.has_fixed)
    }

    /// The text of a counter, as this store keeps it.
    ///
    /// # Errors
    /// [`WriteError::WrongLength`] if values of this store have another length.
    pub fn counter_text<K: CounterKind>(&self, kind: &K, number: K::Number) -> Result<Vec<u8>, WriteError> {
        let mut digits = [0u8; DIGITS];
        Ok(self.digits(kind, number, &mut digits)?.to_vec())
    }

    /// The same of a decimal fraction: in a store of fixed lengths it has zeros in front of its digits.
    pub fn fraction_text(&self, text: String) -> Vec<u8> {
        let mut text = text.into_bytes();
        if let Some(missing) = self.layout.fixed.1.and_then(|fixed| (fixed as usize).checked_sub(text.len())) {
            let at = usize::from(text.starts_with(b"-"));
            text.splice(at..at, std::iter::repeat_n(b'0', missing));
        }
        text
    }
}

/// The number after adding a signed step: below zero is zero, beyond 2^64 wraps.
pub fn step(number: u64, by: i64) -> u64 {
    if by >= 0 {
        number.wrapping_add(by.unsigned_abs())
    } else {
        number.saturating_sub(by.unsigned_abs())
    }
}
