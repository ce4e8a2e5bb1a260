//! Two processes pass one element to and fro; it carries a number that each of them checks and counts on.

use hashmere::Store;
use hashmere_queue::{Pool, PoolOptions, Queue};
use std::error::Error;
use std::process::Command;
use std::time::Duration;

const STORE: &str = "sample-ping-pong";
const PASSES: u64 = 20_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Takes the ball as long as it is in play, finds in it the number that must be next, and passes on the one behind
/// that.
fn play(pool: &Pool, from: &Queue, to: &Queue, first: u64) -> Result<(), Box<dyn Error>> {
    let endpoint = pool.endpoint()?;
    for number in (first..PASSES).step_by(2) {
        let mut ball = endpoint.pop_wait(from, PATIENCE)?.ok_or("the other player has gone")?;
        let carried = ball.view_mut::<u64>();
        if *carried != number {
            return Err(format!("the ball carries {carried} instead of {number}").into());
        }
        *carried = number + 1;
        ball.push(if number + 1 < PASSES { to } else { pool.free() })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_partner = std::env::args().nth(1).as_deref() == Some("partner");
    if !is_partner {
        Store::remove(STORE)?;
    }
    let store = Store::open(STORE)?;
    // One element of eight bytes. Elements that are not in use are in the pool's free queue.
    let pool = PoolOptions::new(1, 8).open(&store, "ball")?;
    let (there, back) = (pool.queue("there")?, pool.queue("back")?);
    if is_partner {
        return play(&pool, &there, &back, 0);
    }

    let mut partner = Command::new(std::env::current_exe()?).arg("partner").spawn()?;
    let endpoint = pool.endpoint()?;
    let mut ball = endpoint.pop(pool.free())?.ok_or("the pool is empty")?;
    *ball.view_mut::<u64>() = 0;
    ball.push(&there)?;
    play(&pool, &back, &there, 1)?;
    if !partner.wait()?.success() {
        return Err("the other player has failed".into());
    }
    let ball = endpoint.pop(pool.free())?.ok_or("the ball is lost")?;
    if *ball.view::<u64>() != PASSES {
        return Err("the ball was passed on too often, or too seldom".into());
    }
    println!("two processes passed one element {PASSES} times");
    println!("it carried every number from 0 to {}", PASSES - 1);
    drop(ball);
    Store::remove(STORE)?;
    Ok(())
}
