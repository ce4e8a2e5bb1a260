//! Writers of one key and a consumer; and a writer that dies.
//!
//! Catches entries in another order than the commits, positions that two writers take, an entry that is read while it
//! is written again, and a change of a crashed writer that no process reports.

use super::explore::{explore, must_find, wrong};
use super::stage::{Play, Player, Stage, FOREVER};
use crate::engine::tests::crash::State;
use crate::engine::tests::fixture::{strict, Client};
use crate::engine::FeedStep;
use crate::fault::Fault;
use hashmere_format::feed::{decode, Geometry};
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;

/// A ring of 16 positions, and three chunks of seven entries.
const FEED: Geometry = Geometry { ring_shift: 4, chunk_shift: 10, chunks: 3, values: true };

fn stage() -> Stage {
    Stage::new(strict(16).small_leaves().feed_of(FEED), |fixture| {
        let mut client: Client = fixture.client();
        client.t_set(b"k", b"0").unwrap();
        client.retire();
    })
}

/// A client with an open segment and a chunk.
fn writer(play: &Play) -> Player {
    let writer = play.client();
    writer.t_set(b"k", b"0").unwrap();
    writer
}

/// What a consumer reads from a position on: versions of the key, which must grow; the same again only of a repair.
fn follow(reader: &Player, mut position: u64, until: u64) -> u64 {
    let number = reader.feed_info().unwrap_or_else(|| wrong("the feed is off")).number;
    let (mut words, mut last) = (Vec::new(), 0);
    while position < until {
        match reader.read_feed(number, position, &mut words).unwrap_or_else(|error| wrong(error)) {
            FeedStep::Entry => {
                let (_, changes) = decode(&words).unwrap_or_else(|| wrong(format!("no entry: {words:x?}")));
                for change in changes.iter().filter(|change| change.key == b"k") {
                    if change.head.version < last {
                        wrong(format!("version {} after {last}", change.head.version));
                    }
                    last = change.head.version;
                }
                position += 1;
            }
            FeedStep::Gone | FeedStep::Gap => position += 1,
            FeedStep::End => break,
            FeedStep::Off => wrong("the feed is off"),
        }
    }
    position
}

fn two_writers_and_a_consumer() -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(FOREVER);
        let (one, other, reader) = (writer(&play), writer(&play), play.client());
        play.begin();
        let writers = [(one, b"1"), (other, b"2")].map(|(writer, value)| {
            thread::spawn(move || {
                for _ in 0..2 {
                    writer.t_set(b"k", value).unwrap_or_else(|error| wrong(error));
                }
                writer
            })
        });
        let reader = thread::spawn(move || {
            let mut position = 0;
            for _ in 0..3 {
                position = follow(&reader, position, u64::MAX);
            }
            reader
        });
        let [one, other] = writers.map(|writer| writer.join().unwrap());
        let reader = reader.join().unwrap();
        let info = reader.feed_info().unwrap_or_else(|| wrong("the feed is off"));
        // Of the setup: three sets.
        if info.position != 3 + 4 || follow(&reader, info.oldest, u64::MAX) != info.position {
            wrong(format!("{info:?} after seven sets"));
        }
        drop((one, other));
        play.end(&[b"1", b"2"].map(|value| State::from([(b"k".to_vec(), value.to_vec())])));
    }
}

/// One dies in a write, and another writes the same key.
fn a_death() -> impl Fn() + Send + Sync + 'static {
    let stage = stage();
    move || {
        let play = stage.play(FOREVER);
        let (victim, other) = (writer(&play), writer(&play));
        let from = other.feed_info().map_or(0, |info| info.position);
        let length = victim.accesses(|victim| victim.t_set(b"k", b"1").unwrap());
        victim.die_at(thread_rng().gen_range(0..length));
        play.begin();
        let victim = thread::spawn(move || {
            victim.until_death(|victim| victim.t_set(b"k", b"2").unwrap_or_else(|error| wrong(error)));
            victim
        });
        let other = thread::spawn(move || {
            other.t_set(b"k", b"3").unwrap_or_else(|error| wrong(error));
            other
        });
        let (victim, other) = (victim.join().unwrap(), other.join().unwrap());
        other.sweep().unwrap_or_else(|error| wrong(error));
        let value = other.t_get(b"k").unwrap_or_else(|error| wrong(error)).unwrap_or_default();
        let info = other.feed_info().unwrap_or_else(|| wrong("the feed is off"));
        follow(&other, from, info.position);
        // The last entry is what the key has.
        let mut words = Vec::new();
        let step = other.read_feed(info.number, info.position - 1, &mut words).unwrap_or_else(|error| wrong(error));
        let told = decode(&words).and_then(|(_, mut changes)| changes.pop()?.value);
        if step != FeedStep::Entry || told.as_ref() != Some(&value) {
            wrong(format!("{step:?}, {told:?}, where the key has {}", value.escape_ascii()));
        }
        drop(victim);
        play.end(&[State::from([(b"k".to_vec(), value)])]);
    }
}

#[test]
fn two_writers_and_a_consumer_agree() {
    explore("feed/two writers", two_writers_and_a_consumer());
}

#[test]
fn what_a_dead_writer_changed_is_told() {
    explore("feed/a death", a_death());
}

#[test]
fn finds_a_change_that_is_not_noted() {
    must_find(Fault::FeedUnsaid, a_death());
}
