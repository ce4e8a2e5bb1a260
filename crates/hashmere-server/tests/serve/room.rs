//! Promise: a store that has no room refuses in memcached's words, at whatever limit: of the store, or of the addresses
//! of the process. What was stored before stays. Catches: a limit that one protocol reports as an internal error and
//! another as a want of memory.

use crate::binary::Packet;
use crate::child;
use crate::support::{start, Scratch, Server};
use std::process::{Command, Stdio};

#[test]
fn every_limit_is_refused_in_the_same_words() {
    let scratch = Scratch::new("serve-room");
    // As many KiB of addresses; far below what `-m` allows.
    let limited = "ulimit -v 150000; exec \"$0\" \"$@\"";
    let server = child::command(&scratch, &["-p", "0", "-M", "-m", "1024"]);
    let mut command = Command::new("sh");
    command.args(["-c", limited]).arg(server.get_program()).args(server.get_args()).stdout(Stdio::null());
    command.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let value = "v".repeat(500_000);
    for (limit, server) in [("the store", start(&["-M", "-m", "16"])), ("the process", Server::spawn(&mut command))] {
        let mut client = server.connect();
        let set = |n: u32| format!("set k{n} 0 0 500000\r\n{value}\r\n");
        let mut stored = 0;
        let refusal = loop {
            match client.ask(&set(stored)) {
                answer if answer == "STORED\r\n" => stored += 1,
                answer => break answer,
            }
            assert!(stored < 1000, "{limit} has no limit");
        };
        assert_eq!(refusal, "SERVER_ERROR out of memory storing object\r\n", "{limit}");
        assert!(stored > 10, "{limit}: {stored}");
        let mut binary = server.connect();
        // A thread that ends, or a buffer that goes, may give the process room for another one.
        let status = (0..100).map(|n| {
            let (extras, key) = (vec![0; 8], format!("b{n}"));
            let packet = Packet { opcode: 0x01, extras, key, value: value.clone().into(), cas: 0 };
            binary.send(&packet.bytes(1));
            let answer = binary.exactly(24);
            let length = u32::from_be_bytes(answer[8..12].try_into().unwrap());
            binary.exactly(length as usize);
            [answer[6], answer[7]]
        });
        assert_eq!(status.into_iter().find(|status| *status != [0, 0]), Some([0, 0x82]), "{limit}");
        let stats = client.ask("stats\r\n");
        assert!(stats.contains("STAT store_no_memory 2\r\n"), "{limit}: {stats}");
        for n in 0..stored {
            let expected = format!("VALUE k{n} 0 500000\r\n{value}\r\nEND\r\n");
            client.send(format!("get k{n}\r\n").as_bytes());
            assert!(client.exactly(expected.len()) == expected.as_bytes(), "{limit}: k{n} is not as it was stored");
        }
    }
}
