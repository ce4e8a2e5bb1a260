//! Readers of a key, while its segment is emptied, recycled and filled with something else.
//!
//! Catches a reader that takes bytes of the segment's next life for its value, a key that is missed while it moves, and
//! a writer that counts a record as dead in the segment's next life.

use super::emptied::{is_value, overwrite, stage, value, writer, SEGMENT};
use super::explore::{explore, must_find, wrong};
use super::stage::{Player, FOREVER};
use crate::engine::reclaim::clean::Policy;
use crate::engine::tests::crash::State;
use crate::error::WriteError;
use crate::fault::Fault;
use hashmere_format::header::at;
use hashmere_mem::shuttle::thread;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;

/// Reads the key in the ordinary way.
fn get(client: &Player) {
    match client.t_get(b"key") {
        Ok(Some(bytes)) => is_value("key", &bytes),
        other => wrong(format!("the key was missed: {other:?}")),
    }
}

/// Reads it as one of several, looked up ahead of its turn.
fn get_ahead(client: &Player) {
    match client.t_get_many(&[b"absent", b"key"]).as_deref() {
        Ok([None, Some(bytes)]) => is_value("key", bytes),
        other => wrong(format!("the key was missed: {other:?}")),
    }
}

/// Reads it while another client recycles another segment, so that only the generation of its own decides.
fn get_by_generation(client: &Player) {
    let mut others = 1;
    let read = client.read(b"key", client.hash(b"key"), |found| {
        client.mem.fetch_add(at::EPOCH, std::mem::take(&mut others), Ordering::SeqCst);
        let mut bytes = Vec::new();
        client.mem.append_to(found.value(), found.value_len(), &mut bytes);
        Ok(bytes)
    });
    match read {
        Ok(Some(bytes)) => is_value("key", &bytes),
        other => wrong(format!("the key was missed: {other:?}")),
    }
}

fn after() -> State {
    State::from([(b"key".to_vec(), value("key", 1)), (b"next".to_vec(), value("next", 0))])
}

fn while_overwritten(read: fn(&Player)) -> impl Fn() + Send + Sync + 'static {
    let stage = stage(1);
    move || {
        let play = stage.play(FOREVER);
        let (reader, writer) = (play.client(), writer(&play, "a", 1));
        read(&reader);
        play.begin();
        let reader = thread::spawn(move || {
            (0..2).for_each(|_| read(&reader));
            reader
        });
        let writer = thread::spawn(move || {
            overwrite(&writer);
            writer
        });
        let _alive = (reader.join().unwrap(), writer.join().unwrap());
        play.end(&[after()]);
    }
}

/// Moves what lives out of the key's segment and stores another key, for which the segment is recycled.
fn clean(client: &Player) {
    let mut writer = client.writer().unwrap();
    match client.clean_segment(&mut writer, SEGMENT, Policy::Move) {
        Ok(_) | Err(WriteError::Full { .. }) => {}
        Err(error) => wrong(error),
    }
    drop(writer);
    client.t_set(b"next", &value("next", 0)).unwrap_or_else(|error| wrong(error));
}

fn while_moved(read: fn(&Player)) -> impl Fn() + Send + Sync + 'static {
    let stage = stage(2);
    move || {
        let play = stage.play(FOREVER);
        let (reader, cleaner, writer) = (play.client(), writer(&play, "a", 1), writer(&play, "b", 1));
        read(&reader);
        play.begin();
        let reader = thread::spawn(move || {
            (0..2).for_each(|_| read(&reader));
            reader
        });
        let cleaner = thread::spawn(move || {
            clean(&cleaner);
            cleaner
        });
        let writer = thread::spawn(move || {
            writer.t_set(b"key", &value("key", 1)).unwrap_or_else(|error| wrong(error));
            writer
        });
        let _alive = (reader.join().unwrap(), cleaner.join().unwrap(), writer.join().unwrap());
        play.end(&[after()]);
    }
}

#[test]
fn a_value_stays_whole_while_it_is_overwritten() {
    explore("recycle/overwrite", while_overwritten(get));
    explore("recycle/overwrite, by generation", while_overwritten(get_by_generation));
    explore("recycle/overwrite, ahead", while_overwritten(get_ahead));
}

#[test]
fn a_key_is_found_while_it_moves() {
    explore("recycle/move", while_moved(get));
    explore("recycle/move, by generation", while_moved(get_by_generation));
    explore("recycle/move, ahead", while_moved(get_ahead));
}

#[test]
fn finds_a_writer_that_counts_too_late() {
    must_find(Fault::MarkingIgnored, while_moved(get));
}

#[test]
fn finds_a_set_that_believes_what_it_saw_before_the_lock() {
    must_find(Fault::LookupBelieved, while_moved(get));
}

#[test]
fn finds_a_reader_that_ignores_the_epoch() {
    must_find(Fault::EpochIgnored, while_overwritten(get));
    must_find(Fault::EpochIgnored, while_overwritten(get_ahead));
}

#[test]
fn finds_a_reader_that_ignores_the_generation() {
    must_find(Fault::GenerationIgnored, while_overwritten(get_by_generation));
}

#[test]
fn finds_a_segment_that_is_recycled_in_silence() {
    must_find(Fault::RecycleUnsaid, while_overwritten(get));
}
