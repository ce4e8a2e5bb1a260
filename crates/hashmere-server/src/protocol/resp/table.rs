//! The commands: their names, how many arguments they take, where their keys are, what performs them.

use super::direct::{self, Direct};
use super::keys::{change, count, expire, many, object, read, rename, set, Perform};
use super::lookup::{self, Found};
use super::parse::Args;
use super::state::{
    Command, Session, ADMIN, CONTAINER, DENY_OOM, FAST, NOT_QUEUED, NO_AUTH, NO_MULTI, PUBSUB, READ, SUBSCRIBED, WRITE,
};
use super::{auth, client, command, config, info, scan, slowlog, subscribe, transaction};

/// The command of a request: the most frequent ones are found first.
#[inline]
pub fn find(args: Args<'_>) -> Found {
    match args.at(0) {
        b"GET" | b"get" => Found::Command(&GET),
        b"SET" | b"set" => Found::Command(&SET),
        b"INCR" | b"incr" => Found::Command(&INCR),
        b"MGET" | b"mget" => Found::Command(&MGET),
        _ => lookup::find(TABLE, args),
    }
}

const NONE: Command = Command {
    name: "",
    arity: 0,
    flags: 0,
    keys: (0, 0, 0),
    group: "",
    since: "1.0.0",
    summary: "",
    direct: None,
    perform: None,
    session: None,
};

const KEY: (i32, i32, i32) = (1, 1, 1);
const KEYS: (i32, i32, i32) = (1, -1, 1);
const PAIRS: (i32, i32, i32) = (1, -1, 2);
const TWO: (i32, i32, i32) = (1, 2, 1);
const SECOND: (i32, i32, i32) = (2, 2, 1);
const NO_KEYS: (i32, i32, i32) = (0, 0, 0);

/// A command on keys.
const fn key(
    name: &'static str,
    arity: i32,
    flags: u16,
    keys: (i32, i32, i32),
    perform: Perform,
    since: &'static str,
    summary: &'static str,
) -> Command {
    let perform = Some(perform);
    Command { name, arity, flags, keys, group: "generic", since, summary, perform, ..NONE }
}

/// The same on strings.
const fn text(
    name: &'static str,
    arity: i32,
    flags: u16,
    keys: (i32, i32, i32),
    perform: Perform,
    since: &'static str,
    summary: &'static str,
) -> Command {
    Command { group: "string", ..key(name, arity, flags, keys, perform, since, summary) }
}

const fn directly(command: Command, direct: Direct) -> Command {
    Command { direct: Some(direct), ..command }
}

/// A command that is not about keys.
const fn other(
    name: &'static str,
    arity: i32,
    flags: u16,
    group: &'static str,
    session: Session,
    since: &'static str,
    summary: &'static str,
) -> Command {
    Command { name, arity, flags, keys: NO_KEYS, group, since, summary, session: Some(session), ..NONE }
}

const GET_ENTRY: Command =
    directly(text("get", 2, READ | FAST, KEY, read::get, "1.0.0", "Returns the string value of a key."), direct::get);
const SET_ENTRY: Command = directly(
    text("set", -3, WRITE | DENY_OOM, KEY, set::set, "1.0.0", "Sets the string value of a key, with options."),
    direct::set,
);
const INCR_ENTRY: Command = directly(
    text("incr", 2, WRITE | DENY_OOM | FAST, KEY, count::incr, "1.0.0", "Adds one to the number of a key."),
    direct::incr,
);
const MGET_ENTRY: Command = directly(
    text("mget", -2, READ | FAST, KEYS, read::mget, "1.0.0", "Returns the values of several keys."),
    direct::mget,
);

static GET: Command = GET_ENTRY;
static SET: Command = SET_ENTRY;
static INCR: Command = INCR_ENTRY;
static MGET: Command = MGET_ENTRY;

const W: u16 = WRITE;
const WF: u16 = WRITE | FAST;
const WM: u16 = WRITE | DENY_OOM;
const WMF: u16 = WRITE | DENY_OOM | FAST;
const RF: u16 = READ | FAST;
const FREE: u16 = NO_AUTH | SUBSCRIBED | NOT_QUEUED | FAST;
const SUB: u16 = SUBSCRIBED | PUBSUB;

