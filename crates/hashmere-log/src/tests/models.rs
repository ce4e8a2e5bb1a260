//! Models: small scenarios of writers, drainers and followers of a log, run under a scheduler that lets them change
//! places before every access. See `docs/internals/testing.md`. Memory is sequentially consistent here: what is
//! explored is interleavings, not orderings.

use super::fixture::{client, lost, Actor, Fixture, Policy};
use super::play::{sane, text, Play, User};
use crate::fault::{self, Fault};
use crate::history::Found;
use crate::layout::{at, row, wake_flag, Geometry};
use crate::line::LogLine;
use crate::merge::Merged;
use crate::ring::Cursor;
use hashmere_mem::scenarios::{self, explore, wrong};
use hashmere_mem::shuttle::rand::{thread_rng, Rng};
use hashmere_mem::shuttle::thread;
use hashmere_mem::traced::until_death;
use hashmere_mem::Mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn must_find(fault: Fault, scenario: impl Fn() + Send + Sync + 'static) {
    scenarios::must_find(&format!("{fault:?}"), |tell| fault::with(fault, tell), scenario);
}

/// Two write, one drains.
fn order() -> impl Fn() + Send + Sync + 'static {
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let threads = vec![play.writer(0, 2), play.writer(1, 3), play.spawn(|play, actor| play.drain(actor, 5))];
        play.end(threads);
    }
}

#[test]
fn lines_come_out_once_and_in_order_of_time() {
    explore("log/order", order());
}

#[test]
fn finds_a_line_that_is_not_announced() {
    must_find(Fault::BusyOmitted, order());
}

#[test]
fn finds_a_clock_that_is_read_too_early() {
    must_find(Fault::ClockEarly, order());
}

#[test]
fn finds_a_line_that_is_committed_too_early() {
    must_find(Fault::LineEarly, order());
}

/// One that dies at one of its first stores.
fn doomed(play: &Play, stores: u64) -> User {
    let victim = play.actor();
    victim.mem.die_at(thread_rng().gen_range(0..stores));
    victim
}

fn write_until_death(play: &Play, victim: &User) {
    sane(|| {
        let _ = until_death(|| play.write(victim, 0, 3));
    });
}

/// A writer dies at any of its stores; another one may get its ring; one drains and clears up.
fn deaths_of_writers() -> impl Fn() + Send + Sync + 'static {
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let victim = doomed(&play, 30);
        play.writing.fetch_add(1, Ordering::Relaxed);
        let (dying, mem) = (play.clone(), play.mem.clone());
        let victim = mem.spawn(move || {
            write_until_death(&dying, &victim);
            dying.dead.lock().unwrap().push(client(0));
            dying.writing.fetch_sub(1, Ordering::Relaxed);
        });
        let threads = vec![
            victim,
            play.writer(1, 3),
            play.spawn(|play, actor| {
                // One that looks for crashed processes as well, as a process that opens the log does.
                while play.writing.load(Ordering::Relaxed) > 0 {
                    actor.core().recover_rings(client(6), play).unwrap();
                    thread::yield_now();
                }
                play.write(actor, 2, 2);
            }),
            play.spawn(|play, actor| play.drain(actor, 5)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sane(|| play.drain(&play.actor(), 7));
        play.end(Vec::new());
    }
}

#[test]
fn lines_of_a_crashed_writer_come_out_and_half_lines_do_not() {
    explore("log/writers", deaths_of_writers());
}

#[test]
fn finds_a_ring_taken_from_a_live_process() {
    must_find(Fault::RingStolen, deaths_of_writers());
}

/// One died within a line, before the others come: two of them clear up, one wants a ring at that moment, and there is
/// no other.
fn half_left_behind() -> impl Fn() + Send + Sync + 'static {
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let victim = doomed(&play, 30);
        write_until_death(&play, &victim);
        let idle = play.actor();
        (0..3).for_each(|_| _ = idle.claim(8));
        play.dead.lock().unwrap().push(client(0));
        play.writing.fetch_add(1, Ordering::Relaxed);
        let threads = vec![
            play.spawn(|play, actor| actor.core().recover_rings(client(6), play).unwrap()),
            play.spawn(|play, actor| {
                let core = actor.core();
                while (0..4).all(|ring| core.get(core.geometry.row(ring) + row::OWNER) != 0) {
                    thread::yield_now();
                }
                let cursor = actor.claim(1);
                play.write_to(actor, cursor, 1, 3);
                play.writing.fetch_sub(1, Ordering::Relaxed);
            }),
            play.spawn(|play, actor| play.drain(actor, 5)),
        ];
        play.end(threads);
    }
}

