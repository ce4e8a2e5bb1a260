//! A cache never answers that it is full to a record that fits: whatever others take, and however the record is
//! written.

use super::fixture::{cache, Client, Fixture};
use crate::engine::log::segments::Need;
use crate::engine::When;
use crate::error::WriteError;
use crate::types::{Attributes, Ttl};
use hashmere_mem::Mem;

/// Nothing is free, not even the reserve (a row of segments that is being made takes it), and what has expired lies
/// among what lives and has no room to move to.
#[test]
fn expired_records_among_others_while_nothing_is_free() {
    let fixture = Fixture::new(cache(24));
    let (client, other) = (fixture.client(), fixture.client());
    fixture.peers.set_now_ms(1000);
    for i in 0..400 {
        let ttl = if i % 3 == 0 { Ttl::At(2000) } else { Ttl::Never };
        client
            .t_put(format!("old{i}").as_bytes(), &[b'o'; 300], Attributes { ttl, ..Attributes::NONE }, When::Always)
            .unwrap();
    }
    fixture.peers.set_now_ms(5000);
    let writer = other.writer().unwrap();
    while other.claim(writer.slot, Need::Reserve, 4096, &mut None).unwrap().is_some() {}
    assert_eq!(client.vacant(), 0);
    for i in 0..400 {
        let key = format!("new{i}");
        client.t_set(key.as_bytes(), &[b'n'; 300]).unwrap();
        assert!(client.t_get(key.as_bytes()).unwrap().is_some(), "{key}");
    }
}

fn reserve(client: &Client, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
    let (mut writer, kh) = (client.writer()?, client.hash(key));
    let draft = client.begin(&mut writer, key, kh, value.len() as u64, Attributes::NONE)?;
    client.mem.write(draft.value, value);
    client.finish_reserved(&mut writer, key, kh, draft, None)
}

/// The index has to grow for a reservation whose value is written already.
#[test]
fn reservations_for_which_the_index_must_grow() {
    for longest in [40, 1500, 9000] {
        let fixture = Fixture::new(cache(24).small_leaves());
        let client = fixture.client();
        for i in 0..if cfg!(miri) { 60 } else { 1500 } {
            let key = format!("key{i}");
            let value: Vec<u8> = key.bytes().cycle().take(if i % 8 == 0 { longest } else { 20 }).collect();
            reserve(&client, key.as_bytes(), &value).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert!(client.t_get(key.as_bytes()).unwrap() == Some(value), "{key} of {longest}");
        }
        assert!(client.check().is_clean());
    }
}
