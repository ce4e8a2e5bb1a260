//! A value read in place, and one written in place.

use hashmere::{Attributes, Store};
use std::error::Error;

const BYTES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open("sample-view")?;

    store.set(b"frame", &vec![1; BYTES])?;
    let view = store.view(b"frame")?.ok_or("the frame is gone")?;
    println!("a view of {} bytes, {}", view.len(), if view.is_zero_copy() { "not copied" } else { "copied" });
    store.set(b"frame", &vec![2; BYTES])?;
    let now = store.view(b"frame")?.ok_or("the frame is gone")?;
    println!("overwritten; the view still begins with {}, the store with {}", view[0], now[0]);
    drop((view, now));

    let mut room = store.reserve(b"squares", 8, Attributes::NONE)?;
    for (i, square) in (0u8..).zip(room.iter_mut()) {
        *square = i * i;
    }
    room.commit()?;

    let squares = store.view(b"squares")?.ok_or("the squares are gone")?;
    let squares: Vec<String> = squares.iter().map(u8::to_string).collect();
    println!("written in place: {}", squares.join(" "));

    drop(store);
    Store::remove("sample-view")?;
    Ok(())
}
