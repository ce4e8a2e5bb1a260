//! A cache never answers that it is full to a record that fits: whatever is taken meanwhile, and however the record is written.

use super::world::{cache, World};
use crate::engine::segments::Need;
use crate::engine::When;
use crate::types::{Attributes, Ttl};

/// Nothing is free, not even the reserve (a row of segments that is being made takes it), and what has expired lies among what
/// lives and has no room to move to.
#[test]
fn expired_records_among_others_while_nothing_is_free() {
    let world = World::new(cache(24));
    let (client, other) = (world.client(), world.client());
    world.peers.set_now_ms(1000);
    for i in 0..400 {
        let ttl = if i % 3 == 0 { Ttl::At(2000) } else { Ttl::Never };
        client
            .t_put(format!("old{i}").as_bytes(), &[b'o'; 300], Attributes { ttl, ..Attributes::NONE }, When::Always)
            .unwrap();
    }
    world.peers.set_now_ms(5000);
    let lane = other.lane().unwrap();
    while other.claim(lane.slot, Need::Reserve, 4096, &mut None).unwrap().is_some() {}
    assert_eq!(client.vacant(), 0);
    for i in 0..400 {
        let key = format!("new{i}");
        client.t_set(key.as_bytes(), &[b'n'; 300]).unwrap();
        assert!(client.t_get(key.as_bytes()).unwrap().is_some(), "{key}");
    }
}
