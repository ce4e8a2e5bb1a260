//! Keys in dumps and logs: percent-encoded.

/// Appends a key with everything but letters, digits and `-._~` percent-encoded.
pub fn write(key: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_not_plain_is_encoded() {
        let mut out = Vec::new();
        super::write(b"a-b_c.d~e/f \xff", &mut out);
        assert_eq!(out, b"a-b_c.d~e%2Ff%20%FF");
    }
}
