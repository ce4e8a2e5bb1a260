//! The addresses of sinks, as `--to` takes them.

use crate::dir::DirSink;
use crate::kafka::{KafkaOptions, KafkaSink};
use crate::nats::{NatsKind, NatsOptions, NatsSink};
use crate::redis::{RedisOptions, RedisSink};
use crate::sink::Sink;
use hashmere_tls::ClientTls;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A sink by its address:
///
/// - `nats://[USER:PASSWORD@]HOST[:PORT]/STREAM[?max_bytes=N&max_len=N&replicas=N]`
/// - `nats-kv://[USER:PASSWORD@]HOST[:PORT]/BUCKET[?replicas=N]`
/// - `redis://[USER:PASSWORD@]HOST[:PORT]/STREAM[?db=N&max_len=N]`, also `valkey://`
/// - `kafka://[USER:PASSWORD@]HOST[:PORT]/TOPIC[?partitions=N&replicas=N]`
/// - with TLS: `tls://`, `tls-kv://`, `rediss://`, `valkeys://` and `kafkas://`, with `ca=FILE` of the authorities that
///   may have signed the server's certificate, and `cert=FILE&key=FILE` to show one
/// - `dir:PATH`
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A stream or bucket of NATS JetStream.
    Nats(NatsOptions),
    /// A stream of Redis or Valkey.
    Redis(RedisOptions),
    /// A topic of Kafka.
    Kafka(KafkaOptions),
    /// A feed directory.
    Dir(PathBuf),
}

impl Target {
    /// The sink. It connects when it is asked for its position.
    pub fn sink(self) -> Box<dyn Sink> {
        match self {
            Target::Nats(options) => Box::new(NatsSink::new(options)),
            Target::Redis(options) => Box::new(RedisSink::new(options)),
            Target::Kafka(options) => Box::new(KafkaSink::new(options)),
            Target::Dir(path) => Box::new(DirSink::new(path)),
        }
    }

    /// Whether it cannot do without values.
    pub fn needs_values(&self) -> bool {
        matches!(self, Target::Dir(_) | Target::Nats(NatsOptions { kind: NatsKind::Bucket, .. }))
    }
}

/// An address that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTarget(String);

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadTarget {}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Target, BadTarget> {
        parse(text).map_err(|why| {
            BadTarget(format!(
                "{why}; write nats://HOST/STREAM, nats-kv://HOST/BUCKET, redis://HOST/STREAM, kafka://HOST/TOPIC or dir:PATH"
            ))
        })
    }
}

fn parse(text: &str) -> Result<Target, String> {
    if let Some(path) = text.strip_prefix("dir:") {
        return if path.is_empty() { Err("`dir:` without a path".into()) } else { Ok(Target::Dir(path.into())) };
    }
    let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("`{text}` is no address of a sink"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = rest.split_once('/').ok_or("the address names no stream")?;
    let name = decode(name)?;
    let (login, place) = authority.rsplit_once('@').map_or((None, authority), |(login, place)| (Some(login), place));
    let (user, password) = match login {
        None => (None, None),
        Some(login) => {
            let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
            let some = |text: &str| decode(text).map(|text| Some(text).filter(|text| !text.is_empty()));
            (some(user)?, password.map_or(Ok(None), some)?)
        }
    };
    let mut query = Query::new(query)?;
    let tls = match scheme {
        "tls" | "tls-kv" | "rediss" | "valkeys" | "kafkas" => Some(query.tls()?),
        _ => None,
    };
    let target = match scheme {
        "nats" | "nats-kv" | "tls" | "tls-kv" => {
            let (host, port) = host_and_port(place, 4222)?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(format!("`{name}` is no name in NATS: letters, digits, `_` and `-`"));
            }
            let kind = if scheme == "nats" || scheme == "tls" { NatsKind::Stream } else { NatsKind::Bucket };
            let is_stream = kind == NatsKind::Stream;
            Target::Nats(NatsOptions {
                host,
                port,
                user,
                password,
                kind,
                name,
                max_bytes: if is_stream { query.number("max_bytes")? } else { None },
                max_len: if is_stream { query.number("max_len")? } else { None },
                replicas: query.number("replicas")?.unwrap_or(0) as u32,
                tls,
            })
        }
        "redis" | "valkey" | "rediss" | "valkeys" => {
            let (host, port) = host_and_port(place, 6379)?;
            if name.is_empty() {
                return Err("the address names no stream".into());
            }
            Target::Redis(RedisOptions {
                host,
                port,
                user,
                password,
                database: query.number("db")?.unwrap_or(0) as u32,
                stream: name,
                max_len: query.number("max_len")?,
                tls,
            })
        }
        "kafka" | "kafkas" => {
            let (host, port) = host_and_port(place, 9092)?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if name.is_empty() || name.len() > 200 || !name.chars().all(is_plain) {
                return Err(format!("`{name}` is no topic: up to 200 letters, digits, `.`, `_` and `-`"));
            }
            let replicas = query.number("replicas")?.map(|replicas| replicas as u32);
            let partitions = query.number("partitions")?.unwrap_or(1);
            if !(1..=10_000).contains(&partitions) {
                return Err(format!("`partitions={partitions}` is not from 1 to 10000"));
            }
            let partitions = partitions as u32;
            Target::Kafka(KafkaOptions { host, port, user, password, topic: name, partitions, replicas, tls })
        }
        _ => return Err(format!("there is no sink `{scheme}`")),
    };
    query.finish()?;
    Ok(target)
}

