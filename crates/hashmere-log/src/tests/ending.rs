//! A thread gives its ring back at its very end: a thread that comes for one just before waits for that.

use crate::handle::ENDING;
use crate::{Level, Log, LogError, LogOptions, OnFull, OnNoDrainer};
use hashmere::Options;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[test]
fn rings_of_threads_that_are_ending_are_waited_for() {
    // One that is not run for as long as others wait is waited for in vain: on a busy machine it is tried again.
    assert!((0..20).any(|_| is_waited_for()), "the only ring was about to be given back");
}

/// Whether a thread got the only ring from one that was ending; if not, it waited for as long as it should.
fn is_waited_for() -> bool {
    let path = format!("/dev/shm/hashmere-log-ending-{}.mere", std::process::id());
    // What a process of the same number left that was killed.
    let _ = std::fs::remove_file(&path);
    let store = Options::new().open(&path).unwrap();
    let log =
        Log::open(&store, "log", LogOptions::new().rings(1).on_no_drainer(OnNoDrainer::Keep).on_full(OnFull::Drop))
            .unwrap();
    std::fs::remove_file(path).unwrap();
    let line = || log.line(Level::Info, "a line");
    std::thread::scope(|scope| {
        let (has_ring, told) = channel();
        let (end, may_end) = channel();
        scope.spawn(move || {
            assert!(line().unwrap());
            has_ring.send(()).unwrap();
            may_end.recv().unwrap();
            // What a thread has to do after the thread that joins it has gone on.
            std::thread::sleep(Duration::from_millis(40));
        });
        told.recv().unwrap();
        let begun = Instant::now();
        end.send(()).unwrap();
        match line() {
            Ok(is_logged) => assert!(is_logged),
            Err(LogError::TooMany { rings: 1 }) => {
                assert!(begun.elapsed() >= ENDING, "refused after {:?}", begun.elapsed());
                return false;
            }
            Err(error) => panic!("{error}"),
        }
        // The ring of a thread that goes on is not given away: after a wait that is the answer, and the next one is
        // refused at once.
        let refused = scope.spawn(move || {
            let first = line();
            let begun = Instant::now();
            (first, line(), begun.elapsed())
        });
        let (first, second, took) = refused.join().unwrap();
        assert!(matches!(first, Err(LogError::TooMany { rings: 1 })), "{first:?}");
        assert!(matches!(second, Err(LogError::TooMany { rings: 1 })), "{second:?}");
        println!("the second refusal took {took:?}");
        true
    })
}
