//! Promise: by `io_uring` and by epoll the server is the same, and it takes epoll where `io_uring` cannot be used.
//! Catches: replies that go to the connection which has the descriptor next, input out of order or lost between
//! buffers, backlogs without bounds, tests that were never run by the other way.

use crate::child::{self, EVENT_LOOP};
use crate::support::{start, Client, Scratch, Server, PATIENCE};
use hashmere_testkit::limits::whole;
use hashmere_testkit::rng::{run_seed, Rng};
use std::io::Write;
use std::net::Shutdown;
use std::process::{Command, Stdio};

/// What runs by the other way, too: everything that depends on how bytes come and go.
const IMPORTANT: &[&str] = &["exact::", "tls::", "resp_pubsub::", "http::streams::", "killed::", "all_protocols::"];
/// Those that take longest run so with `HASHMERE_WHOLE` only.
const LONG: &[&str] = &["hostile::", "feed::"];

fn event_loop(server: &Server) -> String {
    let stats = server.connect().ask("stats settings\r\n");
    let line = stats.lines().find_map(|line| line.strip_prefix("STAT event_loop ")).unwrap();
    let other = server.connect().ask("stats hashmere\r\n");
    assert!(other.contains(&format!("STAT event_loop {line}\r\n")), "{other}");
    line.into()
}

/// Both, as far as they are there.
fn both() -> Vec<Server> {
    let ring = Some(start(&[])).filter(|server| event_loop(server) == "io_uring");
    if ring.is_none() && std::env::var_os(EVENT_LOOP).is_none() {
        eprintln!("skipped: no io_uring here");
    }
    let poll = start(&["-o", "event_loop=epoll"]);
    assert_eq!(event_loop(&poll), "epoll");
    ring.into_iter().chain([poll]).collect()
}

#[test]
fn the_important_tests_by_the_other_way() {
    let now = event_loop(&start(&[]));
    let other = if now == "epoll" { "auto" } else { "epoll" };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(IMPORTANT).args(["--test-threads", "4"]).env(EVENT_LOOP, other).stdin(Stdio::null());
    if whole() {
        command.args(LONG);
    }
    let done = command.output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "by {other}:\n{output}\n{errors}");
    assert!(!output.contains(" 0 passed"), "{output}");
}

