//! A local process reads a key through the library; a client of the server reads the same key over its socket.

use super::connection::{name, value, Connection};
use crate::Outcome;
use hashmere::Options;
use std::time::Instant;

const LOCAL: u32 = 2_000_000;
const SOCKET: u32 = 20_000;
const KEY: u64 = 7;

/// Prints the time of each and the factor.
pub fn run(store: &str, address: &str) -> Outcome {
    let store = Options::new().create(false).open(store)?;
    let mut connection = Connection::open(address)?;
    connection.begin();
    connection.set(KEY);
    connection.finish_blocking()?;
    let mut buffer = Vec::new();
    let start = Instant::now();
    for _ in 0..LOCAL {
        buffer.clear();
        if store.get_into(&name(KEY), &mut buffer)?.is_none() || buffer != value(KEY) {
            return Err("a wrong value".into());
        }
    }
    let local = start.elapsed().as_nanos() as f64 / f64::from(LOCAL);
    let start = Instant::now();
    for _ in 0..SOCKET {
        connection.begin();
        connection.get(std::iter::once(KEY));
        connection.send()?;
        while !connection.receive()? {
            std::hint::spin_loop();
        }
    }
    let socket = start.elapsed().as_nanos() as f64 / f64::from(SOCKET);
    println!("local    {local:>10.0} ns a get   socket {socket:>10.0} ns a get   factor {:>8.0}", socket / local);
    Ok(())
}
