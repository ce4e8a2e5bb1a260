//! A look at all clients finds each dead one, and asks about no living one twice.

use super::fixture::{strict, Fixture};
use hashmere_format::header::at;
use hashmere_format::row;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

const CLIENTS: u32 = 30;

#[test]
fn those_who_open_at_once_ask_once() {
    let fixture = Fixture::new(strict(32));
    let clients: Vec<_> = (0..CLIENTS).map(|_| fixture.client()).collect();
    clients.iter().for_each(|client| drop(client.writer().unwrap()));
    // All of them begin to look before the first asks; it notes what it finds out.
    let openers: Vec<_> = (0..5).map(|_| fixture.client()).collect();
    openers.iter().for_each(|opener| assert!(opener.begin_look() > 0));
    openers[0].sweep().unwrap();
    for opener in &openers[1..] {
        opener.probe.rewind();
        drop(opener.writer().unwrap());
        let stores = opener.probe.stores();
        // One for each that was asked about, besides what a claim writes.
        assert!(stores < 15, "{stores} stores");
    }
    // A sweep that begins later asks again: nothing is known of the time since.
    let later = fixture.client();
    later.probe.rewind();
    later.sweep().unwrap();
    assert!(later.probe.stores() > u64::from(CLIENTS), "{} stores", later.probe.stores());
}

#[test]
fn crashed_clients_are_found_whatever_is_noted_about_them() {
    for noted in [0, 1, 1 << 40, u64::MAX] {
        let fixture = Fixture::new(strict(32));
        let (one, other) = (fixture.client(), fixture.client());
        drop(other.writer().unwrap());
        let slot = one.writer().unwrap().slot;
        other.sweep().unwrap();
        one.kill();
        // As a damaged file may say.
        other.mem.store(row::offset(slot) + row::at::ALIVE, noted, Ordering::Release);
        assert!(other.is_active(slot));
        other.sweep().unwrap();
        assert!(!other.is_active(slot), "{noted} is noted");
        assert!(other.mem.load(at::SWEEPS, Ordering::Relaxed) >= 2);
    }
}
