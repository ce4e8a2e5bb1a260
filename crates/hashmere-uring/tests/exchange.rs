//! Promise: what is sent arrives whole and in order, however long buffers are held; what is cancelled ends; nothing
//! comes for a socket under the name of another.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use hashmere_uring::{probe, Buffer, Completion, Input, Ring, Tag, BUFFERS, BUFFER_BYTES};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// A ring, if there is io_uring here.
fn ring() -> Option<Ring> {
    if let Err(error) = probe() {
        eprintln!("skipped: {error}");
        return None;
    }
    let mut ring = Ring::new().unwrap();
    ring.enable().unwrap();
    Some(ring)
}

/// What completes next.
fn next(ring: &mut Ring) -> Completion {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(completion) = ring.next_completion() {
            return completion;
        }
        assert!(Instant::now() < end, "nothing completes");
        ring.wait(Duration::from_millis(100)).unwrap();
    }
}

#[test]
fn many_times_the_buffers_arrive_in_order() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let all: Vec<u8> =
        (0..4 * usize::from(BUFFERS) * BUFFER_BYTES).map(|at| (at as u32).wrapping_mul(2_654_435_761) as u8).collect();
    let sent = all.clone();
    let sending = std::thread::spawn(move || theirs.write_all(&sent).unwrap());
    let tag = Tag::new(3, 8);
    ring.receive(ours.as_fd(), tag).unwrap();
    let (mut got, mut held, mut ran_out) = (Vec::new(), Vec::<Buffer>::new(), 0);
    loop {
        let Completion::Received { tag: of, input, more } = next(&mut ring) else {
            panic!("nothing else was asked for")
        };
        assert_eq!(of, tag);
        match input {
            // None goes back before all are taken.
            Input::Bytes(buffer) => {
                got.extend_from_slice(&buffer);
                held.push(buffer);
            }
            Input::End => break,
            Input::Nothing => ran_out += 1,
            Input::Failed(error) => panic!("{error}"),
        }
        if !more {
            held.drain(..).for_each(|buffer| ring.give_back(buffer));
            ring.receive(ours.as_fd(), tag).unwrap();
        }
    }
    sending.join().unwrap();
    assert!(got == all, "{} of {} bytes", got.len(), all.len());
    assert!(ran_out >= 2, "buffers ran out {ran_out} times");
}

#[test]
fn a_long_reply_waits_for_room_and_is_sent_whole() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let tag = Tag::new(0, 1);
    let all: Vec<u8> = (0..3_000_000u32).map(|at| (at / 7) as u8).collect();
    let mut bytes = all.clone();
    ring.send(ours.as_fd(), tag, &mut bytes).unwrap();
    assert!(bytes.is_empty());
    ring.wait(Duration::ZERO).unwrap();
    assert!(ring.next_completion().is_none(), "there is no room for all of it");
    let reading = std::thread::spawn(move || {
        let mut got = vec![0; 3_000_000];
        theirs.read_exact(&mut got).unwrap();
        got
    });
    let Completion::Sent { tag: of, result } = next(&mut ring) else { panic!("nothing else was asked for") };
    assert_eq!(of, tag);
    result.unwrap();
    assert!(reading.join().unwrap() == all);
}

#[test]
fn what_is_cancelled_ends_and_the_socket_with_it() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let tag = Tag::new(9, 9);
    ring.receive(ours.as_fd(), tag).unwrap();
    // More than there is room for: it stays under way.
    ring.send(ours.as_fd(), tag, &mut vec![1; 8_000_000]).unwrap();
    ring.wait(Duration::ZERO).unwrap();
    ring.cancel(ours.as_fd()).unwrap();
    drop(ours);
    let (mut received, mut sent) = (false, false);
    while !(received && sent) {
        match next(&mut ring) {
            Completion::Received { tag: of, input, more } => {
                assert!(of == tag && matches!(input, Input::Nothing) && !more);
                received = true;
            }
            Completion::Sent { tag: of, result } => {
                assert!(of == tag && result.is_err());
                sent = true;
            }
            Completion::Ready => panic!("nothing was watched"),
        }
    }
    ring.wait(Duration::ZERO).unwrap();
    // What was sent of it, and then the end.
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    let got = theirs.read_to_end(&mut Vec::new()).unwrap();
    assert!(got < 8_000_000);
}

#[test]
fn a_ring_is_watched_for_what_is_ready_before_and_after() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ring.watch(ours.as_fd()).unwrap();
    ring.wait(Duration::ZERO).unwrap();
    assert!(ring.next_completion().is_none());
    theirs.write_all(b"x").unwrap();
    assert!(matches!(next(&mut ring), Completion::Ready));
    ring.watch(ours.as_fd()).unwrap();
    assert!(matches!(next(&mut ring), Completion::Ready));
}
