//! Bodies in chunks.

use super::reply::Refusal;

/// Longest line with the length of a chunk, its extensions included.
const LINE_MAX: usize = 256;
/// Framing that a body may have beside an eighth of its length.
const FRAMING_FREE: usize = 64 << 10;

/// How far a body was read: it goes on there when there is more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chunks {
    /// What is behind this is not looked at yet.
    at: usize,
    /// Bytes of the body up to there.
    len: usize,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// More is needed: this many bytes in all, as far as is known.
    More(usize),
    /// It ends here.
    End(usize),
}

impl Chunks {
    /// Reads on in `input`, which begins with the first chunk. At most `most` bytes of body.
    pub fn read(&mut self, input: &[u8], most: u64) -> Result<Read, Refusal> {
        loop {
            if self.at - self.len > FRAMING_FREE + self.len / 8 {
                return Err(Refusal::new(413, "the chunks are too small"));
            }
            let Some((len, start)) = line(input, self.at)? else { return Ok(Read::More(0)) };
            if len == 0 {
                // No resource has a use for trailers.
                return match input.get(start..start + 2) {
                    Some(b"\r\n") => Ok(Read::End(start + 2)),
                    Some(_) => Err(Refusal::new(400, "a body in chunks has no trailers here")),
                    None if input.get(start).is_some_and(|byte| *byte != b'\r') => {
                        Err(Refusal::new(400, "a body in chunks has no trailers here"))
                    }
                    None => Ok(Read::More(start + 2)),
                };
            }
            if len.saturating_add(self.len as u64) > most {
                return Err(Refusal::new(413, "the body is longer than an item may be"));
            }
            let end = start + len as usize + 2;
            match input.get(end - 2..end) {
                Some(b"\r\n") => {}
                Some(_) => return Err(Refusal::new(400, "a chunk ends with CR LF")),
                None => return Ok(Read::More(end)),
            }
            (self.at, self.len) = (end, self.len + len as usize);
        }
    }

    /// The body, of input that was read to its end.
    pub fn join(&self, input: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (mut body, mut at) = (Vec::with_capacity(self.len), 0);
        while let Some((len, start)) = line(input, at)?.filter(|(len, _)| *len != 0) {
            at = start + len as usize + 2;
            body.extend_from_slice(input.get(start..at - 2).unwrap_or_default());
        }
        Ok(body)
    }
}

/// The length of the chunk whose line begins here, and where its bytes begin.
fn line(input: &[u8], at: usize) -> Result<Option<(u64, usize)>, Refusal> {
    let bad = || Refusal::new(400, "a chunk begins with its length, hexadecimal");
    let rest = input.get(at..).unwrap_or_default();
    let seen = &rest[..rest.len().min(LINE_MAX)];
    let Some(end) = memchr::memchr(b'\n', seen) else {
        return if seen.len() == LINE_MAX { Err(bad()) } else { Ok(None) };
    };
    let line = seen[..end].strip_suffix(b"\r").ok_or_else(bad)?;
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_ended = line.get(digits).is_none_or(|byte| matches!(byte, b';' | b' ' | b'\t'));
    if !is_ended || !(1..=15).contains(&digits) || line.contains(&b'\r') {
        return Err(bad());
    }
    let number = line[..digits]
        .iter()
        .fold(0, |number, digit| number << 4 | u64::from(char::from(*digit).to_digit(16).unwrap_or_default()));
    Ok(Some((number, at + end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_however_they_are_cut() {
        let text = b"3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\nnext";
        for step in 1..text.len() {
            let (mut chunks, mut have) = (Chunks::default(), 0);
            let end = loop {
                have = (have + step).min(text.len());
                match chunks.read(&text[..have], 100).unwrap() {
                    Read::End(end) => break end,
                    Read::More(_) => {}
                }
            };
            assert_eq!(end, text.len() - 4);
            assert_eq!(chunks.join(&text[..end]).unwrap(), b"abc0123456789abcdef");
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let status = |text: &[u8]| Chunks::default().read(text, 100).map_err(|refusal| refusal.status);
        for bad in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1\n",
            "1\r\naXX",
            "0\r\nA: b\r\n\r\n",
            "fffffffffffffffff\r\n",
        ] {
            assert_eq!(status(bad.as_bytes()), Err(400), "{bad}");
        }
        assert_eq!(status(&[b'1'; LINE_MAX]), Err(400));
        assert_eq!((status(b"65\r\n"), status(b"fffffffffffffff\r\n")), (Err(413), Err(413)));
        assert_eq!(Chunks::default().read(&b"1\r\na\r\n".repeat(50_000), 1 << 20).map_err(|r| r.status), Err(413));
        assert_eq!(
            (status(b""), status(b"1"), status(b"0\r\n")),
            (Ok(Read::More(0)), Ok(Read::More(0)), Ok(Read::More(5)))
        );
    }
}
