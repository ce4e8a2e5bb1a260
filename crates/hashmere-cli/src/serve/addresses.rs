//! Where to listen: `-p` and `-l` as memcached reads them.

use hashmere_server::Address;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

const PORT: u16 = 11211;

/// The addresses that the options name. Without `-l`: this machine, in both families.
pub fn resolve(port: Option<i32>, listen: &[String], unix: bool) -> Result<Vec<SocketAddr>, String> {
    let number = match port {
        None if unix && listen.is_empty() => return Ok(Vec::new()),
        Some(0) => return Ok(Vec::new()),
        None => PORT,
        Some(-1) => 0,
        Some(port) => u16::try_from(port).map_err(|_| format!("{port} is no port"))?,
    };
    if listen.is_empty() {
        return Ok(local(number));
    }
    let mut addresses = Vec::new();
    for host in listen {
        for address in one(host, number)? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    Ok(addresses)
}

fn local(port: u16) -> Vec<SocketAddr> {
    let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port);
    // A free port is free in one family only. And many machines have no IPv6.
    let has_v6 = port != 0 && TcpListener::bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0)).is_ok();
    if has_v6 {
        vec![v4, v6]
    } else {
        vec![v4]
    }
}

/// `host`, `host:port`, `[v6]:port`, or an IPv6 address by itself; `*` is everything.
fn one(text: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot use the address `{text}` (-l): {error}");
    let bare = text.strip_prefix("tcp:").unwrap_or(text);
    if bare == "*" {
        return Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)]);
    }
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Some(address) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Ok(vec![SocketAddr::new(address.parse().map_err(|error| failed(&error))?, port)]);
    }
    let found = match bare.contains(':') {
        true => bare.to_socket_addrs().map(Iterator::collect::<Vec<_>>),
        false => (bare, port).to_socket_addrs().map(Iterator::collect),
    };
    let found = found.map_err(|error| failed(&error))?;
    if found.is_empty() {
        return Err(failed(&"no such host"));
    }
    Ok(found)
}

/// The addresses that the value of an option means: `unix:FILE`, a port of this machine, or `host:port`.
pub fn named(text: &str, option: &str) -> Result<Vec<Address>, String> {
    if let Some(file) = text.strip_prefix("unix:") {
        return match file {
            "" => Err(format!("`{text}` ({option}) names no file")),
            file => Ok(vec![Address::Unix(file.into())]),
        };
    }
    if let Ok(port) = text.parse::<u16>() {
        return Ok(local(port).into_iter().map(Address::Tcp).collect());
    }
    let bare = text.strip_prefix("tcp:").unwrap_or(text);
    let is_number = bare.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number && (bare.parse::<IpAddr>().is_ok() || !bare.contains(':')) {
        return Err(format!(
            "the address `{text}` ({option}) needs a port: host:port, [v6]:port, a port, or unix:FILE"
        ));
    }
    let bare = bare.strip_prefix("*:").map_or_else(|| bare.to_string(), |port| format!("0.0.0.0:{port}"));
    let found = bare.to_socket_addrs();
    let found = found.map_err(|error| {
        format!("cannot use the address `{text}` ({option}): {error}; it is host:port, a port, or unix:FILE")
    })?;
    let found: Vec<Address> = found.map(Address::Tcp).collect();
    match found.is_empty() {
        true => Err(format!("cannot use the address `{text}` ({option}): no such host")),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(port: Option<i32>, listen: &[&str], unix: bool) -> Vec<String> {
        let listen: Vec<String> = listen.iter().map(|host| (*host).to_string()).collect();
        resolve(port, &listen, unix).unwrap().iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn addresses_as_memcached_reads_them() {
        assert_eq!(
            shown(None, &["127.0.0.1", "::1", "10.0.0.1:99", "[::1]:98"], false),
            ["127.0.0.1:11211", "[::1]:11211", "10.0.0.1:99", "[::1]:98"]
        );
        assert_eq!(shown(Some(5), &["*"], false), ["0.0.0.0:5"]);
        assert_eq!(shown(Some(0), &["127.0.0.1"], false), [""; 0]);
        assert_eq!(shown(None, &[], true), [""; 0]);
        assert_eq!(shown(Some(7), &[], true)[0], "127.0.0.1:7");
        assert_eq!(shown(Some(-1), &[], false), ["127.0.0.1:0"]);
        let named = |text| named(text, "--resp");
        assert_eq!(named("unix:/run/x"), Ok(vec![Address::Unix("/run/x".into())]));
        assert_eq!(named("127.0.0.1:9"), Ok(vec![Address::Tcp(([127, 0, 0, 1], 9).into())]));
        assert_eq!(named("*:9"), Ok(vec![Address::Tcp(([0, 0, 0, 0], 9).into())]));
        assert_eq!(named("7").map(|all| all[0].clone()), Ok(Address::Tcp(([127, 0, 0, 1], 7).into())));
        assert!(["unix:", "host", "70000", "a b:1"].iter().all(|text| named(text).is_err()));
        assert!(resolve(Some(70_000), &[], false).is_err() && resolve(None, &["a b:x".into()], false).is_err());
    }
}
