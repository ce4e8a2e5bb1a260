//! TLS to a server.

use super::address::Served;
use super::failed::Failed;
pub(super) use hashmere_tls::TlsStream;
use hashmere_tls::{ClientTls, TlsError};
use std::net::TcpStream;

/// Makes sure of the server.
pub(super) fn connect(served: &Served, host: &str, socket: TcpStream) -> Result<TlsStream, Failed> {
    let Some(authorities) = served.authorities.clone() else {
        return Err(Failed::Final("tls:// needs the authorities of the server's certificate (--ca)".into()));
    };
    let tls = ClientTls { authorities, identity: served.identity.clone() };
    tls.connect(host, socket).map_err(|error| match error {
        TlsError::Refused(why) => Failed::Final(why),
        error @ TlsError::Io(_) => Failed::Passing(error.to_string()),
    })
}
