//! Several processes count in one store, and share something that the last of them removes.

use hashmere::{Counter, Store};
use std::error::Error;
use std::process::Command;

const PROCESSES: u32 = 4;
const STEPS: u32 = 1000;

fn work(store: &Store) -> Result<(), Box<dyn Error>> {
    for _ in 0..STEPS {
        store.incr(b"hits", 1, Counter::or_create(1))?;
    }
    store.dec_ref(b"shared", 1)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open("sample-counters")?;
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return work(&store);
    }
    store.clear()?;

    let mut workers = Vec::new();
    store.inc_ref(b"shared", PROCESSES.into())?;
    for _ in 0..PROCESSES {
        workers.push(Command::new(std::env::current_exe()?).arg("worker").spawn()?);
    }
    for mut worker in workers {
        worker.wait()?;
    }

    let hits = String::from_utf8(store.get(b"hits")?.unwrap_or_default())?;
    println!("{PROCESSES} processes counted to {hits}");
    let gone = if store.contains_key(b"shared")? { "no" } else { "yes" };
    println!("the last of {PROCESSES} references is gone: {gone}");
    drop(store);
    Store::remove("sample-counters")?;
    Ok(())
}
