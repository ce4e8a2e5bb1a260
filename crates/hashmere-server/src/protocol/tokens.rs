//! A line as words. Only the space separates them.

/// The words of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// The words of this line.
    pub fn new(line: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: line }
    }

    /// What was not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.count()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.rest.iter().all(|byte| *byte == b' ')
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        while let [b' ', more @ ..] = rest {
            rest = more;
        }
        if rest.is_empty() {
            self.rest = rest;
            return None;
        }
        // Tokens are short: a plain loop beats a search made for long texts.
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (token, more) = rest.split_at(end);
        self.rest = more;
        Some(token)
    }
}

/// A line without its line ending.
#[inline]
pub fn chomp(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_separate() {
        let tokens: Vec<&[u8]> = Tokens::new(b"  get a\tb  c ").collect();
        assert_eq!(tokens, [&b"get"[..], b"a\tb", b"c"]);
        assert_eq!(Tokens::new(b"   ").next(), None);
        assert_eq!((Tokens::new(b"a b c").len(), Tokens::new(b" ").is_empty()), (3, true));
    }

    #[test]
    fn line_endings_go() {
        assert_eq!(
            (chomp(b"a\r\n"), chomp(b"a\n"), chomp(b"\r\n"), chomp(b"\n")),
            (&b"a"[..], &b"a"[..], &b""[..], &b""[..])
        );
    }
}
