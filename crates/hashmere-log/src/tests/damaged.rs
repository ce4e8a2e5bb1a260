//! Words that another process can damage: whatever one says, no process panics and none searches without end. Lines may
//! be lost, and the drainer may be told that the log is damaged.

use super::fixture::{client, Fixture, Gone, Policy, Same};
use crate::error::LogError;
use crate::history::Found;
use crate::layout::{at, line, row, Head};
use crate::line::LogLine;
use crate::output::{Carrier, Scratch};
use hashmere_mem::{HeapMem, Mem};
use std::sync::atomic::Ordering;

/// Takes everything at once.
struct Hole;

impl Carrier<HeapMem> for Hole {
    fn identity(&self) -> (u64, u64) {
        (1, 2)
    }
    fn carry(&mut self, mem: &HeapMem, progress: u64, text: &[u8]) -> Result<(), LogError> {
        mem.store(progress, text.len() as u64, Ordering::Release);
        Ok(())
    }
}

/// Lines in the history, delivered and not, and in the rings; the history has gone round.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let (writer, other) = (fixture.actor(), fixture.actor());
    let (mut first, mut second) = (writer.claim(1), other.claim(2));
    for n in 0..30 {
        writer.log(&mut first, Policy::Drop, &format!("line {n}"));
        other.log(&mut second, Policy::Overwrite, &format!("other {n}"));
        if n % 3 == 0 {
            writer.drain(1, &Gone(Vec::new()));
        }
    }
    let core = fixture.core();
    core.merge(u64::MAX - 1, &Same, |ring| core.get(core.geometry.row(ring) + row::TAIL)).unwrap();
    writer.log(&mut first, Policy::Drop, "the last");
    fixture
}

/// Everything that is done with a log, by those who come new to it. What is refused is refused.
fn use_it(fixture: &Fixture) {
    let core = fixture.core();
    let mut scratch = Scratch::default();
    let _ = core.check_history();
    core.recover_merge();
    let _ = core.recover_rings(client(7), &Gone(vec![client(1), client(2)]));
    let mut cursors: Vec<_> = (0..5).filter_map(|n| core.claim(client(n + 10), 9, b"late")).collect();
    for round in 0..4 {
        for cursor in &mut cursors {
            for _ in 0..6 {
                if !cursor.has_room(9) {
                    cursor.look(core.mem);
                }
                if !cursor.has_room(9) {
                    cursor.make_room(core.mem, 9);
                }
                cursor.append(core.mem, 3, 0, b"some text", || 1000 + round);
            }
        }
        let _ = core.merge(u64::MAX - 1, &Same, |ring| core.get(core.geometry.row(ring) + row::TAIL));
        let mut write = |record: &LogLine, out: &mut Vec<u8>| out.extend_from_slice(record.text());
        let _ = core.resume(&mut Hole, &mut scratch);
        let _ = core.deliver(&mut write, &mut Hole, &mut scratch);
    }
    let _ = core.hand_over(&mut |_| (), &mut scratch);
    for ring in 0..core.rings_used() {
        let _ = (core.waiting(ring), core.unreported_drops(ring));
    }
    let (_, _) = (core.halves(), core.has_lines());
    for start in [0, 8, core.get(at::OLDEST), core.get(at::SENT), core.get(at::END), u64::MAX, u64::MAX - 7] {
        let mut position = start;
        // A line has 48 bytes at least, so no more of them are in the history.
        for step in 0.. {
            assert!(step <= 4 * core.geometry.history_bytes / line::MERGED_PAYLOAD, "endless lines from {start:#x} on");
            match core.read_line(position, &mut scratch.record) {
                Ok(Found::Line(next)) => position = next,
                Ok(Found::Gone(oldest)) if step == 0 => position = oldest,
                _ => break,
            }
        }
    }
}

#[test]
fn whatever_a_word_says() {
    let origin = fixture();
    use_it(&origin.image());
    let core = origin.core();
    let mut words: Vec<u64> = (at::LEVEL..at::SIZE).step_by(8).collect();
    for ring in 0..2 {
        words.extend((0..row::SIZE).step_by(8).map(|word| core.geometry.row(ring) + word));
    }
    let step = if cfg!(miri) { 29 } else { 1 };
    for word in words.into_iter().step_by(step) {
        let now = core.get(word);
        let near = [1, 7, 8, 48, 1024].into_iter().flat_map(|by| [now.wrapping_sub(by), now.wrapping_add(by)]);
        let far = [0, 1, 8, 1 << 31, 1 << 61, (1 << 62) - 8, 1 << 62, 1 << 63, u64::MAX - 7, u64::MAX];
        for value in near.chain(far) {
            let image = origin.image();
            image.core().put(word, value);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| use_it(&image)));
            assert!(done.is_ok(), "the word at {word} says {value:#x} (it was {now:#x})");
        }
    }
}

/// One that is damaged while a merge goes on, after the words were compared.
#[test]
fn what_was_delivered_is_damaged_within_a_merge() {
    let origin = fixture();
    for (word, value) in [at::SENT, at::OLDEST]
        .into_iter()
        .flat_map(|at| [0, 4096, 1 << 61, (1 << 62) - 8, u64::MAX - 7, u64::MAX].map(move |value| (at, value)))
    {
        let image = origin.image();
        let core = image.core();
        // The tail is asked for when the words were looked at already.
        let tail = |ring: u64| {
            core.put(word, value);
            core.get(core.geometry.row(ring) + row::TAIL)
        };
        let merged = core.merge(u64::MAX - 1, &Same, tail).unwrap();
        assert!(merged.lines <= 1);
    }
    // The head of a line in the history too.
    let image = origin.image();
    let core = image.core();
    for payload in [0, 0xff_ffff] {
        let head = Head { payload, level: 3, flags: 0, number: 0 };
        core.mem.store(core.history().at(core.get(at::OLDEST)), head.pack(), Ordering::Relaxed);
        use_it(&image);
    }
}
