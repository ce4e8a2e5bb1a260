//! TLS by rustls.

use super::address::Served;
use super::failed::Failed;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

/// A connection to a server that has shown its certificate.
#[derive(Debug)]
pub(super) struct TlsStream(StreamOwned<ClientConnection, TcpStream>);

impl TlsStream {
    /// Makes sure of the server.
    pub fn open(served: &Served, host: &str, mut socket: TcpStream) -> Result<TlsStream, Failed> {
        let config = config(served).map_err(Failed::Final)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Failed::Final(format!("`{host}` is no name that a certificate can have")))?;
        let mut tls =
            ClientConnection::new(Arc::new(config), name).map_err(|error| Failed::Final(error.to_string()))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(|error| match error.kind() {
                // What rustls says of what it got: another certificate, or no TLS at all.
                io::ErrorKind::InvalidData => Failed::Final(format!("TLS: {error}")),
                _ => Failed::Passing(format!("TLS: {error}")),
            })?;
        }
        Ok(TlsStream(StreamOwned::new(tls, socket)))
    }

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

fn config(served: &Served) -> Result<ClientConfig, String> {
    let file =
        served.authorities.as_deref().ok_or("tls:// needs the authorities of the server's certificate (--ca)")?;
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
    let Some((chain, key)) = &served.identity else { return Ok(builder.with_no_client_auth()) };
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| format!("cannot read the key {}: {error}", key.display()))?;
    builder
        .with_client_auth_cert(certificates(chain)?, private)
        .map_err(|error| format!("cannot use {} with {}: {error}", chain.display(), key.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read certificates from {}: {error}", path.display());
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?.collect();
    let all = all.map_err(|error| failed(&error))?;
    if all.is_empty() {
        return Err(failed(&"there are none in it"));
    }
    Ok(all)
}
