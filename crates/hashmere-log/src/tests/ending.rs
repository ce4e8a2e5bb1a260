//! A thread gives its ring back at its very end: a thread that comes for one just before waits for that.

use crate::{Level, Log, LogError, LogOptions, OnFull, OnNoDrainer};
use hashmere::Options;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[test]
fn rings_of_threads_that_are_ending_are_waited_for() {
    let path = format!("/dev/shm/hashmere-log-ending-{}.mere", std::process::id());
    let store = Options::new().open(&path).unwrap();
    let log =
        Log::open(&store, "log", LogOptions::new().rings(1).on_no_drainer(OnNoDrainer::Keep).on_full(OnFull::Drop))
            .unwrap();
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
        end.send(()).unwrap();
        assert!(line().unwrap(), "the only ring was about to be given back");
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
    });
    std::fs::remove_file(path).unwrap();
}
