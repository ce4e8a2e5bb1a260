//! What other tests rest on: a reserved port has one server only.

use crate::support::{start_at, Port, Scratch};
use std::net::TcpStream;

#[test]
fn a_reserved_port_is_its_servers_alone() {
    let (scratch, port) = (Scratch::new("serve"), Port::reserve());
    let listens = || TcpStream::connect(("127.0.0.1", port.number())).is_ok();
    assert!(!listens());
    for _ in 0..3 {
        let server = start_at(&scratch, &port, &[]);
        assert_eq!(server.port, port.number());
        let stats = server.connect().ask("stats\r\n");
        assert!(stats.contains(&format!("STAT pid {}\r\n", server.child.id())), "{stats}");
        drop(server);
        assert!(!listens());
    }
    assert!((0..5000).all(|_| Port::reserve().number() != port.number()), "the kernel gave it away");
}
