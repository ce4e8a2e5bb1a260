//! TLS of what connects to servers: replicas and sinks. By rustls; the server makes sure of itself with a certificate
//! that named authorities have signed, or that is named itself.

#![forbid(unsafe_code)]

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whom to believe, and who one is. The files are read for each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// The authorities that may have signed the server's certificate, or that certificate, PEM.
    pub authorities: PathBuf,
    /// A certificate to show and its key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why there is no TLS connection.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be used, the certificate is not one to believe, or the other side speaks no TLS: trying again does
    /// not help.
    Refused(
        /// What is wrong.
        String,
    ),
    /// The connection failed.
    Io(
        /// How.
        io::Error,
    ),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Refused(why) => f.write_str(why),
            TlsError::Io(error) => write!(f, "TLS: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// A connection to a server that has shown its certificate.
#[derive(Debug)]
pub struct TlsStream(StreamOwned<ClientConnection, TcpStream>);

impl ClientTls {
    /// Makes sure of the server of this name at the other end. The socket's time-outs hold for the handshake.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn connect(&self, host: &str, mut socket: TcpStream) -> Result<TlsStream, TlsError> {
        let config = self.config().map_err(TlsError::Refused)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Refused(format!("`{host}` is no name that a certificate can have")))?;
        let mut tls =
            ClientConnection::new(Arc::new(config), name).map_err(|error| TlsError::Refused(error.to_string()))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(|error| match error.kind() {
                // What rustls says of what it got: another certificate, or no TLS at all.
                io::ErrorKind::InvalidData => TlsError::Refused(format!("TLS: {error}")),
                _ => TlsError::Io(error),
            })?;
        }
        Ok(TlsStream(StreamOwned::new(tls, socket)))
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let file = &self.authorities;
        let mut roots = RootCertStore::empty();
        for authority in certificates(file)? {
            roots.add(authority).map_err(|error| format!("cannot use {}: {error}", file.display()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot set up TLS: {error}"))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .map_err(|error| format!("cannot use {}: {error}", file.display()))?;
        let builder = builder.with_webpki_verifier(verifier);
        let Some((chain, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| format!("cannot read the key {}: {error}", key.display()))?;
        builder
            .with_client_auth_cert(certificates(chain)?, private)
            .map_err(|error| format!("cannot use {} with {}: {error}", chain.display(), key.display()))
    }
}

impl TlsStream {
    /// The socket underneath, for its time-outs.
    pub fn socket(&self) -> &TcpStream {
        &self.0.sock
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The certificates of a PEM file.
///
/// # Errors
/// It cannot be read, or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn fmt::Display| format!("cannot read certificates from {}: {error}", path.display());
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?.collect();
    let all = all.map_err(|error| failed(&error))?;
    if all.is_empty() {
        return Err(failed(&"there are none in it"));
    }
    Ok(all)
}
