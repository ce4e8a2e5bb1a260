#![no_main]

//! What the servers of sinks may say: any bytes end in a position or an error, soon, without memory for what was only
//! announced. The first byte chooses the server. Kafka is left out: its answers name servers to connect to.

use hashmere::Version;
use hashmere_feed::{Change, Event, Operation, Value};
use hashmere_sinks::{Sink, Target};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::OnceLock;
use std::time::Duration;

/// What the next connection gets.
struct Script {
    is_nats: bool,
    replies: Vec<u8>,
}

/// A server that says what it is given, once for each connection.
struct Peer {
    port: u16,
    scripts: SyncSender<Script>,
}

fn peer() -> &'static Peer {
    static PEER: OnceLock<Peer> = OnceLock::new();
    PEER.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind to loopback");
        let port = listener.local_addr().expect("an address").port();
        let (scripts, receiver) = sync_channel(1);
        std::thread::spawn(move || serve(&listener, &receiver));
        Peer { port, scripts }
    })
}

fn serve(listener: &TcpListener, scripts: &Receiver<Script>) {
    for script in scripts {
        let Ok((stream, _)) = listener.accept() else { return };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(5)));
        // Its client may be gone already.
        let _ = if script.is_nats { nats(&stream, &script.replies) } else { (&stream).write_all(&script.replies) };
        let _ = stream.shutdown(Shutdown::Write);
        let _ = (&stream).read_to_end(&mut Vec::new());
    }
}

/// Greets, and answers each request with the next piece, which ends with a zero: as a message to the inbox that the
/// request names; a piece that begins with 0xff as it is.
fn nats(mut stream: &TcpStream, replies: &[u8]) -> std::io::Result<()> {
    let mut pieces = replies.split(|byte| *byte == 0);
    let greeting = pieces.next().unwrap_or_default();
    if greeting.is_empty() {
        stream.write_all(b"INFO {\"headers\":true}\r\nPONG\r\n")?;
    } else {
        stream.write_all(greeting)?;
    }
    let mut lines = BufReader::new(stream).lines();
    for piece in pieces {
        let inbox = loop {
            // Or the client waits for something else: then that is all.
            let Some(Ok(line)) = lines.next() else { return Ok(()) };
            if let ["PUB" | "HPUB", _, inbox, ..] = line.split(' ').collect::<Vec<_>>()[..] {
                break inbox.to_owned();
            }
        };
        if let Some(raw) = piece.strip_prefix(b"\xff") {
            stream.write_all(raw)?;
        } else {
            stream.write_all(format!("MSG {inbox} 1 {}\r\n", piece.len()).as_bytes())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        }
    }
    Ok(())
}

/// A change as a source has it.
fn event() -> Event {
    let token = "hm1-0001020304050607ffffffffffffffff-1795000000000-3-7".parse().expect("a token");
    let mut change = Change::new(Operation::Set, b"key".to_vec(), Version(9), token);
    (change.value, change.value_len) = (Value::Bytes(b"value".to_vec()), 5);
    Event::Change(change)
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, replies)) = input.split_first() else { return };
    let Peer { port, scripts } = peer();
    let address = match kind % 3 {
        0 => format!("redis://127.0.0.1:{port}/stream?max_len=9"),
        1 => format!("nats://127.0.0.1:{port}/STREAM"),
        _ => format!("nats-kv://127.0.0.1:{port}/BUCKET"),
    };
    let mut sink: Box<dyn Sink> = address.parse::<Target>().expect("an address").sink();
    scripts.send(Script { is_nats: kind % 3 != 0, replies: replies.to_vec() }).expect("a server");
    if sink.position().is_ok() && sink.send(&[event(), event()]).is_ok() {
        let _ = sink.flush();
    }
});
