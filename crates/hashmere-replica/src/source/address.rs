//! Where a served store is, and how its server is spoken to.

use crate::error::ReplicaError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Port of a server if none is named.
const PORT: u16 = 11211;

/// A store that `hashmere serve --feed` serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub(super) place: Place,
    pub(super) authorities: Option<PathBuf>,
    /// Certificate and key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
    /// Name and password.
    pub(super) account: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp { host: String, port: u16, is_tls: bool },
    Unix(PathBuf),
}

impl Served {
    /// Whether a text is meant to be the address of a server, and not a store's name or path.
    pub fn is_address(text: &str) -> bool {
        ["tcp://", "tls://", "unix:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// `tcp://HOST:PORT`, `tls://HOST:PORT` or `unix:PATH`. The port may be left out: 11211.
    ///
    /// # Errors
    /// [`ReplicaError::Refused`]: it is none of these.
    pub fn parse(text: &str) -> Result<Served, ReplicaError> {
        let bad = |why: &str| ReplicaError::Refused {
            address: text.into(),
            why: format!("{why}; give tcp://HOST:PORT, tls://HOST:PORT or unix:PATH"),
        };
        let place = if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(bad("there is no path"));
            }
            Place::Unix(path.into())
        } else {
            let (is_tls, rest) = match (text.strip_prefix("tls://"), text.strip_prefix("tcp://")) {
                (Some(rest), _) => (true, rest),
                (None, Some(rest)) => (false, rest),
                (None, None) => return Err(bad("it is no address of a server")),
            };
            let (host, port) = split(rest).ok_or_else(|| bad("host and port cannot be told apart"))?;
            Place::Tcp { host: host.into(), port, is_tls }
        };
        Ok(Served { place, authorities: None, identity: None, account: None })
    }

    /// The authorities that may have signed the server's certificate, or that certificate itself: a PEM file. With
    /// `tls://` it is needed.
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Served {
        self.authorities = Some(file.into());
        self
    }

    /// The certificate that is shown to the server, and its key: PEM files.
    pub fn identity(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Served {
        self.identity = Some((chain.into(), key.into()));
        self
    }

    /// Name and password: the first line of a file of the same form as that of `hashmere serve -Y`.
    ///
    /// # Errors
    /// [`ReplicaError::Refused`]: the file cannot be read, or has no such line.
    pub fn account(mut self, file: &Path) -> Result<Served, ReplicaError> {
        let refused = |why: String| ReplicaError::Refused { address: self.to_string(), why };
        let text = std::fs::read(file)
            .map_err(|error| refused(format!("cannot read the account file {}: {error}", file.display())))?;
        let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let line = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")).unwrap_or_default();
        let mut parts = line.splitn(3, |byte| *byte == b':');
        match (parts.next(), parts.next()) {
            (Some(name), Some(password)) if !name.is_empty() && !name.contains(&b' ') => {
                self.account = Some((name.into(), password.into()));
                Ok(self)
            }
            _ => Err(refused(format!("the account file {} has no line name:password", file.display()))),
        }
    }
}

/// Host and port of `host:port`, `[v6]:port`, `host` or `[v6]`.
fn split(text: &str) -> Option<(&str, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
        None if rest.is_empty() => PORT,
        _ => return None,
    };
    (!host.is_empty() && port != 0 && !host.contains(['/', '@', ' '])).then_some((host, port))
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Tcp { host, port, is_tls } => {
                let scheme = if *is_tls { "tls" } else { "tcp" };
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{scheme}://{open}{host}{close}:{port}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_what_is_none() {
        for (text, shown) in [
            ("tcp://host:1", "tcp://host:1"),
            ("tcp://host", "tcp://host:11211"),
            ("tls://[::1]:7", "tls://[::1]:7"),
            ("tls://[::1]", "tls://[::1]:11211"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
        ] {
            assert!(Served::is_address(text));
            assert_eq!(Served::parse(text).unwrap().to_string(), shown);
        }
        for bad in [
            "tcp://",
            "tcp://:1",
            "tcp://h:",
            "tcp://h:0",
            "tcp://h:65536",
            "tcp://h:+1",
            "tcp://h:1:2",
            "tcp://[::1",
            "tcp://[::1]x",
            "tls://user@h:1",
            "tcp://h/p",
            "unix:",
            "sessions",
            "http://h:1",
        ] {
            let error = Served::parse(bad).unwrap_err().to_string();
            assert!(error.starts_with(bad), "{error}");
        }
        assert!(!Served::is_address("sessions") && !Served::is_address("./tcp:"));
    }
}
