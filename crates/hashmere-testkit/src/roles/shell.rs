//! Executes commands on one store: `shell STORE OPTION...`, then one command per line.
//!
//! Options: `existing`, `exclusive`, `ro`, `tiny`, `uid=N` (change to this user first), `max=N`, `cache`,
//! `delete-on-exit`. Says `open`, or `error CODE TEXT`. Keys and values in commands are words.
//! Every answer is one line, except that `scan` gives one `key` line per key first.

use super::Arguments;
use hashmere::{Counter, Cursor, Error, Filter, Mode, Options, Store};
use nix::unistd::{setgid, setgroups, setuid, Gid, Uid};
use std::io::BufRead;

pub(super) fn run(arguments: &mut Arguments) {
    let path: String = arguments.next();
    let store = match options(arguments).open(&path) {
        Ok(store) => store,
        Err(error) => {
            println!("error {} {error}", error.code());
            return;
        }
    };
    println!("open");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        match command(&store, &words) {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error {} {error}", error.code()),
        }
    }
}

fn options(arguments: &mut Arguments) -> Options {
    let mut options = Options::new();
    for word in arguments.0.by_ref() {
        let (name, number) = word.split_once('=').unwrap_or((&word, "0"));
        let number: u64 = number.parse().expect("a number");
        options = match name {
            "existing" => options.create(false),
            "exclusive" => options.create_new(true),
            "ro" => options.read_only(),
            "tiny" => options.segment_bytes(4096).leaf_bytes(256),
            "max" => options.max_bytes(number),
            "cache" => options.mode(Mode::Cache),
            "delete-on-exit" => options.remove_on_last_close(true),
            "uid" => {
                become_user(number as u32);
                options
            }
            _ => panic!("option {word:?}"),
        };
    }
    options
}

fn command(store: &Store, words: &[&str]) -> Result<String, Error> {
    let number = |word: &str| word.parse::<u64>().expect("a number");
    Ok(match *words {
        ["set", key, value] => {
            store.set(key.as_bytes(), value.as_bytes())?;
            "ok".to_owned()
        }
        ["get", key] => match store.get(key.as_bytes())? {
            Some(value) => format!("value {}", String::from_utf8_lossy(&value)),
            None => "absent".to_owned(),
        },
        ["del", key] => if store.delete(key.as_bytes())? { "yes" } else { "no" }.to_owned(),
        ["incr", key, by] => {
            format!("number {:?}", store.incr(key.as_bytes(), number(by), Counter::or_create(number(by)))?)
        }
        ["clear"] => {
            store.clear()?;
            "ok".to_owned()
        }
        ["compact"] => format!("given back {}", store.compact()?),
        ["count"] => format!("count {}", store.len()),
        ["pids"] => {
            let pids: Vec<String> = store.stats().clients.iter().map(|client| client.pid.to_string()).collect();
            format!("pids {}", pids.join(" "))
        }
        ["scan", cursor, limit] => scan(store, Cursor(number(cursor)), number(limit), Filter::all())?,
        ["part", index, count, cursor, limit] => {
            let filter = Filter::all().part(number(index) as u32, number(count) as u32)?;
            scan(store, Cursor(number(cursor)), number(limit), filter)?
        }
        ["exit"] => std::process::exit(0),
        _ => panic!("command {words:?}"),
    })
}

/// Says up to `limit` keys; the answer is where to go on, or `end`.
fn scan(store: &Store, from: Cursor, limit: u64, filter: Filter) -> Result<String, Error> {
    let mut scan = store.scan(from, filter.keys_only());
    for _ in 0..limit {
        let Some(pair) = scan.next() else { return Ok("end".to_owned()) };
        println!("key {}", String::from_utf8_lossy(&pair?.key));
    }
    Ok(scan.cursor().map_or_else(|| "end".to_owned(), |cursor| format!("cursor {}", cursor.0)))
}

fn become_user(user: u32) {
    // The group first: afterwards it would not be allowed.
    let groups = setgroups(&[]).and_then(|()| setgid(Gid::from_raw(user)));
    groups.and_then(|()| setuid(Uid::from_raw(user))).unwrap_or_else(|error| panic!("become user {user}: {error}"));
    // Changing the user switches it off.
    crate::procs::die_with_parent();
}
