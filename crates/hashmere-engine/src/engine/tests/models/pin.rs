//! A view of a value whose segment others want to recycle: it stays what it is until it is dropped.
//!
//! Catches a segment that is freed although it is pinned, and a pin on a segment that was freed just before.

use super::emptied::{is_value, overwrite, stage, value, writer};
use super::explore::{explore, must_find, wrong};
use super::stage::{Gate, Player, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::{Found, Showing};
use crate::fault::Fault;
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use hashmere_mem::Mem;
use std::sync::{Arc, OnceLock};

/// Looks at the key's value, and again a little later, as who holds a view may do. What happens `between` is called
/// after the first look.
fn view(client: &Player, between: &dyn Fn()) {
    let (key, kh) = (b"key", client.hash(b"key"));
    let mut exhausted = false;
    loop {
        let root = client.root_word();
        let Ok(Some(found)) = client.read(key, kh, |found| Ok(*found)) else { wrong("the key was missed") };
        let Some(pin) = client.pin(found.slot_offset, found.slot, root, &mut exhausted) else { continue };
        let again = client.look_again(&found, key, kh);
        again.iter().for_each(|found| look_twice(client, found, between));
        client.unpin(pin);
        if again.is_some() {
            return;
        }
    }
}

/// The same by the one look-up that suffices if nothing is in its way.
fn view_at_once(client: &Player, between: &dyn Fn()) {
    match client.show_key(b"key", client.hash(b"key")) {
        Showing::Pinned(found, pin, _) => {
            look_twice(client, &found, between);
            client.unpin(pin);
        }
        Showing::Unsure => view(client, between),
        Showing::Copied(..) | Showing::Absent => wrong("the value was not shown where it is"),
    }
}

fn look_twice(client: &Player, found: &Found, between: &dyn Fn()) {
    let looks = [(); 2].map(|()| {
        let mut bytes = Vec::new();
        client.mem.append_to(found.value(), found.value_len(), &mut bytes);
        is_value("key", &bytes);
        between();
        bytes
    });
    if looks[0] != looks[1] {
        wrong("the view changed");
    }
}

type View = fn(&Player, &dyn Fn());

/// Whether the writer stops at some access until the viewer has looked once: a cleaner that stops between its look for
/// pins and the recycling is rare otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    Through,
    Stopping,
}

fn while_overwritten(view: View, writes: Writes) -> impl Fn() + Send + Sync + 'static {
    // With room for one more segment, for as long as the view holds back the one that would be recycled.
    let stage = stage(2);
    let length = OnceLock::new();
    move || {
        let length = *length.get_or_init(|| {
            let play = stage.play(FOREVER);
            writer(&play, "a", 1).accesses(overwrite)
        });
        let play = stage.play(FOREVER);
        let (viewer, writer) = (play.client(), writer(&play, "a", 1));
        view(&viewer, &|| ());
        let gate = (writes == Writes::Stopping).then(Arc::<Gate>::default);
        if let Some(gate) = &gate {
            writer.stop_at(thread_rng().gen_range(0..length), gate);
        }
        play.begin();
        let viewer = thread::spawn(move || {
            view(&viewer, &|| {
                if let Some(gate) = &gate {
                    gate.open();
                    (0..length).for_each(|_| thread::yield_now());
                }
            });
            gate.iter().for_each(|gate| gate.open());
            viewer
        });
        let writer = thread::spawn(move || {
            overwrite(&writer);
            writer
        });
        let _alive = (viewer.join().unwrap(), writer.join().unwrap());
        play.end(&[State::from([(b"key".to_vec(), value("key", 1)), (b"next".to_vec(), value("next", 0))])]);
    }
}

#[test]
fn a_view_stays_what_it_was() {
    explore("pin/overwrite", while_overwritten(view, Writes::Through));
    explore("pin/overwrite, at once", while_overwritten(view_at_once, Writes::Through));
    explore("pin/stopped writer", while_overwritten(view, Writes::Stopping));
    explore("pin/stopped writer, at once", while_overwritten(view_at_once, Writes::Stopping));
}

#[test]
fn finds_a_pin_that_is_ignored() {
    must_find(Fault::PinIgnored, while_overwritten(view, Writes::Through));
    must_find(Fault::PinIgnored, while_overwritten(view_at_once, Writes::Through));
}

#[test]
fn finds_a_pin_that_comes_too_late() {
    must_find(Fault::PinBelieved, while_overwritten(view, Writes::Stopping));
    must_find(Fault::PinBelieved, while_overwritten(view_at_once, Writes::Stopping));
}
