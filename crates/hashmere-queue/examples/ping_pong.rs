//! Two processes pass an element to and fro.
//!
//! ```sh
//! cargo run --release -p hashmere-queue --example ping_pong &    # the first to come waits for the other
//! cargo run --release -p hashmere-queue --example ping_pong
//! ```

use hashmere::Store;
use hashmere_queue::{Barrier, Element, PoolOptions, QueueError};
use std::time::{Duration, Instant};

const ROUNDS: u64 = 100_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("ping-pong")?;
    let pool = PoolOptions::new(1, 8).open(&store, "ball")?;
    let (there, back) = (pool.queue("there")?, pool.queue("back")?);
    let hand = pool.hand()?;

    // Whoever gets the only element begins.
    let mut ball = hand.pull(pool.free())?;
    let first = ball.is_some();
    Barrier::join(&store, b"players", 2)?.wait(PATIENCE)?.ok_or("nobody plays with me")?;
    let (to, from) = if first { (&there, &back) } else { (&back, &there) };
    let start = Instant::now();
    for round in 0..ROUNDS {
        if let Some(mut ball) = ball.take() {
            *ball.view_mut::<u64>() = round;
            ball.push(to)?;
        }
        let came: Option<Element> = hand.pull_wait(from, PATIENCE)?;
        ball = Some(came.ok_or(QueueError::Broken("the other player has gone"))?);
    }
    println!("{ROUNDS} rounds, {} ns one way", start.elapsed().as_nanos() / u128::from(ROUNDS) / 2);
    if let Some(ball) = ball {
        ball.push(if first { pool.free() } else { to })?;
    }
    Ok(())
}
