//! A client clears the store and fills what that freed, while others write and read.
//!
//! Catches a writer that commits into an index, or marks a record in a segment, that was recycled under it.

use super::explore::{explore, must_find, wrong};
use super::stage::{Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::strict;
use crate::fault::Fault;
use hashmere_mem::shuttle::thread;

/// How many records of this size cover the root and the leaf of an index.
const WIDE_ONES: u8 = 3;
const WIDE: usize = 1000;

fn wide(n: u8) -> Vec<u8> {
    vec![b'0' + n; WIDE]
}

/// Clears, and writes where the index of before was.
fn clear(client: &Player) {
    client.t_clear().unwrap_or_else(|error| wrong(error));
    for n in 0..WIDE_ONES {
        client.t_set(&[b'w', n], &wide(n)).unwrap_or_else(|error| wrong(error));
    }
}

fn while_written() -> impl Fn() + Send + Sync + 'static {
    let stage = Stage::new(strict(8).small_leaves(), |fixture| {
        let mut client = fixture.client();
        client.t_set(b"key", b"first").unwrap();
        client.retire();
    });
    move || {
        let play = stage.play(FOREVER);
        let players = [(); 3].map(|()| play.client());
        players[0].t_set(b"other", b"").unwrap();
        players[1].t_set(b"more", b"").unwrap();
        drop(players[2].t_get(b"key"));
        let [clearer, writer, reader] = players;
        play.begin();
        let clearer = thread::spawn(move || {
            clear(&clearer);
            clearer
        });
        let writer = thread::spawn(move || {
            writer.t_set(b"key", b"second").unwrap_or_else(|error| wrong(error));
            writer
        });
        let reader = thread::spawn(move || {
            match reader.t_get(b"key") {
                Ok(None) => {}
                Ok(Some(value)) if value == b"first" || value == b"second" => {}
                other => wrong(format!("the key holds {other:?}")),
            }
            reader
        });
        let _alive = (clearer.join().unwrap(), writer.join().unwrap(), reader.join().unwrap());
        let cleared: State = (0..WIDE_ONES).map(|n| (vec![b'w', n], wide(n))).collect();
        let mut written = cleared.clone();
        written.insert(b"key".to_vec(), b"second".to_vec());
        play.end(&[cleared, written]);
    }
}

#[test]
fn a_write_is_before_or_after_a_clear() {
    explore("clear/write", while_written());
}

#[test]
fn finds_an_index_that_is_recycled_too_early() {
    must_find(Fault::ActiveIgnored, while_written());
}
