//! The lines of a stream. `docs/internals/protocol.md` describes them.

use crate::two_way::{Stamp, Stamped};
use hashmere_feed::{Event, Token};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Something happened; without a stamp in front, its stamp is the default one.
    Event(Stamped),
    /// Everything before the token was sent.
    Beat(Beat),
    /// The server ends the stream, and says why.
    Over(String),
}

/// A sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub token: Token,
    /// Where the feed ended.
    pub end: u64,
    /// The server's clock.
    pub ms: u64,
    /// What was asked last.
    pub answers: u64,
}

impl Line {
    /// Reads one, without its end; the error is what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Line, String> {
        if line.starts_with(b"{") {
            return event(Stamp::default(), line);
        }
        if let Some(rest) = line.strip_prefix(b"STAMP ") {
            let at = rest.iter().position(|byte| *byte == b'{').unwrap_or(rest.len());
            let text = std::str::from_utf8(&rest[..at]).ok().and_then(|text| text.strip_suffix(' '));
            let stamp = text.and_then(|text| text.parse().ok());
            return event(stamp.ok_or_else(|| format!("`{}` has no stamp", shown(line)))?, &rest[at..]);
        }
        if line.starts_with(b"SERVER_ERROR ") {
            return Ok(Line::Over(shown(&line[b"SERVER_ERROR ".len()..])));
        }
        beat(line).map(Line::Beat).ok_or_else(|| format!("`{}` is no line of a feed", shown(line)))
    }
}

fn event(stamp: Stamp, json: &[u8]) -> Result<Line, String> {
    let event = Event::from_json(json).map_err(|error| error.to_string())?;
    Ok(Line::Event(Stamped { stamp, event }))
}

fn beat(line: &[u8]) -> Option<Beat> {
    let mut words = std::str::from_utf8(line).ok()?.strip_prefix("BEAT ")?.split(' ');
    let token = words.next()?.parse().ok()?;
    let mut number = || words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    let beat = Beat { token, end: number()?, ms: number()?, answers: number()? };
    words.next().is_none().then_some(beat)
}

/// The beginning of what a server said, fit to be printed.
pub(super) fn shown(line: &[u8]) -> String {
    let text = line[..line.len().min(200)].escape_ascii().to_string();
    if line.len() > 200 {
        text + "..."
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "hm1-0001020304050607ffffffffffffffff-1795000000000-3-77";

    #[test]
    fn lines_and_what_is_none() {
        let line = format!("BEAT {TOKEN} 80 1795000000123 5");
        let beat = Beat { token: TOKEN.parse().unwrap(), end: 80, ms: 1_795_000_000_123, answers: 5 };
        assert_eq!(Line::parse(line.as_bytes()), Ok(Line::Beat(beat)));
        assert_eq!(Line::parse(b"SERVER_ERROR it is off"), Ok(Line::Over("it is off".into())));
        let mut synced = Vec::new();
        Event::Synced { token: TOKEN.parse().unwrap() }.write_json(&mut synced);
        let event = Event::Synced { token: TOKEN.parse().unwrap() };
        assert_eq!(Line::parse(&synced), Ok(Line::Event(Stamped { stamp: Stamp::default(), event: event.clone() })));
        let line_of = |stamp: &str| [format!("STAMP {stamp} ").as_bytes(), &synced].concat();
        let stamp = Stamp { version: 9, site: 0xab };
        assert_eq!(Line::parse(&line_of("9 00000000000000ab")), Ok(Line::Event(Stamped { stamp, event })));
        for bad in ["", "9", "9 ab", "9 00000000000000AB", "+9 00000000000000ab", "4398046511104 00000000000000ab"] {
            assert!(Line::parse(&line_of(bad)).is_err(), "{bad:?}");
        }
        for bad in [
            "",
            "BEAT",
            "BEAT 1 2 3 4",
            &format!("{line} "),
            &format!("{line} 6"),
            &line.replace(" 80", " +80"),
            &line.replace(" 80", " "),
            "{}",
            "{\"control\":\"x\"}",
            "\u{1}\u{7f}",
            "END",
        ] {
            assert!(Line::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(Line::parse(&[0xff; 1000]).unwrap_err().len() < 1000);
    }
}
