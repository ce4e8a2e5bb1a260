//! The words of `feed`.

use crate::protocol::tokens::Tokens;
use hashmere_feed::{FeedOptions, FeedStart};

/// What other words are answered with.
pub const USAGE: &str = "CLIENT_ERROR usage: feed <token|start|now> [values] [prefix=<bytes>]";

/// Reads them; `None`: they are others.
pub fn parse(mut tokens: Tokens<'_>) -> Option<(FeedStart, FeedOptions)> {
    let start = match tokens.next()? {
        b"start" => FeedStart::Start,
        b"now" => FeedStart::Now,
        token => FeedStart::At(std::str::from_utf8(token).ok()?.parse().ok()?),
    };
    let (mut values, mut prefix) = (false, None);
    for token in tokens {
        match token.strip_prefix(b"prefix=") {
            Some(bytes) if prefix.is_none() => prefix = Some(bytes),
            None if token == b"values" && !values => values = true,
            _ => return None,
        }
    }
    Some((start, FeedOptions::new().values(values).prefix(prefix.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere_feed::Token;

    fn parsed(line: &str) -> Option<(FeedStart, String)> {
        parse(Tokens::new(line.as_bytes())).map(|(start, options)| (start, format!("{options:?}")))
    }

    #[test]
    fn words_in_any_order_once() {
        let with = |values: bool, prefix: &str| format!("{:?}", FeedOptions::new().values(values).prefix(prefix));
        assert_eq!(parsed("start"), Some((FeedStart::Start, with(false, ""))));
        assert_eq!(parsed(" now  values "), Some((FeedStart::Now, with(true, ""))));
        assert_eq!(parsed("now prefix=a=b values"), Some((FeedStart::Now, with(true, "a=b"))));
        assert_eq!(parsed("start prefix="), Some((FeedStart::Start, with(false, ""))));
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
            "start noreply",
            "now\t",
            &format!("{token}-"),
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
