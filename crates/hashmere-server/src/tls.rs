//! TLS by rustls, or its absence.

#[cfg(feature = "tls")]
mod rustls_stream;

#[cfg(feature = "tls")]
pub use rustls_stream::{Acceptor, TlsStream};

#[cfg(not(feature = "tls"))]
mod absent;

#[cfg(not(feature = "tls"))]
pub use absent::{Acceptor, TlsStream};
