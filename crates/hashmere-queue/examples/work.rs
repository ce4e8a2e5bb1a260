//! Jobs are handed out to worker processes; one of them is killed, and what it was working on is done by another.

use hashmere::Store;
use hashmere_queue::{Pool, PoolOptions, Queue};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const STORE: &str = "sample-work";
const JOBS: u64 = 1000;
/// A job that says that there are no more.
const NO_MORE: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(30);

/// A number, and where its square goes.
type Job = [u64; 2];

fn work(pool: &Pool, todo: &Queue, done: &Queue, is_victim: bool) -> Result<(), Box<dyn Error>> {
    let endpoint = pool.endpoint()?;
    loop {
        let mut job = endpoint.pop_wait(todo, PATIENCE)?.ok_or("there is nothing to do")?;
        if is_victim {
            println!("I have a job");
            std::thread::sleep(PATIENCE);
        }
        let [number, square] = job.view_mut::<Job>();
        if *number == NO_MORE {
            job.push(pool.free())?;
            return Ok(());
        }
        *square = *number * *number;
        job.push(done)?;
    }
}

fn start(role: &str) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?).arg(role).stdout(Stdio::piped()).spawn()
}

/// Endpoints out all jobs and takes the results. As many as the pool has elements are under way at a time.
fn hand_out(pool: &Pool, todo: &Queue, done: &Queue, mut next: u64) -> Result<(), Box<dyn Error>> {
    let endpoint = pool.endpoint()?;
    let mut was_done = vec![false; JOBS as usize];
    for _ in 0..JOBS {
        while next < JOBS {
            let Some(mut job) = endpoint.pop(pool.free())? else { break };
            *job.view_mut::<Job>() = [next, 0];
            job.push(todo)?;
            next += 1;
        }
        // A pop that waits recovers the elements of crashed processes: each goes back to where it came from.
        let job = endpoint.pop_wait(done, PATIENCE)?.ok_or("a job is lost")?;
        let [number, square] = *job.view::<Job>();
        if square != number * number || std::mem::replace(&mut was_done[number as usize], true) {
            return Err(format!("job {number} was done twice, or wrongly").into());
        }
        job.push(pool.free())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let role = std::env::args().nth(1);
    if role.is_none() {
        Store::remove(STORE)?;
    }
    let store = Store::open(STORE)?;
    let pool = PoolOptions::new(64, 16).open(&store, "jobs")?;
    let (todo, done) = (pool.queue("todo")?, pool.queue("done")?);
    if let Some(role) = role {
        return work(&pool, &todo, &done, role == "victim");
    }

    // The first worker gets the first job, and is killed with it.
    let endpoint = pool.endpoint()?;
    let mut job = endpoint.pop(pool.free())?.ok_or("the pool is empty")?;
    *job.view_mut::<Job>() = [0, 0];
    job.push(&todo)?;
    let mut victim = start("victim")?;
    let mut said = String::new();
    BufReader::new(victim.stdout.take().ok_or("no pipe")?).read_line(&mut said)?;
    victim.kill()?;
    victim.wait()?;
    if said != "I have a job\n" || !todo.is_empty() {
        return Err("the worker has no job".into());
    }
    println!("a worker was killed with a job in its endpoint");

    let mut workers = [start("worker")?, start("worker")?];
    hand_out(&pool, &todo, &done, 1)?;
    for _ in &workers {
        let mut job = endpoint.pop(pool.free())?.ok_or("an element is lost")?;
        *job.view_mut::<Job>() = [NO_MORE, 0];
        job.push(&todo)?;
    }
    for worker in &mut workers {
        if !worker.wait()?.success() {
            return Err("a worker has failed".into());
        }
    }
    if pool.stats().recovered != 1 || pool.free().len() != 64 {
        return Err("not every element is back".into());
    }
    println!("{JOBS} jobs done by the others, none lost, none twice");
    Store::remove(STORE)?;
    Ok(())
}