fn host_and_port(place: &str, default: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("a `[` without `]`")?;
            (host, port.strip_prefix(':'))
        }
        None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("the address names no host".into());
    }
    let port = port.map_or(Ok(default), |port| port.parse().map_err(|_| format!("`{port}` is no port")))?;
    Ok((host.to_owned(), port))
}

struct Query(Vec<(String, String)>);

impl Query {
    fn new(text: &str) -> Result<Query, String> {
        let parts = text.split('&').filter(|part| !part.is_empty());
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("`{part}` has no value"))?;
            Ok((name.to_owned(), decode(value)?))
        };
        parts.map(pair).collect::<Result<_, String>>().map(Query)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.remove(at).1)
    }

    fn tls(&mut self) -> Result<ClientTls, String> {
        let authorities = self.take("ca").ok_or("TLS needs the authorities of the server's certificate: ca=FILE")?;
        let identity = match (self.take("cert"), self.take("key")) {
            (Some(chain), Some(key)) => Some((chain.into(), key.into())),
            (None, None) => None,
            _ => return Err("`cert` and `key` go together".into()),
        };
        Ok(ClientTls { authorities: authorities.into(), identity })
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| format!("`{name}={value}` is no number"))
    }

    fn finish(self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(format!("there is no option `{name}` for this sink")))
    }
}

/// `%XX` as bytes.
fn decode(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err(format!("`%` in `{text}` is not followed by two hexadecimal digits")),
        }
    }
    String::from_utf8(out).map_err(|_| format!("`{text}` is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let nats = NatsOptions { host: "h".into(), port: 4222, name: "S".into(), ..NatsOptions::default() };
        assert_eq!("nats://h/S".parse(), Ok(Target::Nats(nats.clone())));
        let login = NatsOptions {
            host: "::1".into(),
            port: 7,
            user: Some("a@b".into()),
            password: Some("p:".into()),
            max_bytes: Some(5),
            ..nats.clone()
        };
        assert_eq!("nats://a%40b:p%3A@[::1]:7/S?max_bytes=5".parse(), Ok(Target::Nats(login)));
        let bucket = NatsOptions { kind: NatsKind::Bucket, ..nats };
        assert_eq!("nats-kv://h/S".parse(), Ok(Target::Nats(bucket)));
        let redis = RedisOptions {
            host: "h".into(),
            port: 6379,
            password: Some("p".into()),
            database: 2,
            stream: "a b".into(),
            max_len: Some(9),
            ..RedisOptions::default()
        };
        assert_eq!("redis://:p@h/a%20b?db=2&max_len=9".parse(), Ok(Target::Redis(redis)));
        let kafka = KafkaOptions {
            host: "h".into(),
            port: 9092,
            user: Some("u".into()),
            password: Some("p".into()),
            topic: "a.b".into(),
            partitions: 3,
            replicas: Some(2),
            tls: None,
        };
        assert_eq!("kafka://u:p@h/a.b?partitions=3&replicas=2".parse(), Ok(Target::Kafka(kafka)));
        assert_eq!("dir:a/b".parse(), Ok(Target::Dir("a/b".into())));
        let tls = ClientTls { authorities: "a b".into(), identity: Some(("c".into(), "k".into())) };
        let secured = RedisOptions {
            host: "h".into(),
            port: 7,
            stream: "s".into(),
            max_len: Some(9),
            tls: Some(tls.clone()),
            ..RedisOptions::default()
        };
        assert_eq!("rediss://h:7/s?ca=a%20b&max_len=9&key=k&cert=c".parse(), Ok(Target::Redis(secured)));
        let bucket = NatsOptions { host: "h".into(), port: 4222, name: "S".into(), ..NatsOptions::default() };
        let bucket = NatsOptions { kind: NatsKind::Bucket, tls: Some(tls), ..bucket };
        assert_eq!("tls-kv://h/S?ca=a%20b&key=k&cert=c".parse(), Ok(Target::Nats(bucket)));
        for (bad, why) in [
            ("x", "no address"),
            ("dir:", "path"),
            ("nats://h", "no stream"),
            ("nats://h/", "no name"),
            ("nats://h/a.b", "no name"),
            ("redis://h:x/s", "port"),
            ("redis:///s", "host"),
            ("redis://h/s?len=1", "len"),
            ("nats-kv://h/s?max_len=1", "max_len"),
            ("kafka://h/a%20b", "no topic"),
            ("kafka://h/a?partitions=0", "partitions"),
            ("kafkas://h/a", "ca=FILE"),
            ("redis://h/%4", "hexadecimal"),
            ("http://h/s", "http"),
            ("tls://h/s", "ca=FILE"),
            ("rediss://h/s?ca=a&cert=b", "together"),
            ("redis://h/s?ca=a", "`ca`"),
        ] {
            let error = bad.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("dir:PATH"), "{bad}: {error}");
        }
    }
}
