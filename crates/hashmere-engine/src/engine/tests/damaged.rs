//! Segment words that no client can have written: whatever state they say and whose they say it is, nobody looks up a client
//! that cannot be, and nobody panics.

use super::world::{cache, strict, Client, Geometry, World};
use hashmere_format::segment::{self, State, Word};
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// A store with values in most of its segments.
fn filled(geometry: Geometry) -> (World, Client) {
    let world = World::new(geometry);
    let client = world.client();
    let values = if geometry.cache { 400 } else { 120 };
    (0..values).for_each(|i| drop(client.t_set(format!("key{i}").as_bytes(), &[b'v'; 480])));
    (world, client)
}

/// Everything that looks for segments. What comes of it does not matter.
fn use_it(client: &Client) {
    let _ = client.t_set(b"large", &[b'l'; 20_000]);
    (0..40).for_each(|i| drop(client.t_set(format!("new{i}").as_bytes(), &[b'n'; 480])));
    let _ = (client.t_compact(), client.sweep(), client.check(), client.t_set(b"large", &[b'l'; 30_000]));
    let _ = (client.t_scan(), client.t_clear(), client.t_set(b"after", b"value"));
}

/// All segments of a cache are being emptied by a client that cannot exist: a large value waited for that one, and died of
/// looking for its name (a bus error, on a file).
#[test]
fn a_cache_emptied_by_nobody() {
    for owner in [1025, 0xfffe, 0xffff] {
        let (_world, client) = filled(cache(32));
        for segment in (0..client.segments()).filter(|s| !matches!(client.state(*s).state, State::Index | State::Open))
        {
            let word = Word { owner, ..Word::new(State::Cleaning) };
            client.mem.store(client.entry_of(segment) + segment::at::STATE, word.pack(), Ordering::Relaxed);
        }
        let refused = client.t_set(b"large", &[b'l'; 20_000]).unwrap_err();
        assert_eq!(refused.code(), 31, "{refused}");
        use_it(&client);
    }
}

#[test]
fn each_segment_in_each_state_of_nobody() {
    for geometry in [cache(32), strict(32)] {
        let segments = filled(geometry).1.segments();
        let step = if cfg!(miri) { 13 } else { 5 };
        for segment in (1..segments).step_by(step) {
            for state in 0..=15u64 {
                for owner in [1025u64, 0xfffe] {
                    let (_world, client) = filled(geometry);
                    let at = client.entry_of(segment) + segment::at::STATE;
                    client.mem.store(at, state | owner << 8, Ordering::Relaxed);
                    // What was a hole is read as if it were none.
                    client.probe.be_lenient();
                    client.probe.limit(client.probe.accesses() + 50_000_000);
                    use_it(&client);
                }
            }
        }
    }
}
