//! Promise: kill -9 of the server loses nothing that was acknowledged, local processes are not stopped, and the next
//! server is warm at once.

use crate::support::{start_on, Scratch, PATIENCE};
use hashmere::Options;
use hashmere_testkit::limits::SetOnDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn killed_in_the_middle_of_traffic() {
    let scratch = Scratch::new("serve");
    let mut server = start_on(&scratch, &[]);
    let store = Options::new().create(false).open(scratch.path().join("ns/memcached.mere")).unwrap();
    let (stop, local, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = SetOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let n = local.fetch_add(1, Ordering::Relaxed);
                store.set(format!("local{}", n % 1000).as_bytes(), &n.to_le_bytes()).unwrap();
                assert_eq!(store.get(format!("local{}", n % 1000).as_bytes()).unwrap().unwrap(), n.to_le_bytes());
            }
        });
        for round in 0..5 {
            let mut client = server.connect();
            let child = server.child.id();
            let stored = &acknowledged;
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(100 + 30 * round));
                // On a busy machine until there was some traffic.
                let deadline = Instant::now() + PATIENCE;
                while stored.load(Ordering::Relaxed) < 50 * (round + 1) && Instant::now() < deadline {
                    std::thread::yield_now();
                }
                let _ = std::process::Command::new("kill").args(["-9", &child.to_string()]).status();
            });
            loop {
                let n = acknowledged.load(Ordering::Relaxed);
                client.send(format!("set s{n} 0 0 8\r\n{n:08}\r\n").as_bytes());
                let (answer, open) = client.until(b"\r\n");
                if !open {
                    break;
                }
                assert_eq!(answer, b"STORED\r\n");
                acknowledged.store(n + 1, Ordering::Relaxed);
            }
            let before = local.load(Ordering::Relaxed);
            server.child.wait().unwrap();
            while local.load(Ordering::Relaxed) < before + 1000 {
                std::thread::yield_now();
            }
            server = start_on(&scratch, &[]);
            let mut client = server.connect();
            let acknowledged = acknowledged.load(Ordering::Relaxed);
            for n in 0..acknowledged {
                client.send(format!("get s{n}\r\n").as_bytes());
            }
            for n in 0..acknowledged {
                let (answer, _) = client.until(b"END\r\n");
                assert_eq!(String::from_utf8(answer).unwrap(), format!("VALUE s{n} 0 8\r\n{n:08}\r\nEND\r\n"));
            }
        }
    });
    assert!(acknowledged.into_inner() >= 250, "too little was done to show anything");
    drop(server);
    assert!(store.check().is_clean(), "{:?}", store.check());
}
