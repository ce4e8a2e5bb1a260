//! Patterns for scans.

/// Whether `text` matches `pattern`: `*`, `?`, `[a-z]`, `[!a-z]`, `\x`. Never takes more than `pattern.len() * text.len()`
/// steps.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to resume after the last star: the pattern behind it, and one more byte taken by it.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match step(pattern, p, text[t]) {
            Step::Star => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Step::Match(next) => {
                p = next;
                t += 1;
                continue;
            }
            Step::Fail => {}
        }
        match &mut star {
            Some((behind, taken)) => {
                *taken += 1;
                t = *taken;
                p = *behind;
            }
            None => return false,
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

enum Step {
    Star,
    Match(usize),
    Fail,
}

fn step(pattern: &[u8], at: usize, byte: u8) -> Step {
    match pattern.get(at) {
        None => Step::Fail,
        Some(b'*') => Step::Star,
        Some(b'?') => Step::Match(at + 1),
        Some(b'[') => set(pattern, at, byte),
        Some(b'\\') if at + 1 < pattern.len() => literal(pattern[at + 1], byte, at + 2),
        Some(b) => literal(*b, byte, at + 1),
    }
}

fn literal(wanted: u8, byte: u8, next: usize) -> Step {
    if wanted == byte {
        Step::Match(next)
    } else {
        Step::Fail
    }
}

/// A set. Without its closing bracket the `[` stands for itself.
fn set(pattern: &[u8], open: usize, byte: u8) -> Step {
    let negated = matches!(pattern.get(open + 1), Some(b'!' | b'^'));
    let first = open + 1 + usize::from(negated);
    let mut at = first;
    let mut hit = false;
    while let Some(low) = pattern.get(at) {
        if *low == b']' && at > first {
            return if hit != negated { Step::Match(at + 1) } else { Step::Fail };
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some(b'-'), Some(high)) if *high != b']' => {
                hit |= (*low..=*high).contains(&byte);
                at += 3;
            }
            _ => {
                hit |= *low == byte;
                at += 1;
            }
        }
    }
    literal(b'[', byte, open + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let yes: &[(&[u8], &[u8])] = &[
            (b"", b""),
            (b"*", b""),
            (b"*", b"abc"),
            (b"a*c", b"abc"),
            (b"a*c", b"ac"),
            (b"?b?", b"abc"),
            (b"a**b", b"ab"),
            (b"[a-c]x", b"bx"),
            (b"[!a-c]x", b"dx"),
            (b"[]]", b"]"),
            (b"\\*", b"*"),
            (b"[a", b"[a"),
            (b"*.mere", b"x.y.mere"),
            (b"user:*:name", b"user:1:2:name"),
            (b"[a-]", b"-"),
            (b"\\", b"\\"),
        ];
        let no: &[(&[u8], &[u8])] = &[
            (b"", b"a"),
            (b"a*c", b"abd"),
            (b"?", b""),
            (b"[a-c]", b"d"),
            (b"[!a-c]", b"b"),
            (b"\\*", b"a"),
            (b"ab", b"abc"),
        ];
        for (p, t) in yes {
            assert!(matches(p, t), "{:?} {:?}", String::from_utf8_lossy(p), String::from_utf8_lossy(t));
        }
        for (p, t) in no {
            assert!(!matches(p, t), "{:?} {:?}", String::from_utf8_lossy(p), String::from_utf8_lossy(t));
        }
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let text = vec![b'a'; 10_000];
        let mut pattern = b"*a".repeat(200);
        pattern.push(b'b');
        assert!(!matches(&pattern, &text));
    }
}
