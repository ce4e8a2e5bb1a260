//! What keys are called in NATS: subjects, keys of a bucket, identifiers of messages.

use hashmere_feed::{Change, Operation};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Longest part of a key that becomes a part of a subject.
const LONGEST: usize = 64;

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'=', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends the part of a subject that a key gives: what is before its first `:`, other bytes than letters, digits, `_`
/// and `-` as `=XX`. `_` for a key without `:`, and for one with nothing or more than 64 bytes before it.
pub fn prefix(key: &[u8], out: &mut Vec<u8>) {
    match key.iter().take(LONGEST + 1).position(|&b| b == b':') {
        None | Some(0) => out.push(b'_'),
        Some(end) => key[..end].iter().for_each(|&b| if is_plain(b) { out.push(b) } else { escaped(b, out) }),
    }
}

/// Appends the name of a key in a bucket: `:` becomes `.`, so `user:7` is `user.7` and can be watched as `user.>`.
/// Other bytes than letters, digits, `_`, `-` and `/` become `=XX`, and so does a `:` that would leave a part empty,
/// and a `_` that all begins with.
pub fn bucket_key(key: &[u8], out: &mut Vec<u8>) {
    let mut before = b':';
    for (at, &byte) in key.iter().enumerate() {
        let is_last = at + 1 == key.len();
        match byte {
            b':' if before != b':' && !is_last => out.push(b'.'),
            // Names that begin with it are ours.
            b'_' if at == 0 => escaped(byte, out),
            _ if is_plain(byte) || byte == b'/' => out.push(byte),
            _ => escaped(byte, out),
        }
        before = byte;
    }
    if key.is_empty() {
        out.push(b'=');
    }
}

/// Appends what the server knows a repetition by: the store, the version and the key. A repair after a crash may have
/// published a change twice. `false`, and nothing appended, for what has no version of its own: a touch, a read.
pub fn message_id(change: &Change, out: &mut Vec<u8>) -> bool {
    const LONGEST: usize = 200;
    let letter = match change.operation {
        Operation::Set => b'u',
        Operation::Delete | Operation::Evict | Operation::Expire => b'd',
        Operation::Touch | Operation::Read => return false,
        _ => return false,
    };
    if change.key.len() > LONGEST {
        // It would be as long as the message. That it comes twice harms no consumer that looks at versions.
        return false;
    }
    out.extend_from_slice(&change.token.store_uuid().as_bytes()[..8]);
    out.push(b'-');
    out.extend_from_slice(change.version.0.to_string().as_bytes());
    out.push(letter);
    out.push(b'-');
    for &byte in &change.key {
        if byte.is_ascii_graphic() && byte != b'=' {
            out.push(byte);
        } else {
            escaped(byte, out);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere::Version;

    fn text(f: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn prefixes() {
        let long = [b'a'; 70];
        let cases: [(&[u8], &str); 8] = [
            (b"user:7", "user"),
            (b"user:7:x", "user"),
            (b"user", "_"),
            (b":x", "_"),
            (b"", "_"),
            (b"a.b*> \xff:", "a=2Eb=2A=3E=20=FF"),
            (b"a=:", "a=3D"),
            (&long, "_"),
        ];
        for (key, expected) in cases {
            assert_eq!(text(|out| prefix(key, out)), expected);
        }
    }

    #[test]
    fn keys_of_a_bucket_are_valid_and_differ() {
        let parts: [&[u8]; 9] = [b"", b"a", b":", b".", b"=", b"_", b"/", b"\xff", b"::"];
        let mut seen = std::collections::HashMap::new();
        for n in 0..parts.len().pow(3) {
            let key = [parts[n % 9], parts[n / 9 % 9], parts[n / 81]].concat();
            let name = text(|out| bucket_key(&key, out));
            assert!(!name.is_empty() && name.split('.').all(|part| !part.is_empty()), "{key:?}: {name}");
            assert!(name.bytes().all(|b| is_plain(b) || b"/=.".contains(&b)) && !name.starts_with('_'), "{name}");
            assert_eq!(*seen.entry(name.clone()).or_insert(key.clone()), key, "{name}");
        }
        assert_eq!(text(|out| bucket_key(b"user:7:name", out)), "user.7.name");
    }

    #[test]
    fn ids_are_of_a_version() {
        let token = "hm1-0001020304050607ffffffffffffffff-1-3-77".parse().unwrap();
        let change = |operation| Change::new(operation, b"a \n=".to_vec(), Version(5), token);
        assert_eq!(text(|out| assert!(message_id(&change(Operation::Set), out))), "00010203-5u-a=20=0A=3D");
        assert_eq!(text(|out| assert!(message_id(&change(Operation::Evict), out))), "00010203-5d-a=20=0A=3D");
        for operation in [Operation::Touch, Operation::Read] {
            assert_eq!(text(|out| assert!(!message_id(&change(operation), out))), "");
        }
    }
}
