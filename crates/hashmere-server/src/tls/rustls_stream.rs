//! TLS by rustls over a socket that does not block.

use crate::config::{Config, TlsFiles};
use hashmere_tls::certificates;
use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, PoisonError, RwLock};

/// Encrypted bytes that a connection may hold for a socket that takes none.
const HELD_MAX: usize = 64 << 10;

/// Makes TLS connections.
#[derive(Debug)]
pub struct Acceptor {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Acceptor {
    /// Reads certificates and key, if TLS is asked for.
    pub fn new(config: &Config) -> Result<Option<Acceptor>, String> {
        let load =
            |files: &TlsFiles| Ok(Acceptor { files: files.clone(), config: RwLock::new(Acceptor::load(files)?) });
        config.tls.as_ref().map(load).transpose()
    }

    /// Reads them again, for connections from now on.
    pub fn reload(&self) -> Result<(), String> {
        let config = Acceptor::load(&self.files)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
        let chain = certificates(&files.chain)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| format!("cannot read the key {}: {error}", files.key.display()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot set up TLS: {error}"))?;
        let builder = match &files.clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| format!("cannot use {}: {error}", path.display()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier = verifier.build().map_err(|error| format!("cannot use {}: {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder
            .with_single_cert(chain, key)
            .map_err(|error| format!("cannot use {} with {}: {error}", files.chain.display(), files.key.display()))?;
        Ok(Arc::new(config))
    }

    /// TLS over a connection; the handshake is done as bytes come.
    pub fn accept(&self, socket: TcpStream) -> io::Result<TlsStream> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(HELD_MAX));
        Ok(TlsStream { tls, socket })
    }
}

/// A TLS connection.
#[derive(Debug)]
pub struct TlsStream {
    tls: ServerConnection,
    socket: TcpStream,
}

impl TlsStream {
    /// Whether encrypted bytes wait for the socket.
    pub fn is_holding(&self) -> bool {
        self.tls.wants_write()
    }

    /// The socket underneath.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Gives the socket as many encrypted bytes as it takes.
    fn push(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            let received = self.tls.read_tls(&mut self.socket)?;
            let processed = self.tls.process_new_packets();
            match self.push() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if received == 0 {
                return Ok(0);
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // A second time when nothing was taken for want of room that there is now.
        for _ in 0..2 {
            let taken = self.tls.writer().write_vectored(pieces)?;
            match self.push() {
                Err(error) if taken == 0 || error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ if taken > 0 => return Ok(taken),
                _ => {}
            }
        }
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}
