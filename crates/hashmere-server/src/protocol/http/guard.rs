//! Who may ask for what: see *Security* in `docs/internals/http.md`.

use super::head::Head;
use super::reply::Refusal;
use crate::auth;
use crate::server::Server;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Checks a request. `is_page`: it is for a file of the dashboard, which has no data.
pub fn check(server: &Server, head: &Head<'_>, is_page: bool) -> Result<(), Refusal> {
    let host = match head.fields.host {
        Some(host) if is_ours(host, &server.config.http.hosts) => host,
        Some(_) => {
            return Err(Refusal::new(
                421,
                "this server has no such name: give it with --http-host, or use the IP address",
            ))
        }
        None if head.is_old => b"",
        None => return Err(Refusal::new(400, "a request of HTTP/1.1 has a Host")),
    };
    if is_page {
        return Ok(());
    }
    let is_same_site = head.fields.fetch_site.is_none_or(|site| site == b"same-origin" || site == b"none");
    let is_same_origin = head.fields.origin.is_none_or(|origin| {
        let scheme = memchr::memmem::find(origin, b"://");
        scheme.is_some_and(|at| origin[at + 3..].eq_ignore_ascii_case(host))
    });
    if !is_same_site || !is_same_origin {
        return Err(Refusal::new(403, "a page of another site may not ask here"));
    }
    let Some(token) = server.http_token() else { return Ok(()) };
    let given = head.fields.authorization.and_then(bearer).unwrap_or_default();
    if auth::equal(&token, given) {
        return Ok(());
    }
    let header = "WWW-Authenticate: Bearer realm=\"hashmere\"\r\n".into();
    Err(Refusal { header, ..Refusal::new(401, "this needs the token of --http-token: Authorization: Bearer TOKEN") })
}

/// Checks that changes are allowed.
pub fn check_write(server: &Server) -> Result<(), Refusal> {
    if server.config.http.write {
        return Ok(());
    }
    Err(Refusal::new(403, "this server is read-only over HTTP; start it with --http-write"))
}

/// Checks that replies may name keys that the client did not name.
pub fn check_names(server: &Server) -> Result<(), Refusal> {
    if server.config.may_dump {
        return Ok(());
    }
    Err(Refusal::new(403, "listings of keys are turned off (-X)"))
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether a `Host` is an IP address, this machine by name, or a name that was given.
fn is_ours(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok() && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
    }
    let name = match host.split_once(':') {
        Some((name, port)) if is_port(port) => name,
        Some(_) => return false,
        None => host,
    };
    name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| name.eq_ignore_ascii_case(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_cannot_be_rebound() {
        let names = ["Cache.example".to_string()];
        for good in ["127.0.0.1", "127.0.0.1:80", "[::1]:8080", "[::1]", "localhost:1", "LOCALHOST", "cache.example:9"]
        {
            assert!(is_ours(good.as_bytes(), &names), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "cache.example.",
            "127.0.0.1:80:80",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
            "localhost:port",
            "user@localhost",
            "127.1",
            ":80",
        ] {
            assert!(!is_ours(bad.as_bytes(), &names), "{bad}");
        }
    }

    #[test]
    fn tokens_of_the_right_scheme() {
        assert_eq!((bearer(b"Bearer abc"), bearer(b"bearer  abc ")), (Some(&b"abc"[..]), Some(&b"abc"[..])));
        assert_eq!((bearer(b"Basic abc"), bearer(b"Bearer"), bearer(b"")), (None, None, None));
    }
}
