//! Work is handed out to processes, one of which may be killed: what it was working on is done by another.
//!
//! ```sh
//! cargo run --release -p hashmere-queue --example work -- worker &
//! cargo run --release -p hashmere-queue --example work -- worker &
//! cargo run --release -p hashmere-queue --example work          # hands out 1,000 jobs and waits for the results
//! ```
//! Kill a worker with `kill -9` meanwhile: no job is lost, and none is done twice.

use hashmere::Store;
use hashmere_queue::{PoolOptions, Queue};
use std::time::Duration;

const JOBS: u64 = 1000;
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("work")?;
    let pool = PoolOptions::new(64, 16).open(&store, "jobs")?;
    let (todo, done): (Queue, Queue) = (pool.queue("todo")?, pool.queue("done")?);
    let hand = pool.hand()?;

    if std::env::args().nth(1).as_deref() == Some("worker") {
        while let Some(mut job) = hand.pull_wait(&todo, PATIENCE)? {
            let [number, _] = *job.view::<[u64; 2]>();
            std::thread::sleep(Duration::from_millis(1));
            *job.view_mut::<[u64; 2]>() = [number, number * number];
            job.push(&done)?;
        }
        return Ok(());
    }

    let (mut next, mut sum) = (0, 0);
    for _ in 0..JOBS {
        // As many jobs as there are elements are under way at a time.
        while next < JOBS {
            let Some(mut job) = hand.pull(pool.free())? else { break };
            *job.view_mut::<[u64; 2]>() = [next, 0];
            job.push(&todo)?;
            next += 1;
        }
        let result = hand.pull_wait(&done, PATIENCE)?.ok_or("no worker is there")?;
        let [number, square] = *result.view::<[u64; 2]>();
        assert_eq!(square, number * number);
        sum += square;
        result.push(pool.free())?;
    }
    assert_eq!(sum, (0..JOBS).map(|n| n * n).sum::<u64>(), "every job was done once");
    println!("{JOBS} jobs done, none lost, none twice");
    Ok(())
}
