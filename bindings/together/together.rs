//! One of the programs of `bindings/together/README.md`.

use hashmere::{Attributes, CasOutcome, Change, Counter, EntryId, Expected, Expiry, Key, Store, Ttl, Update};
use std::error::Error;
use std::time::{Duration, Instant};

const SUMS: u32 = 2000;
const STEPS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(600);
/// The same bytes with a hash are another key.
const HASH: u64 = 7;

type Done = Result<(), Box<dyn Error>>;

fn must(is: bool, what: &str) -> Done {
    if is {
        Ok(())
    } else {
        Err(what.into())
    }
}

fn wait_until(what: &str, mut is: impl FnMut() -> Result<bool, Box<dyn Error>>) -> Done {
    let begin = Instant::now();
    while !is()? {
        must(begin.elapsed() < PATIENCE, what)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn number(bytes: &[u8]) -> Result<u64, Box<dyn Error>> {
    Ok(std::str::from_utf8(bytes)?.parse()?)
}

fn greeting(name: &str) -> Vec<u8> {
    (0..=255).chain(name.bytes()).collect()
}

fn next_number(store: &Store) -> Done {
    loop {
        let seen = store.get_item(b"cas")?.ok_or("no key `cas`")?;
        let next = (number(&seen.value)? + 1).to_string();
        let change = Change::Set(next.as_bytes());
        if let CasOutcome::Stored(_) = store.cas(b"cas", Expected::Version(seen.metadata.version), change)? {
            return Ok(());
        }
    }
}

fn read_of(store: &Store, peer: &str) -> Done {
    let key = format!("from:{peer}");
    let key = key.as_bytes();
    wait_until("a value of another language never came", || Ok(store.contains_key(key)?))?;
    let item = store.get_item(key)?.ok_or("it is gone")?;
    must(item.value == greeting(peer), "another language stored other bytes")?;
    must(item.metadata.flags as usize == peer.len(), "another language stored other flags")?;
    let hour = Duration::from_secs(2000)..=Duration::from_secs(3600);
    let lives = matches!(store.ttl(key)?, Some(Expiry { remaining: Some(left) }) if hour.contains(&left));
    must(lives, "another language stored another time to live")?;
    let named = store.get(Key::with_hash(key, HASH))?;
    must(named.as_deref() == Some(peer.as_bytes()), "another language's key with a hash is another one")?;
    let id = EntryId(number(&store.get(&format!("id:{peer}"))?.unwrap_or_default())?);
    must(store.get(id)? == named && store.key_of(id)?.as_deref() == Some(key), "another language's id is another key's")
}

fn forever(store: &Store, me: &str) -> Done {
    let count = format!("noise:{me}");
    for n in 0u32.. {
        let key = format!("noise:{me}:{}", n % 50);
        store.set(key.as_bytes(), &vec![b'a' + (n % 26) as u8; n as usize % 700])?;
        if n % 7 == 0 {
            store.delete(key.as_bytes())?;
        }
        store.incr(count.as_bytes(), 1, Counter::or_create(1))?;
    }
    Ok(())
}

fn work(store: &Store, me: &str, all: &[&str]) -> Done {
    let one = Counter::or_create(1);
    store.incr(b"arrived", 1, one)?;
    let have_all_come = || Ok(number(&store.get(b"arrived")?.unwrap_or_default())? >= all.len() as u64);
    wait_until("the others do not come", have_all_come)?;

    let mine = format!("sum:{me}");
    for _ in 0..SUMS {
        store.incr(b"sum", 1, one)?;
        store.incr(mine.as_bytes(), 1, one)?;
    }
    let line = format!("{me};");
    for _ in 0..STEPS {
        next_number(store)?;
        store.update_with(b"log", |old| {
            let old = old.map_or(&[][..], |item| &item.value);
            Update::Set([old, line.as_bytes()].concat())
        })?;
    }
    let hour = Attributes::NONE.flags(me.len() as u32).ttl(Ttl::After(Duration::from_secs(3600)));
    let mine = format!("from:{me}");
    store.set(Key::with_hash(&mine, HASH), me.as_bytes())?;
    let id = store.id_of(Key::with_hash(&mine, HASH))?.ok_or("no id of a key that was stored")?;
    store.set(&format!("id:{me}"), id.0.to_string().as_bytes())?;
    store.set_with(&mine, &greeting(me), hour)?;
    for peer in all {
        read_of(store, peer)?;
    }
    let brief = format!("brief:{me}");
    store.set_with(brief.as_bytes(), b"x", Attributes::NONE.ttl(Ttl::After(Duration::from_millis(50))))?;
    std::thread::sleep(Duration::from_millis(80));
    must(!store.contains_key(brief.as_bytes())?, "what had expired was there")?;
    store.dec_ref(b"refs", 1)?;
    Ok(())
}

fn main() -> Done {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, me, all] = &args[..] else { return Err("usage: together STORE ME ALL".into()) };
    let store = Store::open(path)?;
    if all == "forever" {
        return forever(&store, me);
    }
    work(&store, me, &all.split(',').collect::<Vec<_>>())
}