#[test]
fn a_half_line_is_cleared_away_before_its_ring_is_free() {
    explore("log/halves", half_left_behind());
}

#[test]
fn finds_a_ring_that_is_free_too_early() {
    must_find(Fault::RingEarly, half_left_behind());
}

/// A drainer dies at any of its stores; two want to be the next one; one writes at the same time.
fn deaths_of_drainers() -> impl Fn() + Send + Sync + 'static {
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let victim = doomed(&play, 120);
        let (dying, mem) = (play.clone(), play.mem.clone());
        let victim = mem.spawn(move || {
            sane(|| {
                let _ = until_death(|| dying.drain_standby(&victim, 5));
            });
            dying.dead.lock().unwrap().push(client(5));
        });
        let mut threads = vec![play.writer(0, 3), victim];
        threads.extend((6..8).map(|number| play.spawn(move |play, actor| play.drain_standby(actor, number))));
        play.end(threads);
    }
}

#[test]
fn one_drains_at_a_time_and_the_next_goes_on() {
    explore("log/drainers", deaths_of_drainers());
}

#[test]
fn finds_a_role_taken_from_a_live_process() {
    must_find(Fault::DrainerOverwritten, deaths_of_drainers());
}

#[test]
fn finds_a_role_that_is_stored() {
    must_find(Fault::RoleStored, deaths_of_drainers());
}

/// One overwrites its oldest lines while they are drained.
fn overwriting() -> impl Fn() + Send + Sync + 'static {
    const LINES: u32 = 9;
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let threads = vec![
            play.spawn(|play, actor| {
                play.writing.fetch_add(1, Ordering::Relaxed);
                let mut cursor = actor.claim(0);
                (0..LINES).for_each(|n| assert!(actor.log(&mut cursor, Policy::Overwrite, &text(0, n))));
                actor.core().release(&cursor);
                play.writing.fetch_sub(1, Ordering::Relaxed);
            }),
            play.spawn(|play, actor| play.drain(actor, 5)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sane(|| play.drain(&play.actor(), 5));
        let (mut next, mut told) = (0, 0);
        for line in sane(|| play.image().lines()) {
            if let Some((lost, _)) = lost(&line).filter(|(lost, _)| *lost < LINES) {
                (next, told) = (next + lost, told + lost);
            } else if line == text(0, next) {
                (next, told) = (next + 1, told + 1);
            } else {
                wrong(format!("{line:?} came as line {next}"));
            }
        }
        if told != LINES {
            wrong(format!("{told} of {LINES} lines came out or are known to be lost"));
        }
    }
}

#[test]
fn lines_that_are_given_up_are_told_of_and_no_others() {
    explore("log/overwriting", overwriting());
}

#[test]
fn finds_lines_that_are_given_up_in_silence() {
    must_find(Fault::LowOmitted, overwriting());
}

#[test]
fn finds_a_copy_that_is_believed() {
    must_find(Fault::GivenUpUnchecked, overwriting());
}

/// A ring of an owner that has left after dropping lines; others have it one after the other, and drop lines as well.
fn heirs() -> impl Fn() + Send + Sync + 'static {
    const LINES: u32 = 4;
    let start = Fixture::of(Geometry { rings: 1, ring_bytes: 256, history_bytes: 4096 });
    drop_some(&start.actor(), 0, LINES);
    move || {
        let play = Play::new(&start);
        let heir = play.spawn(move |play, actor| {
            play.writing.fetch_add(1, Ordering::Relaxed);
            (1..3).for_each(|who| drop_some(actor, who, LINES));
            play.writing.fetch_sub(1, Ordering::Relaxed);
        });
        let threads = vec![heir, play.spawn(|play, actor| play.drain(actor, 5))];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sane(|| play.drain(&play.actor(), 5));
        let lines = sane(|| play.image().lines());
        let losses = || lines.iter().filter_map(|line| lost(line));
        let told = [0, 1, 2].map(|who| losses().filter(|loss| loss.1 == who).map(|loss| loss.0).sum::<u32>());
        let came = lines.iter().filter(|line| line.starts_with('x')).count() as u32;
        if told[0] != LINES - 3 || told.iter().any(|told| *told > LINES) || came + told.iter().sum::<u32>() != 3 * LINES
        {
            wrong(format!("{came} lines came, lost are {told:?}: {lines:?}"));
        }
    }
}

