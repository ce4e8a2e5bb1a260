//! A scan by a regular expression, one that processes share, one that begins at a key; every key changed; dump and
//! load.

use hashmere::{Counter, Cursor, Filter, Store, Update};
use hashmere_dump::Records;
use std::error::Error;
use std::process::Command;

const PARTS: u32 = 4;

fn work(store: &Store, part: u32) -> Result<(), Box<dyn Error>> {
    for pair in store.scan(Cursor::START, Filter::all().prefix("user:").part(part, PARTS)?.keys_only()) {
        pair?;
        store.incr(b"seen", 1, Counter::or_create(1))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open("sample-scan")?;
    if let Some(part) = std::env::args().nth(1) {
        return work(&store, part.parse()?);
    }
    store.clear()?;
    for n in 0..1000 {
        store.set(&format!("user:{n}"), n.to_string().as_bytes())?;
    }

    let sevens = store.scan(Cursor::START, Filter::all().regex("^user:.*7$")?).count();
    println!("{sevens} of {} keys end in 7", store.len());

    let mut workers = Vec::new();
    for part in 0..PARTS {
        workers.push(Command::new(std::env::current_exe()?).arg(part.to_string()).spawn()?);
    }
    for mut worker in workers {
        worker.wait()?;
    }
    println!("{PARTS} processes saw {} keys", String::from_utf8(store.take(b"seen")?.unwrap_or_default())?);

    let changed = store.update_each(Filter::all(), |_, item| {
        let number: u64 = String::from_utf8_lossy(&item.value).parse().unwrap_or(0);
        Update::Set((2 * number).to_string().into_bytes())
    })?;
    let seven = String::from_utf8(store.get(b"user:7")?.unwrap_or_default())?;
    println!("{changed} keys changed, user:7 is {seven} now");

    let from = store.cursor_of(b"user:7")?.unwrap_or(Cursor::START);
    let first = store.scan(from, Filter::all()).next().transpose()?.map(|pair| pair.key).unwrap_or_default();
    println!("a scan from user:7 begins with {}", String::from_utf8(first)?);

    let file = std::env::temp_dir().join(format!("sample-scan-{}.jsonl", std::process::id()));
    let dumped = store.dump(&file, None, Filter::all())?;
    store.clear()?;
    println!("{dumped} records dumped, {} loaded", store.load(&file, None)?);
    std::fs::remove_file(&file)?;
    drop(store);
    Store::remove("sample-scan")?;
    Ok(())
}
