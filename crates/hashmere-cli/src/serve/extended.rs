//! `-o`: options with names.

use crate::text;
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
    "ssl_min_version",
    "ssl_wbuf_size",
];

/// The options, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// Seconds.
    pub idle_timeout: Option<u64>,
    /// Seconds.
    pub drain: Option<u64>,
    /// Bytes.
    pub input_max: Option<usize>,
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
                "drain" => extended.drain = Some(number()?),
                "input_max" => extended.input_max = Some(text::parse_size(value)? as usize),
                "access_times" => extended.access_times = true,
                "ssl_chain_cert" => extended.chain = Some(value.into()),
                "ssl_key" => extended.key = Some(value.into()),
                "ssl_ca_cert" => extended.authorities = Some(value.into()),
                // 0 none, 1 if there is one, 2 and 3 demanded.
                "ssl_verify_mode" => extended.verify_clients = number()? >= 2,
                "" => {}
                name if HARMLESS.contains(&name) => {}
                "no_maxconns_fast" => {
                    return Err(
                        "-o no_maxconns_fast: connections above the limit are refused here, not kept waiting".into()
                    )
                }
                name if name.starts_with("ext_") => {
                    return Err(format!("-o {name}: there is no second storage; put the store on a disk file instead"))
                }
                name => return Err(format!("unknown option -o {name}")),
            }
        }
        Ok(extended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_harmless_and_refused() {
        let parse = |text: &str| Extended::parse(&text.split(',').map(String::from).collect::<Vec<_>>());
        let read = parse("idle_timeout=5,modern,lru_crawler,ssl_verify_mode=2,input_max=8m").unwrap();
        assert_eq!((read.idle_timeout, read.input_max, read.verify_clients), (Some(5), Some(8 << 20), true));
        for refused in ["ext_path=/x:5m", "nonsense", "idle_timeout=x", "no_maxconns_fast"] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }
}
