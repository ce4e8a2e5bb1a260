//! The protocol of Redis (RESP 2): commands are arrays of byte strings, replies have a letter in front.

use crate::net::Connection;
use std::io;

/// Replies within replies are read to this depth.
const DEPTH: u32 = 8;

/// Appends a number in decimal digits and an end of line, behind a letter.
fn head(letter: u8, number: usize, out: &mut Vec<u8>) {
    out.push(letter);
    // Almost all are short.
    if number < 10 {
        out.push(b'0' + number as u8);
    } else {
        out.extend_from_slice(number.to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the start of a command of `len` arguments, its name among them.
pub fn begin(len: usize, out: &mut Vec<u8>) {
    head(b'*', len, out);
}

/// Appends an argument.
pub fn argument(bytes: &[u8], out: &mut Vec<u8>) {
    head(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a command.
pub fn command(arguments: &[&[u8]], out: &mut Vec<u8>) {
    begin(arguments.len(), out);
    arguments.iter().for_each(|bytes| argument(bytes, out));
}

/// What a reply says, as far as it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A short text, or a number as text.
    Text(Vec<u8>),
    /// Nothing: no such key; a transaction that did not take place.
    Nil,
    /// An array without errors in it; its elements are not kept.
    Array,
    /// An error, alone or somewhere in an array.
    Error(String),
    /// An array with an error in it.
    ErrorWithin(String),
}

/// Reads one reply.
///
/// # Errors
/// Those of reading, and `InvalidData` for what is no reply.
pub fn read(connection: &mut Connection) -> io::Result<Reply> {
    read_within(connection, DEPTH)
}

fn read_within(connection: &mut Connection, depth: u32) -> io::Result<Reply> {
    let line = connection.line()?;
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "this is not the protocol of Redis");
    let (letter, rest) = line.split_first().ok_or_else(invalid)?;
    let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
    match letter {
        b'+' | b':' => Ok(Reply::Text(rest.to_vec())),
        b'-' => Ok(Reply::Error(String::from_utf8_lossy(rest).into_owned())),
        b'$' => match number().ok_or_else(invalid)? {
            -1 => Ok(Reply::Nil),
            len => {
                let len = usize::try_from(len).ok().filter(|len| *len <= 512 << 20).ok_or_else(invalid)?;
                connection.block(len).map(|bytes| Reply::Text(bytes.to_vec()))
            }
        },
        b'*' => match number().ok_or_else(invalid)? {
            -1 => Ok(Reply::Nil),
            len if depth != 0 => {
                let mut reply = Reply::Array;
                for _ in 0..len {
                    match read_within(connection, depth - 1)? {
                        Reply::Error(text) | Reply::ErrorWithin(text) => reply = Reply::ErrorWithin(text),
                        _ => {}
                    }
                }
                Ok(reply)
            }
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn commands() {
        let mut out = Vec::new();
        command(&[b"SET", b"a\r\nb", &[0xff; 12]], &mut out);
        assert_eq!(out, [&b"*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$12\r\n"[..], &[0xff; 12], b"\r\n"].concat());
    }

    #[test]
    fn replies() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::open("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server
            .write_all(
                b"+OK\r\n-ERR no\r\n:7\r\n$-1\r\n*-1\r\n$4\r\na\r\nb\r\n*2\r\n+a\r\n*1\r\n:1\r\n*2\r\n-WRONGTYPE x\r\n+OK\r\n!\r\n",
            )
            .unwrap();
        let text = |text: &[u8]| Reply::Text(text.to_vec());
        let expected = [
            text(b"OK"),
            Reply::Error("ERR no".into()),
            text(b"7"),
            Reply::Nil,
            Reply::Nil,
            text(b"a\r\nb"),
            Reply::Array,
            Reply::ErrorWithin("WRONGTYPE x".into()),
        ];
        expected.into_iter().for_each(|reply| assert_eq!(read(&mut connection).unwrap(), reply));
        assert_eq!(read(&mut connection).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(server);
        assert_eq!(read(&mut connection).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
