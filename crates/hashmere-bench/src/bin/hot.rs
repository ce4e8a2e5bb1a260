//! Gets of hot 8-byte values by the Rust call: prints nanoseconds for each. Its twin is `bench/c/hot.c`.
//! Usage: hot STORE GETS

use hashmere::Store;
use std::error::Error;
use std::time::Instant;

const KEYS: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(name), Some(gets)) = (args.next(), args.next()) else { return Err("usage: hot STORE GETS".into()) };
    let gets: u32 = gets.parse()?;
    // Of a length that the compiler does not know, as in C: else it makes a get for eight bytes.
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|i| format!("{i:08}").into_bytes()).collect();
    let store = Store::open(name)?;
    for key in &keys {
        store.set(key, key)?;
    }
    let mut value = Vec::with_capacity(64);
    let mut last = 0.0;
    for _ in 0..2 {
        // The first warms up.
        let mut draw = 1u32;
        let begin = Instant::now();
        for _ in 0..gets {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223); // Numerical Recipes
            let key = &keys[(draw >> 22) as usize];
            if store.get_into(key, &mut value)?.is_none() || &value != key {
                return Err("a wrong value".into());
            }
        }
        last = begin.elapsed().as_nanos() as f64 / f64::from(gets);
    }
    println!("{last:.2}");
    Ok(())
}
