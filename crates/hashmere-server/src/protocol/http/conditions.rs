//! Conditions on the version of a key, and ranges of its value.

use super::head::Fields;
use super::reply::Refusal;
use std::ops::Range;

/// What `If-Match` or `If-None-Match` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags<'a> {
    /// Any version.
    Any,
    /// These.
    List(&'a [u8]),
}

/// What has to hold for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    None,
    /// The key is there.
    Present,
    /// The key is absent.
    Absent,
    /// The key has this version.
    Version(u64),
    /// What no key has.
    Impossible,
}

fn tags(value: &[u8]) -> Tags<'_> {
    if value == b"*" {
        Tags::Any
    } else {
        Tags::List(value)
    }
}

/// The version that a strong entity tag names.
fn version(tag: &[u8]) -> Option<u64> {
    super::number_of(tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

impl Tags<'_> {
    /// Whether a key with this version is meant. Weak tags count where `weak` is given.
    fn names(self, now: u64, weak: bool) -> bool {
        let Tags::List(list) = self else { return true };
        list.split(|byte| *byte == b',').any(|tag| {
            let tag = tag.trim_ascii();
            let tag = if weak { tag.strip_prefix(b"W/").unwrap_or(tag) } else { tag };
            version(tag) == Some(now)
        })
    }
}

/// What a change demands.
pub fn demand(fields: &Fields<'_>) -> Result<Demand, Refusal> {
    match (fields.if_match.map(tags), fields.if_none_match.map(tags)) {
        (None, None) => Ok(Demand::None),
        (Some(Tags::Any), None) => Ok(Demand::Present),
        (Some(Tags::List(list)), None) if list.contains(&b',') => {
            Err(Refusal::new(400, "the If-Match of a change names one version"))
        }
        (Some(Tags::List(tag)), None) => Ok(version(tag).map_or(Demand::Impossible, Demand::Version)),
        (None, Some(Tags::Any)) => Ok(Demand::Absent),
        (None, Some(Tags::List(_))) => Err(Refusal::new(400, "the If-None-Match of a change is *")),
        (Some(_), Some(_)) => Err(Refusal::new(400, "a change has If-Match or If-None-Match, not both")),
    }
}

/// Whether a read has conditions, or wants a part.
pub fn has_any(fields: &Fields<'_>) -> bool {
    fields.if_match.is_some() || fields.if_none_match.is_some() || fields.range.is_some()
}

/// The status that the conditions of a read give a key with this version; `None`: they hold.
pub fn of_read(fields: &Fields<'_>, now: u64) -> Option<u16> {
    if fields.if_match.is_some_and(|value| !tags(value).names(now, false)) {
        return Some(412);
    }
    fields.if_none_match.is_some_and(|value| tags(value).names(now, true)).then_some(304)
}

/// The part that a read wants of a value of this length; `None`: all of it.
///
/// # Errors
/// No byte of it is there.
pub fn range(fields: &Fields<'_>, now: u64, len: u64) -> Result<Option<Range<u64>>, ()> {
    let Some(wanted) = fields.range else { return Ok(None) };
    if fields.if_range.is_some_and(|tag| version(tag) != Some(now)) {
        return Ok(None);
    }
    // What is not understood, several ranges among them, is answered with all.
    let Some((first, last)) = wanted.strip_prefix(b"bytes=").and_then(halves) else { return Ok(None) };
    let (start, end) = match (super::number_of(first), super::number_of(last)) {
        (Some(start), None) if last.is_empty() => (start, len),
        (Some(start), Some(last)) if start <= last => (start, last.saturating_add(1).min(len)),
        (None, Some(most)) if first.is_empty() => (if most == 0 { len } else { len.saturating_sub(most) }, len),
        _ => return Ok(None),
    };
    if start < len {
        Ok(Some(start..end))
    } else {
        Err(())
    }
}

fn halves(range: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'-', range)?;
    Some((&range[..at], &range[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        let of = |text: &str, condition: Option<&'static [u8]>| {
            let fields = Fields { range: Some(text.as_bytes()), if_range: condition, ..Fields::default() };
            range(&fields, 7, 10)
        };
        for (text, expected) in [
            ("bytes=0-0", Ok(Some(0..1))),
            ("bytes=2-5", Ok(Some(2..6))),
            ("bytes=2-", Ok(Some(2..10))),
            ("bytes=-3", Ok(Some(7..10))),
            ("bytes=-30", Ok(Some(0..10))),
            ("bytes=9-18446744073709551615", Ok(Some(9..10))),
            ("bytes=10-", Err(())),
            ("bytes=-0", Err(())),
            ("bytes=5-2", Ok(None)),
            ("bytes=0-1,3-4", Ok(None)),
            ("bytes=a-b", Ok(None)),
            ("bytes=-", Ok(None)),
            ("lines=1-2", Ok(None)),
        ] {
            assert_eq!(of(text, None), expected, "{text}");
        }
        assert_eq!((of("bytes=1-", Some(b"\"7\"")), of("bytes=1-", Some(b"\"8\""))), (Ok(Some(1..10)), Ok(None)));
        assert_eq!(of("bytes=1-", Some(b"W/\"7\"")), Ok(None));
    }

    #[test]
    fn conditions_of_reads_and_changes() {
        let with = |matches, none| Fields { if_match: matches, if_none_match: none, ..Fields::default() };
        let read = |matches: Option<&'static str>, none: Option<&'static str>| {
            of_read(&with(matches.map(str::as_bytes), none.map(str::as_bytes)), 7)
        };
        assert_eq!(
            (read(Some("\"7\""), None), read(Some("\"6\", \"7\""), None), read(Some("*"), None)),
            (None, None, None)
        );
        assert_eq!((read(Some("W/\"7\""), None), read(Some("7"), None)), (Some(412), Some(412)));
        assert_eq!(
            (read(None, Some("W/\"7\"")), read(None, Some("*")), read(None, Some("\"8\""))),
            (Some(304), Some(304), None)
        );
        let change = |matches: Option<&'static str>, none: Option<&'static str>| {
            demand(&with(matches.map(str::as_bytes), none.map(str::as_bytes))).map_err(|refusal| refusal.status)
        };
        assert_eq!(change(Some("\"7\""), None), Ok(Demand::Version(7)));
        assert_eq!((change(Some("*"), None), change(None, Some("*"))), (Ok(Demand::Present), Ok(Demand::Absent)));
        assert_eq!(
            (change(Some("W/\"7\""), None), change(Some("\"x\""), None)),
            (Ok(Demand::Impossible), Ok(Demand::Impossible))
        );
        assert_eq!((change(Some("\"1\", \"2\""), None), change(None, Some("\"1\""))), (Err(400), Err(400)));
    }
}
