//! What happens to the keys of a store, followed by a consumer that stops and resumes.

use hashmere::{Counter, Options, Store, WriteBatch};
use hashmere_feed::{Event, Feed, FeedOptions, FeedStart, ResetReason};
use std::error::Error;
use std::process::Command;
use std::time::Duration;

const STORE: &str = "sample-feed";
const CHANGES: u64 = 500;

fn consumer(store: &Store, start: FeedStart) -> Result<Feed, Box<dyn Error>> {
    Ok(Feed::open(store, start, FeedOptions::new().values(true))?)
}

fn show(event: &Event) {
    match event {
        Event::Reset { reason: ResetReason::Asked } => println!("reset: asked"),
        Event::Reset { reason } => println!("reset: {reason:?}"),
        Event::Synced { .. } => println!("synced"),
        Event::Clear { .. } => println!("clear"),
        Event::Read(change) | Event::Change(change) => {
            if let Some(part) = change.transaction.filter(|part| part.index == 0) {
                println!("in a transaction, {} of it:", part.len);
            }
            print!("{} {}", change.operation.name(), String::from_utf8_lossy(&change.key));
            if let Some(value) = change.value.bytes() {
                print!(" = {}", String::from_utf8_lossy(value));
            }
            println!();
        }
        _ => {}
    }
}

/// Shows what there is.
fn drain(feed: &mut Feed) -> Result<(), Box<dyn Error>> {
    while let Some(event) = feed.next_within(Duration::ZERO)? {
        show(&event);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).is_some() {
        let store = Store::open(STORE)?;
        for _ in 0..CHANGES {
            store.incr("hits", 1, Counter::or_create(1))?;
        }
        return Ok(());
    }
    Store::remove(STORE)?;
    let store = Options::new().feed(1 << 20).feed_values(true).open(STORE)?;
    store.set("alice", b"100")?;

    // Every key first.
    let mut feed = consumer(&store, FeedStart::Start)?;
    drain(&mut feed)?;
    store.set("bob", b"7")?;
    let mut batch = WriteBatch::new();
    batch.set("alice", b"70").set("bob", b"37");
    store.write_batch(&batch)?;
    store.delete("bob")?;
    drain(&mut feed)?;
    // A consumer keeps it where its data are.
    let token = feed.token().to_string();
    drop(feed);
    store.set("carol", b"5")?;
    store.clear()?;
    println!("resumed");
    let mut feed = consumer(&store, FeedStart::At(token.parse()?))?;
    drain(&mut feed)?;

    let mut child = Command::new(std::env::current_exe()?).arg("worker").spawn()?;
    for (number, event) in (1..=CHANGES).zip(&mut feed) {
        let event = event?;
        let value = event.change().and_then(|change| change.value.bytes());
        if value != Some(number.to_string().as_bytes()) {
            return Err(format!("change {number} is missing: {event:?}").into());
        }
    }
    if !child.wait()?.success() {
        return Err("the other process has failed".into());
    }
    println!("{CHANGES} changes of another process, in order");
    drop((feed, store));
    Store::remove(STORE)?;
    Ok(())
}
