//! `queue`: a look at the pools and queues of a store, and help for what is stuck.

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::output::{print_line, Output};
use clap::{Args, Subcommand};
use hashmere_queue::{Pool, PoolStats, QueueError};
use serde_json::json;

/// List, look at, drain and remove pools of queues.
#[derive(Args, Debug)]
pub struct QueueOf {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the names of all pools, one a line
    List(StoreArgs),
    /// Print a pool's sizes and what is in its queues
    Stats {
        #[command(flatten)]
        pool: PoolArgs,
        /// One JSON object
        #[arg(short, long)]
        json: bool,
    },
    /// Move everything from one queue of a pool to another, and print how many elements that was
    Drain {
        #[command(flatten)]
        pool: PoolArgs,
        /// The queue to empty
        from: String,
        /// The queue to fill
        #[arg(default_value = "free")]
        to: String,
    },
    /// Give back what crashed processes held, and print how many elements that was
    Recover(PoolArgs),
    /// Remove a pool. Its space is free again when no process has it open
    Remove(PoolArgs),
}

#[derive(Args, Debug)]
struct PoolArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the pool
    pool: String,
}

impl PoolArgs {
    fn open(&self) -> Result<Pool, Failure> {
        Pool::open(&self.store.writer()?, &self.pool).map_err(failed)
    }
}

fn failed(error: QueueError) -> Failure {
    Failure::error(error.code(), error.to_string())
}

impl QueueOf {
    /// Runs it.
    pub fn run(self) -> Outcome {
        match self.verb {
            Verb::List(store) => {
                let mut output = Output::new();
                Pool::list(&store.reader()?).iter().try_for_each(|name| output.line(name))?;
                output.finish()
            }
            Verb::Stats { pool, json } => stats(&pool.open()?, json),
            Verb::Drain { pool, from, to } => {
                let pool = pool.open()?;
                let find = |name: &str| {
                    let queue = pool.queues().into_iter().find(|queue| queue.name() == name);
                    queue.ok_or_else(|| failed(QueueError::NotFound(format!("queue {name:?}").into())))
                };
                let (from, to) = (find(&from)?, find(&to)?);
                let mut endpoint = pool.endpoint().map_err(failed)?;
                print_line(endpoint.drain(&from, &to).map_err(failed)?.to_string())
            }
            Verb::Recover(pool) => {
                let pool = pool.open()?;
                let later = pool.recover().map_err(failed)?;
                print_line((pool.recovered_on_open() + later).to_string())
            }
            Verb::Remove(pool) => {
                if Pool::remove(&pool.store.writer()?, &pool.pool).map_err(failed)? {
                    return Ok(());
                }
                Err(Failure::NotMet(format!("no pool {:?}", pool.pool)))
            }
        }
    }
}

fn stats(pool: &Pool, json: bool) -> Outcome {
    let stats = pool.stats();
    let mut output = Output::new();
    if json {
        output.line(to_json(pool.name(), &stats).to_string())?;
        return output.finish();
    }
    output
        .line(format!("{} elements of {} bytes, {} bytes in all", stats.elements, stats.element_bytes, stats.bytes))?;
    let endpoints = format!("{} of {} endpoints hold {} elements", stats.endpoints, stats.max_endpoints, stats.held);
    output.line(format!("{endpoints}; {} were returned from crashed processes", stats.recovered))?;
    for queue in &stats.queues {
        let sleepers = if queue.has_sleepers { "  has sleepers" } else { "" };
        let kind = format!("{:?}", queue.kind).to_lowercase();
        let (len, bound) = (queue.len, queue.bound);
        output
            .line(format!("{:<24} {kind:<5} {len:>10} of {bound:<10} pushed {}{sleepers}", queue.name, queue.pushed))?;
    }
    output.finish()
}

fn to_json(name: &str, stats: &PoolStats) -> serde_json::Value {
    let queues = stats.queues.iter().map(|queue| {
        json!({
            "name": queue.name, "kind": format!("{:?}", queue.kind).to_lowercase(), "bound": queue.bound,
            "len": queue.len, "pushed": queue.pushed, "has_sleepers": queue.has_sleepers,
        })
    });
    json!({
        "name": name, "elements": stats.elements, "element_bytes": stats.element_bytes, "bytes": stats.bytes,
        "endpoints": stats.endpoints, "max_endpoints": stats.max_endpoints, "max_queues": stats.max_queues, "held": stats.held,
        "recovered": stats.recovered, "queues": queues.collect::<Vec<_>>(),
    })
}
