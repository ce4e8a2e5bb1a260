//! What tells this boot of the machine from every other, and randomness.

use std::io;

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

/// 64 bits from the kernel's random generator, good enough for secrets.
///
/// # Errors
/// Only where a sandbox forbids `getrandom`.
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: the pointer and the length are those of `bytes`.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // Requests of at most 256 bytes are never answered in part.
        if got == 8 {
            return Ok(u64::from_le_bytes(bytes));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

/// A random UUID (version 4 of RFC 9562), as the two words that hold its 16 bytes in the order in which it is written.
///
/// # Errors
/// As [`random_u64`].
pub fn random_uuid() -> io::Result<[u64; 2]> {
    let (first, second) = (random_u64()?, random_u64()?);
    // The version is in the upper half of byte 6, the variant in the upper two bits of byte 8.
    Ok([first & !(0xf0 << 48) | 0x40 << 48, second & !0xc0 | 0x80])
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
    fn a_uuid_is_random_and_says_its_version() {
        let [uuid, other] = [random_uuid().unwrap(), random_uuid().unwrap()];
        assert_ne!(uuid, other);
        for [first, second] in [uuid, other] {
            assert_eq!(first.to_le_bytes()[6] >> 4, 4);
            assert_eq!(second.to_le_bytes()[0] >> 6, 0b10);
        }
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

    #[test]
    fn random_differs() {
        assert_ne!(random_u64().unwrap(), random_u64().unwrap());
    }
}
