//! Values that tell whether they are whole, and keys of many lengths.

use crate::rng::mix;

/// Lengths that values of [`encode`] have, from exactly the tag to several kilobytes.
const LENGTHS: [usize; 8] = [8, 9, 15, 16, 64, 200, 511, 3000];

/// Bytes of a value that are made word by word: all that most values have.
const MADE: usize = 64;
/// Bytes of the pieces that the rest of a value consists of.
const PIECE: usize = 1024;
/// Where pieces begin.
const PLACES: usize = 1 << 15;

/// What pieces are copied from. To make each word of a long value takes a build without optimizations longer than the
/// store takes to keep it.
static BYTES: [u8; PLACES + PIECE] = bytes();

const fn bytes() -> [u8; PLACES + PIECE] {
    let mut bytes = [0; PLACES + PIECE];
    let (mut state, mut at) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    while at < bytes.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes[at] = (state >> 56) as u8;
        at += 1;
    }
    bytes
}

/// The value for a tag: the tag, then bytes that follow from it. Its length follows from it, too.
pub fn encode(tag: u64) -> Vec<u8> {
    let choice = mix(tag) % 32;
    // The long ones are rare, so that a run is not all copying.
    let len = LENGTHS[if choice < 7 {
        choice as usize
    } else if choice == 31 {
        7
    } else {
        (choice % 5) as usize
    }];
    encode_len(tag, len)
}

/// The value for a tag with a length of the caller's choice (at least 8).
pub fn encode_len(tag: u64, len: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(len + 8);
    value.extend_from_slice(&tag.to_le_bytes());
    let mut word = tag;
    while value.len() < len.min(MADE) {
        word = mix(word);
        value.extend_from_slice(&word.to_le_bytes());
    }
    while value.len() < len {
        word = mix(word);
        let from = word as usize % PLACES;
        value.extend_from_slice(&BYTES[from..][..PIECE.min(len - value.len())]);
    }
    value.truncate(len);
    value
}

/// The tag of a value of [`encode`].
///
/// # Errors
/// What is wrong with it, if it is not exactly what `encode` made.
pub fn decode(value: &[u8]) -> Result<u64, String> {
    let tag = tag_of(value)?;
    if encode(tag) == value {
        return Ok(tag);
    }
    Err(format!("torn value: {} bytes that begin with the tag {tag:#x} but do not go on like it", value.len()))
}

/// The tag of a value of [`encode_len`].
///
/// # Errors
/// What is wrong with it, if it is not exactly what `encode_len` made.
pub fn decode_len(value: &[u8]) -> Result<u64, String> {
    let tag = tag_of(value)?;
    if encode_len(tag, value.len()) == value {
        return Ok(tag);
    }
    Err(format!("torn value: {} bytes that begin with the tag {tag:#x} but do not go on like it", value.len()))
}

fn tag_of(value: &[u8]) -> Result<u64, String> {
    let head = value.first_chunk().ok_or_else(|| format!("{} bytes are no value of ours", value.len()))?;
    Ok(u64::from_le_bytes(*head))
}

/// A key for a number; every seventh is long, so that all length encodings are met.
pub fn key(number: u64) -> Vec<u8> {
    let mut key = format!("key-{number}-").into_bytes();
    let len = [0, 0, 0, 24, 127, 128, 251][(number % 7) as usize];
    key.resize(len.max(key.len()), b'.');
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever a value is exchanged for what another has there, or moved, it is another one.
    #[test]
    fn no_part_of_a_value_is_that_of_another() {
        for tag in 0..200 {
            let (value, other) = (encode_len(tag, 5000), encode_len(tag + 1, 5000));
            for at in (8..4992).step_by(8) {
                assert_ne!(value[at..at + 8], other[at..at + 8], "tag {tag}, byte {at}");
                assert_ne!(value[at - 8..at], value[at..at + 8], "tag {tag}, byte {at}");
            }
            assert_eq!(decode_len(&value), Ok(tag));
            let torn = [&value[..2500], &other[2500..]].concat();
            assert!(decode_len(&torn).is_err(), "tag {tag}");
            assert_eq!(encode_len(tag, 1500), value[..1500], "the tag and what follows from it, whatever the length");
        }
    }

    #[test]
    fn decodes_what_it_encodes_and_nothing_else() {
        for tag in 0..500 {
            let mut value = encode(tag);
            assert_eq!(decode(&value), Ok(tag));
            if let [.., last] = &mut value[8..] {
                *last ^= 1;
                assert!(decode(&value).is_err(), "tag {tag}");
            }
            value = encode(tag);
            value.push(0);
            assert!(decode(&value).is_err(), "tag {tag}");
        }
        assert!(decode(b"").is_err());
    }
}