/// All of them, by name.
#[rustfmt::skip]
pub static TABLE: &[Command] = &[
    text("append", 3, WMF, KEY, change::append, "2.0.0", "Appends to the value of a key."),
    other("auth", -2, NO_AUTH | FAST, "connection", auth::auth, "1.0.0", "Authenticates the connection."),
    other("client", -2, CONTAINER, "connection", client::help, "2.4.0", "Commands on connections."),
    other("client|getname", 2, 0, "connection", client::getname, "2.6.9", "Returns the name of the connection."),
    other("client|help", 2, 0, "connection", client::help, "5.0.0", "Lists the subcommands."),
    other("client|id", 2, FAST, "connection", client::id, "5.0.0", "Returns the number of the connection."),
    other("client|info", 2, 0, "connection", client::info, "6.2.0", "Describes the connection."),
    other("client|list", -2, ADMIN, "connection", client::list, "2.4.0", "Describes all connections."),
    other("client|no-evict", 3, ADMIN, "connection", client::no_evict, "7.0.0", "Accepted: no connection is evicted."),
    other("client|no-touch", 3, 0, "connection", client::no_evict, "7.2.0", "Accepted, without effect."),
    other("client|reply", 3, 0, "connection", client::reply, "3.2.0", "Sets whether commands are answered."),
    other("client|setinfo", 4, 0, "connection", client::setinfo, "7.2.0", "Names the client's library."),
    other("client|setname", 3, 0, "connection", client::setname, "2.6.9", "Names the connection."),
    other("command", -1, CONTAINER, "server", command::all, "2.8.13", "Describes all commands."),
    other("command|count", 2, 0, "server", command::count, "2.8.13", "Counts the commands."),
    other("command|docs", -2, 0, "server", command::docs, "7.0.0", "Documents commands."),
    other("command|getkeys", -3, 0, "server", command::getkeys, "2.8.13", "Extracts the keys of a command."),
    other("command|help", 2, 0, "server", command::help, "5.0.0", "Lists the subcommands."),
    other("command|info", -2, 0, "server", command::some, "2.8.13", "Describes some commands."),
    other("command|list", -2, 0, "server", command::list, "7.0.0", "Lists the names of the commands."),
    other("config", -2, CONTAINER | ADMIN, "server", config::help, "2.0.0", "Commands on the configuration."),
    other("config|get", -3, ADMIN, "server", config::get, "2.0.0", "Returns parameters of the configuration."),
    other("config|help", 2, ADMIN, "server", config::help, "5.0.0", "Lists the subcommands."),
    other("config|resetstat", 2, ADMIN, "server", config::resetstat, "2.0.0", "Sets the counters to zero."),
    other("config|set", -4, ADMIN, "server", config::set, "2.0.0", "Refused: parameters are options of the server."),
    key("copy", -3, WM, TWO, rename::copy, "6.2.0", "Copies the value of a key to another key."),
    other("dbsize", 1, RF, "server", scan::dbsize, "1.0.0", "Counts the keys."),
    directly(text("decr", 2, WMF, KEY, count::decr, "1.0.0", "Subtracts one from the number of a key."), direct::decr),
    directly(text("decrby", 3, WMF, KEY, count::decrby, "1.0.0", "Subtracts from the number of a key."), direct::decrby),
    directly(key("del", -2, W, KEYS, many::del, "1.0.0", "Deletes keys."), direct::del),
    other("discard", 1, NOT_QUEUED | FAST, "transactions", transaction::discard, "2.0.0", "Gives up a transaction."),
    other("echo", 2, FAST, "connection", client::echo, "1.0.0", "Returns its argument."),
    other("exec", 1, NOT_QUEUED, "transactions", transaction::exec, "1.2.0", "Performs a transaction."),
    directly(key("exists", -2, RF, KEYS, many::exists, "1.0.0", "Counts which of the keys exist."), direct::exists),
    key("expire", -3, WF, KEY, expire::expire, "1.0.0", "Sets the expiry of a key in seconds."),
    key("expireat", -3, WF, KEY, expire::expireat, "1.2.0", "Sets the expiry of a key to a time."),
    key("expiretime", 2, RF, KEY, expire::expiretime, "7.0.0", "Returns when a key expires."),
    other("flushall", -1, W | NO_MULTI, "server", scan::flush, "1.0.0", "Removes all keys."),
    other("flushdb", -1, W | NO_MULTI, "server", scan::flush, "1.0.0", "Removes all keys."),
    GET_ENTRY,
    text("getdel", 2, WF, KEY, read::getdel, "6.2.0", "Returns the value of a key and deletes it."),
    text("getex", -2, WF, KEY, read::getex, "6.2.0", "Returns the value of a key and sets its expiry."),
    text("getrange", 4, READ, KEY, read::getrange, "2.4.0", "Returns a part of the value of a key."),
    text("getset", 3, WMF, KEY, set::getset, "1.0.0", "Sets a key and returns its old value."),
    other("hello", -1, NO_AUTH | FAST, "connection", auth::hello, "6.0.0", "Chooses the version of the protocol."),
    INCR_ENTRY,
    directly(text("incrby", 3, WMF, KEY, count::incrby, "1.0.0", "Adds to the number of a key."), direct::incrby),
    directly(
        text("incrbyfloat", 3, WMF, KEY, count::incrbyfloat, "2.6.0", "Adds a fraction to the number of a key."),
        direct::incrbyfloat,
    ),
    other("info", -1, 0, "server", info::info, "1.0.0", "Describes the server."),
    other("keys", 2, READ, "generic", scan::keys, "1.0.0", "Returns all keys that match a pattern."),
    other("latency", -2, CONTAINER | ADMIN, "server", slowlog::latency_help, "2.8.13", "Commands on latencies."),
    other("latency|help", 2, ADMIN, "server", slowlog::latency_help, "2.8.13", "Lists the subcommands."),
    other("latency|history", 3, ADMIN, "server", slowlog::latency_none, "2.8.13", "Empty: there is no monitor."),
    other("latency|latest", 2, ADMIN, "server", slowlog::latency_none, "2.8.13", "Empty: there is no monitor."),
    other("latency|reset", -2, ADMIN, "server", slowlog::latency_reset, "2.8.13", "Resets nothing."),
    other("memory", -2, CONTAINER, "server", info::memory_help, "4.0.0", "Commands on memory."),
    other("memory|help", 2, 0, "server", info::memory_help, "4.0.0", "Lists the subcommands."),
    key("memory|usage", -3, READ, SECOND, object::memory, "4.0.0", "Estimates the memory of a key."),
    MGET_ENTRY,
    text("mset", -3, WM, PAIRS, many::mset, "1.0.1", "Sets several keys at one moment."),
    text("msetnx", -3, WM, PAIRS, many::msetnx, "1.0.1", "Sets several keys if none of them exists."),
    other("multi", 1, NOT_QUEUED | FAST, "transactions", transaction::multi, "1.2.0", "Begins a transaction."),
    key("object", -2, CONTAINER, NO_KEYS, object::kind, "2.2.3", "Commands on what is known of a key."),
    key("object|encoding", 3, READ, SECOND, object::encoding, "2.2.3", "Returns how Redis would keep the value."),
    key("object|freq", 3, READ, SECOND, object::freq, "4.0.0", "An error: accesses are not counted."),
    other("object|help", 2, 0, "generic", info::object_help, "6.2.0", "Lists the subcommands."),
    key("object|idletime", 3, READ, SECOND, object::idletime, "2.2.3", "Returns seconds since the last access."),
    key("object|refcount", 3, READ, SECOND, object::refcount, "2.2.3", "Returns 1."),
    key("persist", 2, WF, KEY, expire::persist, "2.2.0", "Removes the expiry of a key."),
    key("pexpire", -3, WF, KEY, expire::pexpire, "2.6.0", "Sets the expiry of a key in milliseconds."),
    key("pexpireat", -3, WF, KEY, expire::pexpireat, "2.6.0", "Sets the expiry of a key to a time."),
    key("pexpiretime", 2, RF, KEY, expire::pexpiretime, "7.0.0", "Returns when a key expires."),
    other("ping", -1, FAST | SUBSCRIBED, "connection", client::ping, "1.0.0", "Answers."),
    text("psetex", 4, WM, KEY, set::psetex, "2.6.0", "Sets value and expiry of a key."),
    other("psubscribe", -2, SUB, "pubsub", subscribe::psubscribe, "2.0.0", "Listens to channels that match patterns."),
    key("pttl", 2, RF, KEY, expire::pttl, "2.6.0", "Returns the milliseconds that a key has left."),
    other("publish", 3, PUBSUB | FAST, "pubsub", subscribe::publish, "2.0.0", "Sends a message to a channel."),
    other("pubsub", -2, CONTAINER, "pubsub", subscribe::help, "2.8.0", "Commands on channels."),
    other("pubsub|channels", -2, PUBSUB, "pubsub", subscribe::channels, "2.8.0", "Lists channels with subscribers."),
    other("pubsub|help", 2, 0, "pubsub", subscribe::help, "6.2.0", "Lists the subcommands."),
    other("pubsub|numpat", 2, PUBSUB, "pubsub", subscribe::numpat, "2.8.0", "Counts the patterns."),
    other("pubsub|numsub", -2, PUBSUB, "pubsub", subscribe::numsub, "2.8.0", "Counts subscribers of channels."),
    other("punsubscribe", -1, SUB, "pubsub", subscribe::punsubscribe, "2.0.0", "Ends listening to patterns."),
    other("quit", -1, FREE, "connection", client::quit, "1.0.0", "Closes the connection."),
    other("randomkey", 1, READ, "generic", scan::randomkey, "1.0.0", "Returns a random key."),
    key("rename", 3, W, TWO, rename::rename, "1.0.0", "Renames a key."),
    key("renamenx", 3, WF, TWO, rename::renamenx, "1.0.0", "Renames a key if the new name is free."),
    other("reset", 1, FREE, "connection", auth::reset, "6.2.0", "Makes the connection like a new one."),
    other("scan", -2, READ, "generic", scan::scan, "2.8.0", "Walks over the keys."),
    other("select", 2, FAST, "connection", client::select, "1.0.0", "Chooses the database: 0."),
    SET_ENTRY,
    text("setex", 4, WM, KEY, set::setex, "2.0.0", "Sets value and expiry of a key."),
    directly(text("setnx", 3, WMF, KEY, set::setnx, "1.0.0", "Sets a key if it does not exist."), direct::setnx),
    text("setrange", 4, WM, KEY, change::setrange, "2.2.0", "Overwrites a part of the value of a key."),
    other("slowlog", -2, CONTAINER | ADMIN, "server", slowlog::help, "2.2.12", "Commands on the log of slow commands."),
    other("slowlog|get", -2, ADMIN, "server", slowlog::get, "2.2.12", "Returns slow commands."),
    other("slowlog|help", 2, ADMIN, "server", slowlog::help, "6.2.0", "Lists the subcommands."),
    other("slowlog|len", 2, ADMIN, "server", slowlog::len, "2.2.12", "Counts the slow commands."),
    other("slowlog|reset", 2, ADMIN, "server", slowlog::reset, "2.2.12", "Forgets the slow commands."),
    text("strlen", 2, RF, KEY, read::strlen, "2.2.0", "Returns the length of the value of a key."),
    other("subscribe", -2, SUB, "pubsub", subscribe::subscribe, "2.0.0", "Listens to channels."),
    text("substr", 4, READ, KEY, read::getrange, "1.0.0", "Returns a part of the value of a key."),
    other("time", 1, FAST, "server", info::time, "2.6.0", "Returns the time."),
    directly(key("touch", -2, RF, KEYS, many::exists, "3.2.1", "Counts an access of keys."), direct::exists),
    key("ttl", 2, RF, KEY, expire::ttl, "1.0.0", "Returns the seconds that a key has left."),
    key("type", 2, RF, KEY, object::kind, "1.0.0", "Returns the type of a key."),
    directly(key("unlink", -2, WF, KEYS, many::del, "4.0.0", "Deletes keys."), direct::del),
    other("unsubscribe", -1, SUB, "pubsub", subscribe::unsubscribe, "2.0.0", "Ends listening to channels."),
    other("unwatch", 1, FAST, "transactions", transaction::unwatch, "2.2.0", "Ends watching keys."),
    other("wait", 3, 0, "generic", client::wait, "3.0.0", "Answers 0: there are no replicas of its kind."),
    Command {
        keys: KEYS,
        ..other("watch", -2, NOT_QUEUED | FAST, "transactions", transaction::watch, "2.2.0", "Watches keys.")
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_complete() {
        assert!(TABLE.windows(2).all(|pair| pair[0].name.as_bytes() < pair[1].name.as_bytes()));
        for command in TABLE {
            let (name, sub) = command.name.split_once('|').unwrap_or((command.name, ""));
            let found = lookup::by_name(TABLE, name.to_ascii_uppercase().as_bytes(), sub.as_bytes()).unwrap();
            assert_eq!(found.name, command.name);
            assert!(command.direct.is_none() || command.perform.is_some(), "{name} within a transaction");
            assert!(command.perform.is_some() != command.session.is_some(), "{name} has one way to be performed");
            assert!(name.len() <= lookup::LONGEST && !command.summary.is_empty());
        }
        assert!(lookup::by_name(TABLE, b"lpush", b"").is_none() && lookup::by_name(TABLE, &[b'x'; 100], b"").is_none());
    }

    #[test]
    fn places_of_keys() {
        let places = |name: &str, count| {
            lookup::by_name(TABLE, name.as_bytes(), b"").unwrap().key_places(count).collect::<Vec<_>>()
        };
        assert_eq!((places("get", 2), places("mset", 5), places("del", 4)), (vec![1], vec![1, 3], vec![1, 2, 3]));
        assert_eq!((places("rename", 3), places("ping", 1), places("mget", 1)), (vec![1, 2], vec![], vec![]));
    }
}
