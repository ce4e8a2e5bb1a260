//! What is counted: the words of a text.

use std::collections::HashMap;

/// Words with their numbers.
pub type Counts = HashMap<Vec<u8>, u64>;

/// Adds the words of `text` to `counts`, and returns how many they were.
///
/// A word is a run of ASCII letters and bytes from 0x80 on (so that words with accents stay whole), in lower case.
pub fn count_words(text: &[u8], counts: &mut Counts) -> u64 {
    let mut words = 0;
    let mut word = Vec::new();
    for run in text.split(|b| !is_letter(*b)).filter(|run| !run.is_empty()) {
        word.clear();
        word.extend(run.iter().map(u8::to_ascii_lowercase));
        words += 1;
        match counts.get_mut(word.as_slice()) {
            Some(count) => *count += 1,
            None => {
                counts.insert(word.clone(), 1);
            }
        }
    }
    words
}

/// How many line ends `text` has.
pub fn count_lines(text: &[u8]) -> u64 {
    text.iter().filter(|b| **b == b'\n').count() as u64
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let mut counts = Counts::new();
        assert_eq!(count_words("The cat; the_Ära 4x4\nthe".as_bytes(), &mut counts), 6);
        assert_eq!(counts[&b"the"[..]], 3);
        assert_eq!(counts["Ära".as_bytes()], 1, "only ASCII is made lower case");
        assert_eq!(counts.len(), 4);
        assert_eq!(count_lines(b"a\n\nb"), 2);
    }
}
