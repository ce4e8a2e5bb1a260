//! The first steps: open, set, get, scan, delete, and what an error looks like.

use hashmere::{Attributes, Cursor, Filter, Options, Store};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open("sample-basic")?;
    store.clear()?;
    let text = |value: Vec<u8>| String::from_utf8(value);

    store.set(b"user:7", b"Ada")?;
    if let Some(name) = store.get(b"user:7")? {
        println!("user:7 is {}", text(name)?);
    }
    if store.get(b"user:8")?.is_none() {
        println!("user:8 is not there");
    }

    store.replace(b"user:7", b"Grace", Attributes::NONE)?;
    let name = store.get(b"user:7")?.unwrap_or_default();
    println!("now user:7 is {}, {} bytes", text(name.clone())?, name.len());

    store.add(b"user:9", b"Edsger", Attributes::NONE)?;
    let mut keys = Vec::new();
    for pair in store.scan(Cursor::START, Filter::all().prefix("user:").keys_only()) {
        keys.push(text(pair?.key)?);
    }
    keys.sort(); // a scan has no order
    println!("keys: {}", keys.join(" "));

    store.delete(b"user:9")?;
    println!("deleted user:9, {} key is left", store.len());
    drop(store);
    Store::remove("sample-basic")?;

    if let Err(error) = Options::new().create(false).open("sample-basic") {
        let kind = format!("{error:?}");
        println!("error {} ({})", error.code(), kind.split(' ').next().unwrap_or_default());
    }
    Ok(())
}
