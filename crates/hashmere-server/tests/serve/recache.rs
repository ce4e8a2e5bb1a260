//! Promise: of many clients that meet a missing or stale value one wins the right to compute it, also when they use
//! different servers of one store. Catches: two winners, a winner that is never chosen, stale values lost.

use crate::support::{start_on, Scratch};

#[test]
fn one_winner_among_two_servers() {
    let scratch = Scratch::new("serve");
    let (a, b) = (start_on(&scratch, &[]), start_on(&scratch, &[]));
    let (mut a, mut b) = (a.connect(), b.connect());
    let answer = a.ask("mg k N600 v t\r\n");
    assert!((480..=600).any(|left| answer == format!("VA 0 t{left} W\r\n\r\n")), "{answer:?}");
    assert_eq!(b.ask("mg k N600 v\r\n"), "VA 0 Z\r\n\r\n");
    assert_eq!(b.ask("ms k 3 T600\r\nabc\r\n"), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3\r\nabc\r\n");
    // Invalidated: readers get the old value, one of them wins the right to store the next.
    assert_eq!(a.ask("md k I T300\r\n"), "HD\r\n");
    let answer = b.ask("mg k v t\r\n");
    assert!((180..=300).any(|left| answer == format!("VA 3 t{left} X W\r\nabc\r\n")), "{answer:?}");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3 Z X\r\nabc\r\n");
    // A value that was computed from the version before the invalidation is kept as stale.
    let version = a.ask("mg k c\r\n").split_whitespace().nth(1).unwrap()[1..].parse::<u64>().unwrap();
    assert_eq!(b.ask(&format!("ms k 3 C{} I\r\nold\r\n", version - 1)), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3 Z X\r\nold\r\n");
    assert_eq!(b.ask(&format!("ms k 3 C{}\r\nnew\r\n", version + 1)), "HD\r\n");
    assert_eq!(a.ask("mg k v\r\n"), "VA 3\r\nnew\r\n");
    // Soon to expire: one wins.
    assert_eq!(a.ask("mg k T200\r\n"), "HD\r\n");
    for mark in ["W", "Z"] {
        let answer = a.ask("mg k R300 t\r\n");
        assert!((80..=200).any(|left| answer == format!("HD t{left} {mark}\r\n")), "{answer:?}");
    }
}

/// The CAS id of `k`.
fn cas(client: &mut crate::support::Client) -> u64 {
    let reply = client.ask("mg k c\r\n");
    reply.split_whitespace().find_map(|word| word.strip_prefix('c')).unwrap().parse().unwrap()
}

/// Versions of the client's choice (`E`), with every command that changes an item.
#[test]
fn versions_of_the_clients_choice() {
    let scratch = Scratch::new("serve");
    let server = start_on(&scratch, &[]);
    let mut client = server.connect();
    client.ask("ms k 1\r\n5\r\n");
    let mut next = cas(&mut client) + 1_000_000;
    let step = 1_000_000;
    for request in [
        "ms k 1 E{} c\r\n5\r\n",
        "ms k 1 MR E{} c\r\n5\r\n",
        "ms k 1 MA E{} c\r\n5\r\n",
        "ms k 1 MP E{} c\r\n5\r\n",
        "ma k E{} c\r\n",
        "ma k MD T100 E{} c\r\n",
        "delete gone noreply\r\nma gone N0 E{} c\r\n",
        "delete gone noreply\r\nms gone 1 ME E{} c\r\nx\r\n",
        "delete gone noreply\r\nmg gone N0 E{} c\r\n",
    ] {
        let reply = client.ask(&request.replace("{}", &next.to_string()));
        assert!(reply.starts_with(&format!("HD c{next}")), "{request:?}: {reply:?}");
        next += step;
    }
    // What comes next is above it, and what is past is not given again.
    client.ask(&format!("ms k 1 E{next}\r\n5\r\n"));
    assert_eq!(client.ask(&format!("ms k 1 E{next} c\r\n5\r\n")), format!("HD c{}\r\n", next + 1));
    assert_eq!(client.ask("ms k 1 E7 c\r\n5\r\n"), format!("HD c{}\r\n", next + 2));
    assert_eq!(
        client.ask(&format!("ms k 1 C{} E{} c\r\n6\r\n", next + 2, next + step)),
        format!("HD c{}\r\n", next + step)
    );
    // Invalidated at a version; a value from before it is kept as stale, at another.
    next += 2 * step;
    assert_eq!(client.ask(&format!("md k I E{next}\r\n")), "HD\r\n");
    assert_eq!(client.ask("mg k c v\r\n"), format!("VA 1 c{next} X W\r\n6\r\n"));
    let (older, raised) = (next - 5, next + step);
    assert_eq!(client.ask(&format!("ms k 3 C{older} I E{raised} c\r\nold\r\n")), format!("HD c{raised}\r\n"));
    assert_eq!(client.ask("mg k c v\r\n"), format!("VA 3 c{raised} Z X\r\nold\r\n"));
    // A token that is not older stores nothing.
    assert_eq!(client.ask(&format!("ms k 3 C{} I\r\nnew\r\n", raised + 1)), "EX\r\n");
    assert_eq!(client.ask(&format!("md k C{} E{}\r\n", raised - 1, raised + step)), "EX\r\n");
    assert_eq!(cas(&mut client), raised);
}

#[test]
fn a_version_that_leaves_too_few_is_refused() {
    let scratch = Scratch::new("serve");
    let server = start_on(&scratch, &[]);
    let mut client = server.connect();
    client.ask("set k 0 0 1\r\n5\r\n");
    let before = cas(&mut client);
    let refused = "CLIENT_ERROR the version in E may be at most 2199023255552 (2^41)\r\n";
    for request in ["ms k 1 E2199023255553\r\n6\r\n", "ma k E2199023255553\r\n", "md k I E18446744073709551615\r\n"] {
        assert_eq!(client.ask(request), refused, "{request:?}");
    }
    assert_eq!((client.ask("mg k v\r\n"), cas(&mut client)), ("VA 1\r\n5\r\n".to_string(), before));
    assert_eq!(client.ask("md k E2199023255552 I\r\n"), "HD\r\n");
    assert_eq!(cas(&mut client), 1 << 41);
    assert_eq!(client.ask("md k\r\nset k 0 0 1\r\n7\r\n"), "HD\r\nSTORED\r\n");
    assert!(cas(&mut client) > 1 << 41);
}

#[test]
fn one_winner_in_a_race() {
    let scratch = Scratch::new("serve");
    let servers = [start_on(&scratch, &[]), start_on(&scratch, &[])];
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
