//! `CONFIG`: the options of the server under Redis' names. They are set where the server is started.

use super::parse::{Args, BULK_MAX};
use super::slow;
use super::state::{Client, Step};
use crate::server::Server;
use crate::turn::Turn;
use hashmere::Mode;

/// The parameters that there are.
fn parameters(server: &Server) -> Vec<(&'static str, String)> {
    let (config, store) = (&server.config, &server.store);
    let policy = if store.mode() == Mode::Cache { "allkeys-lru" } else { "noeviction" };
    let folder = store.path().parent().map_or_else(String::new, |folder| folder.display().to_string());
    let name = store.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    vec![
        ("appendonly", "no".into()),
        ("client-output-buffer-limit", format!("normal 0 0 0 slave 0 0 0 pubsub {} 0 0", super::pubsub::PENDING_MAX)),
        ("databases", "1".into()),
        ("dbfilename", name),
        ("dir", folder),
        ("io-threads", config.threads.to_string()),
        ("latency-monitor-threshold", "0".into()),
        ("lazyfree-lazy-user-flush", "no".into()),
        ("maxclients", config.connections.to_string()),
        ("maxmemory", store.stats().bytes_max.to_string()),
        ("maxmemory-policy", policy.into()),
        ("notify-keyspace-events", config.keyspace_events.clone()),
        ("proto-max-bulk-len", config.item_max.min(BULK_MAX as u64).to_string()),
        ("save", String::new()),
        ("slowlog-log-slower-than", slow::SLOWER_THAN.as_micros().to_string()),
        ("slowlog-max-len", slow::ENTRIES_MAX.to_string()),
        ("tcp-backlog", config.backlog.to_string()),
        ("timeout", config.idle.map_or(0, |idle| idle.as_secs()).to_string()),
    ]
}

/// `CONFIG GET pattern ...`
pub fn get(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let wanted =
        |name: &str| args.from(2).any(|pattern| super::glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes()));
    let found: Vec<_> = parameters(turn.server).into_iter().filter(|(name, _)| wanted(name)).collect();
    let reply = &mut client.reply_to(turn);
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Step::Done
}

/// `CONFIG SET name value ...`
pub fn set(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let shown = String::from_utf8_lossy(args.at(2)).into_owned();
    let known = parameters(turn.server).iter().any(|(name, _)| name.eq_ignore_ascii_case(&shown));
    let text = match known && args.count() % 2 == 0 {
        true => format!(
            "ERR CONFIG SET failed (possibly related to argument '{shown}') - can't set immutable config; it is an \
             option of the server"
        ),
        false => format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"),
    };
    client.reply_to(turn).error(&text);
    Step::Done
}

/// `CONFIG RESETSTAT`.
pub fn resetstat(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    turn.server.reset_counters();
    client.reply_to(turn).ok();
    Step::Done
}

/// `CONFIG HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(client, turn, "config");
    Step::Done
}
