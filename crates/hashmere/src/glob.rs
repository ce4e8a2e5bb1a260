//! Patterns for scans.

/// Says what is wrong with a pattern that cannot match as it was meant.
pub(crate) fn check(pattern: &[u8]) -> Result<(), &'static str> {
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        at = match byte {
            b'[' => {
                let set = Set::at(pattern, at, 0);
                let end = set.end.ok_or("a `[` without its `]`; write `\\[` for the character itself")?;
                if set.goes_down {
                    return Err("a range that goes down; write the lower end first, or a `-` that is meant as it is at an end of the set");
                }
                end
            }
            b'\\' if at + 1 == pattern.len() => {
                return Err("nothing behind its last `\\`; write `\\\\` for the character itself")
            }
            b'\\' => at + 2,
            _ => at + 1,
        };
    }
    Ok(())
}

/// Whether `text` matches `pattern`: `*`, `?`, `[a-z]`, `[!a-z]`, `\x`. Never takes more than `pattern.len() *
/// text.len()` steps.
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
        Some(b'[') => match Set::at(pattern, at, byte) {
            Set { has: true, end: Some(end), .. } => Step::Match(end),
            _ => Step::Fail,
        },
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

/// A set, `[a-z]` or `[!a-z]`; a `]` that comes first is one of its bytes.
struct Set {
    /// Whether it has the byte that was asked for.
    has: bool,
    /// Where the pattern goes on; `None`: it is not closed.
    end: Option<usize>,
    /// Whether a range of it has its upper end first, and so has no bytes.
    goes_down: bool,
}

impl Set {
    fn at(pattern: &[u8], open: usize, byte: u8) -> Set {
        let negated = matches!(pattern.get(open + 1), Some(b'!' | b'^'));
        let first = open + 1 + usize::from(negated);
        let mut set = Set { has: false, end: None, goes_down: false };
        let mut at = first;
        while let Some(low) = pattern.get(at) {
            if *low == b']' && at > first {
                set.end = Some(at + 1);
                break;
            }
            match (pattern.get(at + 1), pattern.get(at + 2)) {
                (Some(b'-'), Some(high)) if *high != b']' => {
                    set.has |= (*low..=*high).contains(&byte);
                    set.goes_down |= low > high;
                    at += 3;
                }
                _ => {
                    set.has |= *low == byte;
                    at += 1;
                }
            }
        }
        set.has ^= negated;
        set
    }
}

#[cfg(test)]
mod tests {
    use super::{check, matches};

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
            (b"\\[a", b"[a"),
            (b"*.mere", b"x.y.mere"),
            (b"user:*:name", b"user:1:2:name"),
            (b"[a-]", b"-"),
            (b"\\\\", b"\\"),
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
    fn malformed_ones_are_refused_and_no_others() {
        for bad in ["[", "[a", "x[a-", "[]", "[!]", "[^", "a\\", "*\\", "[z-a]", "[a-cz-x]", "[\\", "ok[a]then["] {
            assert!(check(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for good in [
            "",
            "*",
            "]",
            "a]",
            "[]]",
            "[!]]",
            "[]-]",
            "[a-]",
            "[-a]",
            "\\[a",
            "\\\\",
            "[\\]",
            "[a-a]",
            "[[]",
            "\\*?[!a-z]x",
        ] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good:?}");
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
