//! The words of `feed`.

use crate::protocol::tokens::Tokens;
use hashmere_feed::{FeedOptions, FeedStart};

/// What other words are answered with.
pub const USAGE: &str = "CLIENT_ERROR usage: feed <token|start|now> [values] [prefix=<bytes>] [stamps]";

/// What a client wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub start: FeedStart,
    pub options: FeedOptions,
    /// Each event with the stamp of its key: for a replicator of one of two sites, which gets every key with its value.
    pub stamps: bool,
}

/// Reads them; `None`: they are others.
pub fn parse(mut tokens: Tokens<'_>) -> Option<Wanted> {
    let start = match tokens.next()? {
        b"start" => FeedStart::Start,
        b"now" => FeedStart::Now,
        token => FeedStart::At(std::str::from_utf8(token).ok()?.parse().ok()?),
    };
    let (mut values, mut stamps, mut prefix) = (false, false, None);
    for token in tokens {
        match (token, token.strip_prefix(b"prefix=")) {
            (b"values", _) if !values => values = true,
            (b"stamps", _) if !stamps => stamps = true,
            (_, Some(bytes)) if prefix.is_none() => prefix = Some(bytes),
            _ => return None,
        }
    }
    if stamps && (!values || prefix.is_some()) {
        return None;
    }
    let options = FeedOptions::new().values(values).prefix(prefix.unwrap_or_default());
    Some(Wanted { start, options, stamps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere_feed::Token;

    fn parsed(line: &str) -> Option<(FeedStart, String)> {
        let wanted = parse(Tokens::new(line.as_bytes()))?;
        assert_eq!(wanted.stamps, line.contains("stamps"));
        Some((wanted.start, format!("{:?}", wanted.options)))
    }

    #[test]
    fn words_in_any_order_once() {
        let with = |values: bool, prefix: &str| format!("{:?}", FeedOptions::new().values(values).prefix(prefix));
        assert_eq!(parsed("start"), Some((FeedStart::Start, with(false, ""))));
        assert_eq!(parsed(" now  values "), Some((FeedStart::Now, with(true, ""))));
        assert_eq!(parsed("now prefix=a=b values"), Some((FeedStart::Now, with(true, "a=b"))));
        assert_eq!(parsed("start prefix="), Some((FeedStart::Start, with(false, ""))));
        assert_eq!(parsed("start stamps values"), Some((FeedStart::Start, with(true, ""))));
        let token: Token = "hm1-0001020304050607ffffffffffffffff-1795000000000-3-77".parse().unwrap();
        assert_eq!(parsed(&format!("{token} values")), Some((FeedStart::At(token), with(true, ""))));
        for bad in [
            "",
            "values",
            "Start",
            "hm1-",
            "start now",
            "start values values",
            "start prefix=a prefix=b",
            "start value",
            "start stamps",
            "start values stamps stamps",
            "start values stamps prefix=a",
            "start noreply",
            "now\t",
            &format!("{token}-"),
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
