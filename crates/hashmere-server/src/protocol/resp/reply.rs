//! Replies, in RESP2 and RESP3.

use super::number;

/// Where a reply is written, and in which version of the protocol.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The bytes.
    pub out: &'a mut Vec<u8>,
    /// RESP3.
    pub resp3: bool,
}

impl Reply<'_> {
    /// A line that begins with this byte and has a number.
    #[inline]
    fn head(&mut self, kind: u8, count: usize) {
        self.out.push(kind);
        number::write(count as i64, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A word.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error: its code and its text. Line ends in it become spaces.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// A number.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.out.push(b':');
        number::write(number, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        bulk_header(bytes.len(), self.out);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Bytes, or that there are none.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Nothing where there might be a value.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nothing where there might be an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// This many elements follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.head(b'*', count);
    }

    /// This many names, each with a value, follow.
    pub fn map(&mut self, count: usize) {
        match self.resp3 {
            true => self.head(b'%', count),
            false => self.head(b'*', 2 * count),
        }
    }

    /// This many different elements follow.
    pub fn set(&mut self, count: usize) {
        self.head(if self.resp3 { b'~' } else { b'*' }, count);
    }

    /// A message that is no reply, with this many elements, follows.
    pub fn push(&mut self, count: usize) {
        self.head(if self.resp3 { b'>' } else { b'*' }, count);
    }

    /// Text to be shown as it is.
    pub fn verbatim(&mut self, text: &str) {
        if !self.resp3 {
            return self.bulk(text.as_bytes());
        }
        self.head(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// The lines of a `HELP`.
    pub fn help(&mut self, name: &str, lines: &[&str]) {
        self.array(lines.len() + 3);
        self.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        lines.iter().for_each(|line| self.simple(line));
        self.simple("HELP");
        self.simple("    Print this help.");
    }
}

/// What is in front of bytes.
#[inline]
pub fn bulk_header(len: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    number::write(len as i64, out);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let write = |resp3| {
            let mut out = Vec::new();
            let mut reply = Reply { out: &mut out, resp3 };
            reply.ok();
            reply.simple("PONG");
            reply.error("ERR a\r\nb");
            reply.integer(-12);
            reply.bulk(b"a\r\nb");
            reply.bulk_or_null(None);
            reply.null_array();
            reply.array(1);
            reply.map(2);
            reply.set(3);
            reply.push(4);
            reply.verbatim("x");
            String::from_utf8(out).unwrap()
        };
        let same = "+OK\r\n+PONG\r\n-ERR a  b\r\n:-12\r\n$4\r\na\r\nb\r\n";
        assert_eq!(write(false), format!("{same}$-1\r\n*-1\r\n*1\r\n*4\r\n*3\r\n*4\r\n$1\r\nx\r\n"));
        assert_eq!(write(true), format!("{same}_\r\n_\r\n*1\r\n%2\r\n~3\r\n>4\r\n=5\r\ntxt:x\r\n"));
    }
}
