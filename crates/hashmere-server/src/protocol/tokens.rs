//! A line as words. Only the space separates them.

/// The words of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// The words of this line.
    pub fn new(line: &'a [u8]) -> Words<'a> {
        Words { rest: line }
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

impl<'a> Iterator for Words<'a> {
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
        // Words are short: a plain loop beats a search made for long texts.
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        self.rest = more;
        Some(word)
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
        let words: Vec<&[u8]> = Words::new(b"  get a\tb  c ").collect();
        assert_eq!(words, [&b"get"[..], b"a\tb", b"c"]);
        assert_eq!(Words::new(b"   ").next(), None);
        assert_eq!((Words::new(b"a b c").len(), Words::new(b" ").is_empty()), (3, true));
    }

    #[test]
    fn line_endings_go() {
        assert_eq!(
            (chomp(b"a\r\n"), chomp(b"a\n"), chomp(b"\r\n"), chomp(b"\n")),
            (&b"a"[..], &b"a"[..], &b""[..], &b""[..])
        );
    }
}
