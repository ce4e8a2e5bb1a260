//! Promise: of many clients that meet a missing or stale value one is told to compute it, also when they use different
//! servers of one store. Catches: two winners, a winner that is never chosen, stale values lost.

use crate::support::{Scratch, Server};

#[test]
fn one_winner_among_two_servers() {
    let scratch = Scratch::new();
    let (a, b) = (Server::on(&scratch, &[]), Server::on(&scratch, &[]));
    let (mut a, mut b) = (a.connect(), b.connect());
    assert_eq!(a.ask("mg k N60 v t\r\n"), "VA 0 t60 W\r\n\r\n");
    assert_eq!(b.ask("mg k N60 v\r\n"), "VA 0 Z\r\n\r\n");
    assert_eq!(b.ask("ms k 3 T60\r\nabc\r\n"), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3\r\nabc\r\n");
    // Invalidated: readers get the old value, one of them is told to bring the next.
    assert_eq!(a.ask("md k I T30\r\n"), "HD\r\n");
    assert_eq!(b.ask("mg k v t\r\n"), "VA 3 t30 X W\r\nabc\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3 Z X\r\nabc\r\n");
    // A value that was computed from the version before the invalidation is kept as stale.
    let version = a.ask("mg k c\r\n").split_whitespace().nth(1).unwrap()[1..].parse::<u64>().unwrap();
    assert_eq!(b.ask(&format!("ms k 3 C{} I\r\nold\r\n", version - 1)), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3 Z X\r\nold\r\n");
    assert_eq!(b.ask(&format!("ms k 3 C{}\r\nnew\r\n", version + 1)), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3\r\nnew\r\n");
    // Soon to expire: one is told.
    assert_eq!(a.ask("mg k T20\r\nmg k R30 t\r\nmg k R30 t\r\n"), "HD\r\nHD t20 W\r\nHD t20 Z\r\n");
}

#[test]
fn one_winner_in_a_race() {
    let scratch = Scratch::new();
    let servers = [Server::on(&scratch, &[]), Server::on(&scratch, &[])];
    for round in 0..50 {
        servers[0].connect().ask(&format!("set r{round} 0 0 1\r\nx\r\nmd r{round} I\r\n"));
        let wins: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let server = &servers[i % 2];
                    scope.spawn(move || server.connect().ask(&format!("mg r{round} v\r\n")).matches(" W").count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(wins, 1, "round {round}");
    }
}
