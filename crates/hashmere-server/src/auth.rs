//! Accounts: a file of `name:password` lines.

use std::path::Path;

/// Largest account file: it is kept in memory.
const FILE_MAX: u64 = 1 << 20;
/// Shortest token: a shorter one can be guessed.
const TOKEN_MIN: usize = 16;

/// Reads a token: what a file has, without white space around it.
pub(crate) fn load_token(path: &Path) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |why: &dyn std::fmt::Display| format!("cannot use the token file {}: {why}", path.display());
    let file = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if file.permissions().mode() & 0o007 != 0 {
        return Err(failed(&"every user may read it; chmod o= makes it private"));
    }
    if file.len() > FILE_MAX {
        return Err(failed(&format_args!("it has more than {FILE_MAX} bytes")));
    }
    let token = std::fs::read(path).map_err(|error| failed(&error))?.trim_ascii().to_vec();
    if token.len() < TOKEN_MIN || !token.iter().all(u8::is_ascii_graphic) {
        return Err(failed(&format_args!("a token has at least {TOKEN_MIN} characters and no spaces within")));
    }
    Ok(token)
}

/// Names with passwords.
#[derive(Debug)]
pub struct Accounts {
    lines: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Accounts {
    /// Reads a file. Empty lines and lines that start with `#` are skipped; what follows the password behind another
    /// colon is ignored.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn load(path: &Path) -> Result<Accounts, String> {
        let failed = |why: &dyn std::fmt::Display| format!("cannot use the account file {}: {why}", path.display());
        let size = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
        if size > FILE_MAX {
            return Err(failed(&format_args!("it has more than {FILE_MAX} bytes")));
        }
        let text = std::fs::read(path).map_err(|error| failed(&error))?;
        Accounts::parse(&text).map_err(|why| failed(&why))
    }

    fn parse(text: &[u8]) -> Result<Accounts, String> {
        let mut lines = Vec::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let mut parts = line.splitn(3, |byte| *byte == b':');
            match (parts.next(), parts.next()) {
                (Some(name), Some(password)) if !name.is_empty() => lines.push((name.into(), password.into())),
                _ => return Err(format!("line {} is not name:password", number + 1)),
            }
        }
        if lines.is_empty() {
            return Err("it has no accounts".into());
        }
        Ok(Accounts { lines })
    }

    /// Whether this is one of the accounts. Takes as long for a wrong password as for a right one of the same length.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let mut admitted = false;
        for (known, secret) in &self.lines {
            admitted |= equal(known, name) & equal(secret, password);
        }
        admitted
    }
}

/// Compares without stopping at the first difference.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0u8, |differing, (x, y)| differing | (x ^ y));
    std::hint::black_box(differing) == 0 && a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_and_compared() {
        let accounts = Accounts::parse(b"# people\nada:secret\r\n\nbob::x\n").unwrap();
        assert!(accounts.admits(b"ada", b"secret") && accounts.admits(b"bob", b""));
        for (name, password) in [("ada", "secre"), ("ada", ""), ("ad", "secret"), ("", ""), ("bob", "x")] {
            assert!(!accounts.admits(name.as_bytes(), password.as_bytes()), "{name}:{password}");
        }
        assert!(
            Accounts::parse(b"").is_err() && Accounts::parse(b"ada\n").is_err() && Accounts::parse(b":x\n").is_err()
        );
    }
}