/// As a container's filter does it: the call is not permitted.
const WITHOUT_IO_URING: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
IO_URING_SETUP = 425
code = b''.join(struct.pack('HBBI', *line) for line in [
    (0x20, 0, 0, 0),                    # the number of the call
    (0x15, 0, 1, IO_URING_SETUP),       # is it that one?
    (0x06, 0, 0, 0x00050000 | 1),       # EPERM
    (0x06, 0, 0, 0x7fff0000),           # allowed
])
kept = ctypes.create_string_buffer(code, len(code))
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(code) // 8, ctypes.cast(kept, ctypes.c_void_p))
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn epoll_where_io_uring_is_not_allowed() {
    let filtered = |options: &[&str]| {
        let scratch = Scratch::new("serve");
        let server = child::command(&scratch, &[&["-p", "0"], options].concat());
        let mut command = Command::new("python3");
        command.args(["-c", WITHOUT_IO_URING]).arg(server.get_program()).args(server.get_args()).stdout(Stdio::null());
        command.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove(EVENT_LOOP);
        (scratch, command)
    };
    let (_scratch, mut forced) = filtered(&["-o", "event_loop=io_uring"]);
    let Ok(ended) = forced.stdin(Stdio::null()).output() else {
        eprintln!("skipped: no python3");
        return;
    };
    if ended.status.code() == Some(77) {
        eprintln!("skipped: filters of system calls are not allowed here");
        return;
    }
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{errors}");
    assert!(errors.contains("io_uring cannot be used here: io_uring_setup: Operation not permitted"), "{errors}");
    assert!(errors.contains("-o event_loop=epoll"), "{errors}");
    let (_scratch, mut chosen) = filtered(&[]);
    let server = Server::spawn(&mut chosen);
    assert_eq!(event_loop(&server), "epoll");
    assert_eq!(server.connect().ask("set k 0 0 1\r\nx\r\nget k\r\n"), "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
}

/// Connections come and go, half of them without waiting for what they asked for, so that descriptors and places have
/// new owners all the time: each gets its own replies, whole.
#[test]
fn no_reply_goes_to_another_connection() {
    for server in both() {
        let loops = event_loop(&server);
        let value = |key: u64, len: u64| format!("{key:08}").repeat(1 + len as usize / 8);
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let connect = {
                    let port = server.port;
                    move || Client::new(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap())
                };
                let loops = loops.clone();
                std::thread::spawn(move || {
                    let mut rng = Rng::from_seed(run_seed() ^ thread);
                    for round in 0..150u64 {
                        let key = thread * 1000 + round;
                        let text = value(key, *rng.pick(&[8, 100, 5000, 20_000, 70_000]));
                        let mut client = connect();
                        assert_eq!(client.ask(&format!("set k{key} 0 0 {}\r\n{text}\r\n", text.len())), "STORED\r\n");
                        let request = format!("get k{key}\r\n");
                        if rng.below(2) == 0 {
                            // Gone with replies on their way.
                            client.send(request.repeat(3).as_bytes());
                            continue;
                        }
                        let expected = format!("VALUE k{key} 0 {}\r\n{text}\r\nEND\r\n", text.len()).repeat(2);
                        // In pieces, some of which end within a request.
                        for piece in request.repeat(2).as_bytes().chunks(1 + rng.below(30) as usize) {
                            client.send(piece);
                        }
                        let got = client.exactly(expected.len());
                        assert!(got == expected.as_bytes(), "{loops}: key {key} got another's reply");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// A client sends a long value and many requests behind it while it takes nothing; then all is there, in order.
#[test]
fn what_was_sent_ahead_is_performed_in_order() {
    const REQUESTS: usize = 20_000;
    for server in both() {
        let loops = event_loop(&server);
        let mut client = server.connect();
        let mut writer = client.stream.try_clone().unwrap();
        let long = "l".repeat(900_000);
        let sending = std::thread::spawn(move || {
            writer.write_all(b"set n 0 0 1\r\n0\r\n").unwrap();
            writer.write_all(format!("set long 0 0 {}\r\n{long}\r\n", long.len()).as_bytes()).unwrap();
            for _ in 0..REQUESTS / 100 {
                writer.write_all(&b"incr n 1\r\n".repeat(99)).unwrap();
                writer.write_all(b"get long\r\n").unwrap();
            }
            // The end of input is behind all of it.
            writer.shutdown(Shutdown::Write).unwrap();
        });
        assert_eq!(client.until(b"STORED\r\nSTORED\r\n").0, b"STORED\r\nSTORED\r\n", "{loops}");
        for number in 1..=REQUESTS / 100 * 99 {
            let (line, open) = client.until(b"\r\n");
            assert!(open && line == format!("{number}\r\n").as_bytes(), "{loops}: {number}");
            if number % 99 == 0 {
                let (head, _) = client.until(b"\r\n");
                assert_eq!(String::from_utf8_lossy(&head), "VALUE long 0 900000\r\n", "{loops}");
                assert!(client.exactly(900_000).iter().all(|byte| *byte == b'l'), "{loops}");
                assert_eq!(client.exactly(7), b"\r\nEND\r\n", "{loops}");
            }
        }
        sending.join().unwrap();
        // Everything was answered before the connection ends.
        assert!(client.try_exactly(1).is_none(), "{loops}");
    }
}

/// Clients that flood and take nothing, more of them than there are buffers, do not keep others from being served.
#[test]
fn floods_leave_buffers_for_others() {
    for server in both() {
        let loops = event_loop(&server);
        let mut other = server.connect();
        assert_eq!(other.ask(&format!("set v 0 0 4000\r\n{}\r\n", "v".repeat(4000))), "STORED\r\n");
        let request = b"get v\r\n".repeat(50_000);
        let floods: Vec<Client> = (0..300)
            .map(|_| {
                let mut client = server.connect();
                client.stream.set_nonblocking(true).unwrap();
                client.send(&request);
                client
            })
            .collect();
        for round in 0..200 {
            assert_eq!(other.ask(&format!("set k 0 0 3\r\n{round:03}\r\n")), "STORED\r\n", "{loops}");
        }
        // One of them changes its mind and takes all that it has asked for: nothing of it was lost.
        let mut one = floods.into_iter().next().unwrap();
        one.stream.set_nonblocking(false).unwrap();
        one.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reply = format!("VALUE v 0 4000\r\n{}\r\nEND\r\n", "v".repeat(4000));
        for _ in 0..2000 {
            assert!(one.exactly(reply.len()) == reply.as_bytes(), "{loops}");
        }
    }
}
