//! What tells this boot of the machine from every other, and randomness.

/// The random identity that the kernel gave this boot; `None` if `/proc` does not show it.
pub fn boot_id() -> Option<[u8; 16]> {
    parse(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Sixteen bytes from their text: 32 hexadecimal digits, dashes anywhere.
fn parse(text: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    let mut digits = text.trim_end().chars().filter(|&c| c != '-');
    for byte in &mut id {
        let (high, low) = (digits.next()?.to_digit(16)?, digits.next()?.to_digit(16)?);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_is_stable() {
        let id = boot_id().unwrap();
        assert_eq!(boot_id().unwrap(), id);
        assert_ne!(id, [0; 16]);
    }

    #[test]
    fn text_forms() {
        let id = parse("00112233-4455-6677-8899-aabbccddeeff\n").unwrap();
        assert_eq!(id[..3], [0x00, 0x11, 0x22]);
        assert_eq!(id[15], 0xff);
        for bad in ["", "0011", "00112233-4455-6677-8899-aabbccddeeff0", "zz112233445566778899aabbccddeeff"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
