//! The code of README.md: a test compares the two.

use hashmere::{Counter, Mode, Options, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("sessions")?;
    store.set(b"user:7", b"Ada")?;
    assert_eq!(store.get(b"user:7")?.as_deref(), Some(&b"Ada"[..]));
    store.incr(b"hits", 1, Counter::or_create(1))?;
    let view = store.view(b"user:7")?; // no copy; stays as it is while it is held
    let cache = Options::new().mode(Mode::Cache).max_bytes(64 << 20).open("pages")?;
    println!("{}, {} pages", view.is_some(), cache.len());
    Ok(())
}
