//! A cache: values with a time to live, in a file that never grows beyond its size.

use hashmere::{Attributes, Expiry, Mode, Options, Store, Ttl};
use std::error::Error;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const MAX_BYTES: u64 = 4 << 20;

fn yes(is: bool) -> &'static str {
    if is {
        "yes"
    } else {
        "no"
    }
}

fn left(store: &Store, key: &[u8]) -> Result<Duration, Box<dyn Error>> {
    match store.ttl(key)? {
        Some(Expiry { remaining: Some(left) }) => Ok(left),
        other => Err(format!("it should have a time to live, but has {other:?}").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Options::new().mode(Mode::Cache).max_bytes(MAX_BYTES).open("sample-cache")?;
    store.clear()?;
    let lasting = |time| Attributes::NONE.ttl(Ttl::After(time));

    store.set_with(b"session:1", b"Ada", lasting(MINUTE).flags(7))?;
    let first = left(&store, b"session:1")?;
    println!("session:1 lives for less than a minute: {}", yes(!first.is_zero() && first <= MINUTE));

    store.set_with(b"session:2", b"Grace", lasting(Duration::from_millis(20)))?;
    std::thread::sleep(Duration::from_millis(40));
    println!("session:2 is gone after its time: {}", yes(!store.contains_key(b"session:2")?));

    store.touch(b"session:1", Ttl::After(10 * MINUTE))?;
    let flags = store.metadata(b"session:1")?.ok_or("session:1 is gone")?.flags;
    let more = yes(left(&store, b"session:1")? > MINUTE);
    println!("session:1 was touched, flags {flags}, lives for more than a minute: {more}");

    let page = [b'.'; 1000];
    for i in 1..=20_000 {
        store.set(format!("page:{i}").as_bytes(), &page)?;
    }
    println!("after 20000 pages the file has at most 4 MiB: {}", yes(store.stats().bytes_file <= MAX_BYTES));
    let turned_over = store.contains_key(b"page:20000")? && !store.contains_key(b"page:1")?;
    println!("the last page is there, the first made room: {}", yes(turned_over));

    drop(store);
    Store::remove("sample-cache")?;
    Ok(())
}
