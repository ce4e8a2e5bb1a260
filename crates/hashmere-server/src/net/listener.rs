//! Listening sockets.

use super::mailbox::Arrival;
use super::plain::Plain;
use super::stream::Stream;
use crate::config::{Address, Config, Endpoint, Protocol};
use crate::tls::Acceptor;
use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    /// Its address, as messages and `stats conns` show it.
    pub name: String,
    /// What its connections speak.
    protocol: Protocol,
    kind: Kind,
    /// The socket file to remove at the end.
    file: Option<PathBuf>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Takes what was handed over, and opens everything that the options name.
pub fn open_all(config: &Config, inherited: Vec<OwnedFd>) -> Result<Vec<Listener>, String> {
    let open = |endpoint: &Endpoint| {
        let (opened, shown) = match &endpoint.address {
            Address::Tcp(address) => (tcp(*address, config, endpoint.protocol), address.to_string()),
            Address::Unix(path) => (unix(path, config, endpoint.protocol), path.display().to_string()),
        };
        opened.map_err(|error| format!("cannot listen on {shown}: {error}"))
    };
    let adopted = inherited.into_iter().map(|handed| adopt(handed, config.inherited_protocol));
    adopted.chain(config.endpoints.iter().map(open)).collect()
}

fn tcp(address: SocketAddr, config: &Config, protocol: Protocol) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Connections inherit it: a client that is gone without a word is noticed after hours.
    socket.set_keepalive(true)?;
    if address.is_ipv6() {
        // Each family has its own socket, so that both can be asked for.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(config.backlog)?;
    of_tcp(socket, protocol)
}

fn of_tcp(socket: Socket, protocol: Protocol) -> io::Result<Listener> {
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into());
    let name = format!("tcp:{}", listener.local_addr()?);
    Ok(Listener { name, protocol, kind: Kind::Tcp(listener), file: None })
}

fn unix(path: &Path, config: &Config, protocol: Protocol) -> io::Result<Listener> {
    // A socket file without a listener is in the way; one with a listener belongs to another server.
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before `listen`, so that no client without permission connects.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(config.unix_mode))?;
    socket.listen(config.backlog)?;
    of_unix(socket, format!("unix:{}", path.display()), Some(path.into()), protocol)
}

fn of_unix(socket: Socket, name: String, file: Option<PathBuf>, protocol: Protocol) -> io::Result<Listener> {
    socket.set_nonblocking(true)?;
    let listener = UnixListener::from_std(OwnedFd::from(socket).into());
    Ok(Listener { name, protocol, kind: Kind::Unix(listener), file })
}

fn adopt(handed: OwnedFd, protocol: Protocol) -> Result<Listener, String> {
    let socket = Socket::from(handed);
    let adopted = socket.local_addr().and_then(|address| match address.domain() {
        Domain::UNIX => of_unix(socket, "unix:handed over".into(), None, protocol),
        _ => of_tcp(socket, protocol),
    });
    adopted.map_err(|error| format!("cannot use a socket that was handed over: {error}"))
}

impl Listener {
    /// The event source to register.
    pub fn source(&mut self) -> &mut dyn Source {
        match &mut self.kind {
            Kind::Tcp(listener) => listener,
            Kind::Unix(listener) => listener,
        }
    }

    /// The next connection.
    pub fn accept(&self, tls: Option<&Acceptor>) -> io::Result<Arrival> {
        let (listener, protocol) = (self.name.clone(), self.protocol);
        match &self.kind {
            Kind::Tcp(socket) => {
                let (stream, address) = socket.accept()?;
                // Replies are written in one go; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                let stream = match tls {
                    Some(tls) => Stream::Tls(Box::new(tls.accept(stream)?)),
                    None => Stream::Plain(Plain::Tcp(stream)),
                };
                Ok(Arrival { stream, address: format!("tcp:{address}"), listener, protocol })
            }
            Kind::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                Ok(Arrival { stream: Stream::Plain(Plain::Unix(stream)), address: "unix".into(), listener, protocol })
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // It may have been removed already.
            let _ = std::fs::remove_file(file);
        }
    }
}
