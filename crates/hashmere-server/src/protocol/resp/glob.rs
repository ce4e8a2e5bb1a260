//! Patterns as Redis reads them: like those of the store, and none is malformed.

/// Whether `text` matches `pattern`. Never takes more than `pattern.len() * text.len()` steps.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Behind the last star, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            star = Some((p, t));
            continue;
        }
        match one(pattern, p, text[t]) {
            Some(next) => (p, t) = (next, t + 1),
            None => match &mut star {
                Some((behind, taken)) => {
                    *taken += 1;
                    (p, t) = (*behind, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// Where the pattern goes on behind this byte; `None`: it does not match.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => set(pattern, at + 1, byte),
        b'\\' if at + 1 < pattern.len() => (pattern[at + 1] == byte).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

/// A set, from behind its bracket on. One that is not closed ends with the pattern.
fn set(pattern: &[u8], first: usize, byte: u8) -> Option<usize> {
    let negated = pattern.get(first) == Some(&b'^');
    let mut at = first + usize::from(negated);
    let mut has = false;
    loop {
        match (pattern.get(at), pattern.get(at + 1), pattern.get(at + 2)) {
            (None, ..) => break,
            (Some(b'\\'), Some(literal), _) => {
                has |= *literal == byte;
                at += 2;
            }
            (Some(b']'), ..) => {
                at += 1;
                break;
            }
            (Some(low), Some(b'-'), Some(high)) => {
                has |= (*low.min(high)..=*low.max(high)).contains(&byte);
                at += 3;
            }
            (Some(literal), ..) => {
                has |= *literal == byte;
                at += 1;
            }
        }
    }
    (has != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h*llo", "hllo", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[b-a]llo", "hallo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("[]a]", "a", false),
            ("[a", "a", true),
            ("[\\]]", "]", true),
            ("a\\", "a\\", true),
            ("a**b*", "axxb", true),
            ("*a*b", "aab", true),
            ("abc", "ab", false),
            ("ab", "abc", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        let mut hostile = b"*a".repeat(200);
        hostile.push(b'b');
        assert!(!matches(&hostile, &vec![b'a'; 10_000]));
    }
}
