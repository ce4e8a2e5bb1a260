//! Counters: decimal text, so that every face reads the same.

use crate::engine::{Current, Decision, Draft, Engine, KeyHash, Writer};
use crate::error::WriteError;
use crate::fault::{self, Fault};
use crate::types::Counter;
use hashmere_format::record::Head;
use hashmere_mem::{Host, Mem};

/// Digits of the largest counter.
const DIGITS: u64 = 20;

/// What a counter call makes of a present counter.
pub enum Tick {
    /// Has this number.
    Set(u64),
    /// Goes.
    Delete,
}

impl<M: Mem, H: Host> Engine<M, H> {
    /// Counts: reads a decimal number, lets `tick` say what becomes of it, writes it back, under the key's lock.
    pub fn tick(
        &self,
        writer: &mut Writer,
        key: &[u8],
        kh: KeyHash,
        counter: Counter,
        tick: impl Fn(u64) -> Tick,
    ) -> Result<Option<u64>, WriteError> {
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
        let mut value = None;
        let mut early = None;
        if fault::is(Fault::CountEarly) {
            early = self.read(key, kh, |found| Ok(self.number(found).ok()))?.flatten();
        }
        let outcome = self.mutate(writer, key, kh, |current| {
            let (next, head) = match current {
                Some(c) => match tick(early.map_or_else(|| self.number(c), Ok)?) {
                    Tick::Delete => {
                        value = Some(0);
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
            let mut digits = [0u8; DIGITS as usize];
            let text = self.digits(next, &mut digits)?;
            let head = Head { value_len: text.len() as u64, dead: 0, version: 0, ..head };
            let draft = Draft { least, ..self.write_head(room.offset, key, kh, head, room.is_large()) };
            self.mem.write(draft.value, text);
            self.seal(&draft);
            Ok(Decision::Put(draft))
        });
        self.conclude(writer, room, outcome)?;
        Ok(value)
    }

    /// Bytes of the longest counter of this store. Where values are longer than any number nothing can be counted: that is
    /// said before room is made for such a value.
    fn counter_len(&self) -> Result<u64, WriteError> {
        match self.layout.fixed.1.map(u64::from) {
            Some(fixed) if fixed > DIGITS => Err(WriteError::WrongLength { what: "value", given: DIGITS, fixed }),
            Some(fixed) => Ok(fixed),
            None => Ok(DIGITS),
        }
    }

    fn digits<'a>(&self, mut number: u64, buffer: &'a mut [u8; DIGITS as usize]) -> Result<&'a [u8], WriteError> {
        let mut at = buffer.len();
        loop {
            at -= 1;
            buffer[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        if let Some(fixed) = self.layout.fixed.1.map(|f| f as usize) {
            let given = buffer.len() - at;
            if given > fixed {
                return Err(WriteError::WrongLength { what: "value", given: given as u64, fixed: fixed as u64 });
            }
            // In a store of fixed lengths a counter is filled up with zeros in front.
            let start = buffer.len() - fixed;
            buffer[start..at].fill(b'0');
            at = start;
        }
        Ok(&buffer[at..])
    }

    /// The number that a value spells.
    fn number(&self, current: &Current) -> Result<u64, WriteError> {
        let mut text = [0u8; 32];
        let len = current.value_len();
        let Some(text) = text.get_mut(..len) else { return Err(WriteError::NotANumber) };
        self.mem.read(current.value(), text);
        number_of(text)
    }

    /// The text of a counter, as this store keeps it.
    ///
    /// # Errors
    /// [`WriteError::WrongLength`] if values of this store have another length.
    pub fn counter_text(&self, number: u64) -> Result<Vec<u8>, WriteError> {
        let mut digits = [0u8; DIGITS as usize];
        Ok(self.digits(number, &mut digits)?.to_vec())
    }
}

/// The number that a text spells. Trailing spaces are allowed, as memcached leaves them after a decrement.
///
/// # Errors
/// [`WriteError::NotANumber`].
pub fn number_of(text: &[u8]) -> Result<u64, WriteError> {
    let text = text.trim_ascii_end();
    if text.is_empty() {
        return Err(WriteError::NotANumber);
    }
    // An error made for each digit would be dropped for each: a quarter of the instructions of an increment.
    let number = text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|d| *d < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    });
    number.ok_or(WriteError::NotANumber)
}
