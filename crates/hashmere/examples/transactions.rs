//! Several processes move money between accounts; the sum never changes, not even for a moment.

use hashmere::{Condition, Store, WriteBatch, WriteError};
use std::error::Error;
use std::process::Command;

const PROCESSES: u64 = 4;
const STEPS: u64 = 500;
const ACCOUNTS: [&str; 3] = ["alice", "bob", "carol"];

fn number(text: Option<Vec<u8>>) -> u64 {
    text.and_then(|text| String::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
}

fn transfer(store: &Store, from: &str, to: &str, amount: u64) -> Result<bool, WriteError> {
    // The function may run several times: it has no effects but through `t`.
    store.transaction(|t| {
        let there = number(t.get(from)?);
        if there < amount {
            return Ok(false);
        }
        t.set(from, (there - amount).to_string())?;
        let other = number(t.get(to)?);
        t.set(to, (other + amount).to_string())?;
        Ok(true)
    })
}

fn sum(store: &Store) -> Result<u64, Box<dyn Error>> {
    let items = store.get_many_snapshot(&ACCOUNTS)?;
    Ok(items.into_iter().map(|item| number(item.map(|item| item.value))).sum())
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open("sample-transactions")?;
    if let Some(who) = std::env::args().nth(1) {
        let who: u64 = who.parse()?;
        for step in 0..STEPS {
            let at = (who + step) as usize;
            transfer(&store, ACCOUNTS[at % 3], ACCOUNTS[(at + 1) % 3], 1 + step % 5)?;
        }
        return Ok(());
    }

    let mut batch = WriteBatch::new();
    ACCOUNTS.iter().for_each(|account| _ = batch.set(account, "100"));
    store.write_batch(&batch)?;

    let mut workers = Vec::new();
    for who in 0..PROCESSES {
        workers.push(Command::new(std::env::current_exe()?).arg(who.to_string()).spawn()?);
    }
    for _ in 0..100 {
        assert_eq!(sum(&store)?, 300);
    }
    for mut worker in workers {
        worker.wait()?;
    }
    println!("the sum of all accounts is {}", sum(&store)?);

    // If alice still has what was seen, close her account and note it; else read what she has.
    let seen = store.get("alice")?.unwrap_or_default();
    let (mut close, mut look) = (WriteBatch::new(), WriteBatch::new());
    close.delete("alice").set("closed", "alice");
    look.get("alice");
    let branch = store.write_batch_if(&[Condition::Value(b"alice", &seen)], &close, &look)?;
    println!("alice's account is closed: {}", branch.succeeded);
    drop(store);
    Store::remove("sample-transactions")?;
    Ok(())
}
