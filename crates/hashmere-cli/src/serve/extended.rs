//! `-o`: options with names.

use crate::text;
use hashmere_server::EventLoop;
use std::path::PathBuf;

/// Options of memcached that tune what a store does not have.
const HARMLESS: &[&str] = &[
    "modern",
    "no_modern",
    "maxconns_fast",
    "hashpower",
    "tail_repair_time",
    "hash_algorithm",
    "lru_crawler",
    "no_lru_crawler",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "lru_maintainer",
    "no_lru_maintainer",
    "hot_lru_pct",
    "warm_lru_pct",
    "hot_max_factor",
    "warm_max_factor",
    "temporary_ttl",
    "slab_reassign",
    "no_slab_reassign",
    "slab_automove",
    "no_slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "slab_chunk_max",
    "slab_sizes",
    "track_sizes",
    "no_hashexpand",
    "worker_logbuf_size",
    "watcher_logbuf_size",
    "read_buf_mem_limit",
    "resp_obj_mem_limit",
    "inline_ascii_resp",
    "no_inline_ascii_resp",
    "no_chunked_items",
    "no_drop_privileges",
    "drop_privileges",
    "ssl_session_cache",
    "ssl_wbuf_size",
    "ssl_kernel_tls",
];

/// The options, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// Seconds.
    pub idle_timeout: Option<u64>,
    /// Seconds.
    pub lease_time: Option<u64>,
    /// Seconds.
    pub drain: Option<u64>,
    /// Bytes.
    pub input_max: Option<usize>,
    /// How bytes are moved.
    pub event_loop: EventLoop,
    /// Whether accesses to keys are noted from the start.
    pub access_times: bool,
    /// PEM.
    pub chain: Option<PathBuf>,
    /// PEM.
    pub key: Option<PathBuf>,
    /// PEM.
    pub authorities: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub verify_clients: bool,
}

impl Extended {
    /// Reads them.
    pub fn parse(options: &[String]) -> Result<Extended, String> {
        let mut extended = Extended::default();
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = || value.parse::<u64>().map_err(|_| format!("-o {name} needs a number, not `{value}`"));
            match name {
                "idle_timeout" => extended.idle_timeout = Some(number()?),
                "lease_time" => match number()? {
                    seconds @ 1..=1800 => extended.lease_time = Some(seconds),
                    _ => return Err(format!("-o lease_time={value}: 1 to 1800 seconds")),
                },
                "drain" => extended.drain = Some(number()?),
                "input_max" => extended.input_max = Some(text::parse_size(value)? as usize),
                "event_loop" => extended.event_loop = event_loop(value)?,
                "access_times" => extended.access_times = true,
                "ssl_chain_cert" => extended.chain = Some(value.into()),
                "ssl_key" => extended.key = Some(value.into()),
                "ssl_ca_cert" => extended.authorities = Some(value.into()),
                // 0 none, 1 if there is one, 2 and 3 demanded.
                "ssl_verify_mode" => extended.verify_clients = number()? >= 2,
                "" => {}
                "ssl_keyformat" if ["", "1", "PEM", "pem"].contains(&value) => {}
                "ssl_keyformat" => return Err(format!("-o ssl_keyformat={value}: keys are PEM files here (1)")),
                // 0 and 1 allow older versions too, which no client needs any more.
                "ssl_min_version" if number()? <= 2 => {}
                "ssl_min_version" => {
                    return Err("-o ssl_min_version: TLS 1.2 and 1.3 are spoken, and neither is turned off".into())
                }
                "ssl_ciphers" => return Err("-o ssl_ciphers: the ciphers are those of rustls".into()),
                "sock_cookie_id" => return Err("-o sock_cookie_id: connections carry no ids for firewalls".into()),
                name if HARMLESS.contains(&name) => {}
                "no_maxconns_fast" => {
                    return Err(
                        "-o no_maxconns_fast: connections above the limit are refused here, not kept waiting".into()
                    )
                }
                name if name.starts_with("ext_") => {
                    return Err(format!("-o {name}: there is no second storage; put the store on a disk file instead"))
                }
                name if name.starts_with("proxy_") => return Err(format!("-o {name}: there is no proxy")),
                name => return Err(format!("unknown option -o {name}")),
            }
        }
        Ok(extended)
    }
}

fn event_loop(name: &str) -> Result<EventLoop, String> {
    let all = [EventLoop::Auto, EventLoop::Epoll, EventLoop::IoUring];
    let found = all.into_iter().find(|event_loop| event_loop.name() == name);
    found.ok_or_else(|| format!("-o event_loop={name}: it is auto, epoll or io_uring"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Extended, String> {
        Extended::parse(&text.split(',').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn known_harmless_and_refused() {
        let read = parse("idle_timeout=5,modern,lru_crawler,ssl_verify_mode=2,input_max=8m,idle_timeout=6").unwrap();
        // The last of a repeated one counts.
        assert_eq!((read.idle_timeout, read.input_max, read.verify_clients), (Some(6), Some(8 << 20), true));
        assert_eq!(parse("event_loop=epoll").unwrap().event_loop, EventLoop::Epoll);
        assert_eq!(parse("lease_time=1800").unwrap().lease_time, Some(1800));
        for refused in [
            "ext_path=/x:5m",
            "proxy_config=x",
            "nonsense",
            "idle_timeout=x",
            "lease_time=0",
            "lease_time=1801",
            "no_maxconns_fast",
            "sock_cookie_id=1",
            "ssl_ciphers=x",
            "ssl_keyformat=2",
            "ssl_min_version=3",
            "event_loop=kqueue",
        ] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }

    /// What memcached's help lists, and what older versions had: all that is accepted by 1.6.45 and changes no answer.
    #[test]
    fn harmless_names_of_memcached() {
        for name in [
            "maxconns_fast",
            "hashpower=20",
            "tail_repair_time=0",
            "hash_algorithm=murmur3",
            "lru_crawler",
            "no_lru_crawler",
            "lru_crawler_sleep=100",
            "lru_crawler_tocrawl=0",
            "read_buf_mem_limit=64",
            "resp_obj_mem_limit=64",
            "lru_maintainer",
            "no_lru_maintainer",
            "hot_lru_pct=20",
            "warm_lru_pct=40",
            "hot_max_factor=0.2",
            "warm_max_factor=2.0",
            "temporary_ttl=61",
            "slab_reassign",
            "no_slab_reassign",
            "slab_automove=1",
            "no_slab_automove",
            "slab_automove_window=30",
            "slab_automove_ratio=0.8",
            "slab_automove_freeratio=0.01",
            "slab_chunk_max=512",
            "slab_sizes=100-200",
            "watcher_logbuf_size=256",
            "worker_logbuf_size=64",
            "track_sizes",
            "no_hashexpand",
            "modern",
            "no_modern",
            "inline_ascii_resp",
            "no_inline_ascii_resp",
            "no_chunked_items",
            "drop_privileges",
            "no_drop_privileges",
            "ssl_session_cache",
            "ssl_kernel_tls",
            "ssl_wbuf_size=16",
            "ssl_min_version=2",
            "ssl_keyformat=1",
        ] {
            assert_eq!(parse(name), Ok(Extended::default()), "{name}");
        }
    }
}