/// Claims a ring, in which there is room for three such lines, logs, and leaves.
fn drop_some<M: Mem>(actor: &Actor<M>, who: u64, lines: u32) {
    let mut cursor = actor.claim(who);
    for n in 0..lines {
        actor.log(&mut cursor, Policy::Drop, &"x".repeat(50 + n as usize));
    }
    actor.core().release(&cursor);
}

#[test]
fn losses_are_told_by_name() {
    explore("log/heirs", heirs());
}

/// A writer whose ring is full, a drainer without lines and a follower at the end of the history sleep until another
/// wakes them.
fn sleepers() -> impl Fn() + Send + Sync + 'static {
    const LINES: u32 = 8;
    let start = Fixture::new();
    move || {
        let play = Play::new(&start);
        let threads = vec![
            play.spawn(|play, actor| {
                let mut cursor = actor.claim(0);
                for n in 0..LINES {
                    log_patiently(actor, &mut cursor, &text(0, n));
                    play.logged.lock().unwrap().push(text(0, n));
                }
            }),
            play.spawn(|play, actor| {
                let core = actor.core();
                let mut lines = 0;
                while lines < u64::from(LINES) {
                    let merged = play.pass(actor, 5);
                    lines += merged.lines;
                    if merged == Merged::default() {
                        core.sleep_for_lines(Duration::MAX);
                        core.put(at::WAKE_FLAG, wake_flag::AWAKE);
                    }
                }
            }),
            play.spawn(|_, actor| {
                let (mut position, mut record, mut lines) = (0, LogLine::default(), 0);
                while lines < LINES {
                    match actor.core().read_line(position, &mut record).unwrap() {
                        Found::Line(next) => (position, lines) = (next, lines + 1),
                        Found::End => actor.core().sleep_for_news(position, Duration::MAX),
                        Found::Gone(_) => wrong("a history that is long enough was written over"),
                    }
                }
            }),
        ];
        play.end(threads);
    }
}

/// As `Thread` logs a line: waits for room, and wakes the drainer.
fn log_patiently(actor: &User, cursor: &mut Cursor, text: &str) {
    let (core, len) = (actor.core(), text.len() as u64);
    if !cursor.has_room(len) {
        cursor.look(&*actor.mem);
        while !cursor.has_room(len) {
            let Some(waiter) = cursor.before_waiting(&*actor.mem, len) else { break };
            core.wake_drainer();
            waiter.wait(&*actor.mem, Duration::MAX);
        }
    }
    actor.append(cursor, text);
    match core.get(at::WAKE_FLAG) {
        wake_flag::AWAKE => {}
        state => core.clear_wake_flag(state),
    }
}

#[test]
fn no_drainer_sleeps_on() {
    explore("log/sleepers", sleepers());
}

#[test]
fn finds_a_writer_that_looks_too_early() {
    must_find(Fault::WaitingLate, sleepers());
}

#[test]
fn finds_a_drainer_that_does_not_look_again() {
    must_find(Fault::WakeFlagUnchecked, sleepers());
}

#[test]
fn finds_a_follower_that_does_not_look_again() {
    must_find(Fault::NewsUnchecked, sleepers());
}

/// One reads a short history while it is written over and over.
fn following() -> impl Fn() + Send + Sync + 'static {
    let start = Fixture::with_history(256);
    move || {
        let play = Play::new(&start);
        let threads = vec![
            play.writer(0, 9),
            play.spawn(|play, actor| play.drain(actor, 5)),
            play.spawn(|play, actor| {
                let (mut position, mut record, mut next) = (0, LogLine::default(), 0);
                loop {
                    let is_over = play.is_all_out();
                    match actor.core().read_line(position, &mut record).unwrap() {
                        Found::Line(behind) => {
                            let n = (next..9).find(|n| record.text() == text(0, *n).as_bytes());
                            let Some(n) = n else {
                                wrong(format!("read {:?} behind line {next}", String::from_utf8_lossy(record.text())))
                            };
                            (position, next) = (behind, n + 1);
                        }
                        Found::Gone(oldest) => position = oldest,
                        Found::End if is_over => break,
                        Found::End => thread::yield_now(),
                    }
                }
            }),
        ];
        play.end(threads);
    }
}

#[test]
fn a_follower_reads_whole_lines_in_order() {
    explore("log/following", following());
}

#[test]
fn finds_a_reader_that_does_not_look_again() {
    must_find(Fault::OldestUnchecked, following());
}
