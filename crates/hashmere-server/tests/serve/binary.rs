//! The binary protocol: the same packets to this server and to memcached (Debian's, and 1.6.45), the same answers,
//! versions aside.

use crate::support::{start, Client, Server};
use hashmere_testkit::rng::Rng;

pub struct Packet {
    pub opcode: u8,
    pub extras: Vec<u8>,
    pub key: String,
    pub value: Vec<u8>,
    pub cas: u64,
}

impl Packet {
    pub fn bytes(&self, opaque: u32) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut bytes = vec![0x80, self.opcode];
        bytes.extend((self.key.len() as u16).to_be_bytes());
        bytes.extend([self.extras.len() as u8, 0, 0, 0]);
        bytes.extend((body as u32).to_be_bytes());
        bytes.extend(opaque.to_be_bytes());
        bytes.extend(self.cas.to_be_bytes());
        bytes.extend(&self.extras);
        bytes.extend(self.key.bytes());
        bytes.extend(&self.value);
        bytes
    }
}

fn random(rng: &mut Rng) -> Packet {
    let opcode = *rng.pick(&[
        0x00, 0x01, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x09, 0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13,
        0x14, 0x15, 0x16, 0x19, 0x1a, 0x1c, 0x1d, 0x1e, 0x23, 0x24, 0x70,
    ]);
    let key = if opcode == 0x0a || opcode == 0x70 { String::new() } else { format!("k{}", rng.below(6)) };
    let exptime = *rng.pick(&[0u32, 0, 1000, 2_000_000_000]);
    let mut value = Vec::new();
    let extras = match opcode {
        0x01..=0x03 | 0x11..=0x13 => {
            value = match rng.below(3) {
                0 => rng.below(1000).to_string().into_bytes(),
                1 => vec![b'x'; rng.below(2000) as usize],
                _ => b"value".to_vec(),
            };
            [(rng.below(5) as u32).to_be_bytes(), exptime.to_be_bytes()].concat()
        }
        0x0e | 0x0f | 0x19 | 0x1a => {
            value = b"more".to_vec();
            Vec::new()
        }
        0x05 | 0x06 | 0x15 | 0x16 => {
            let exptime = *rng.pick(&[0u32, 1000, u32::MAX]);
            [&rng.below(9).to_be_bytes()[..], &rng.below(50).to_be_bytes(), &exptime.to_be_bytes()].concat()
        }
        0x1c | 0x1d | 0x1e | 0x23 | 0x24 => exptime.to_be_bytes().to_vec(),
        _ => Vec::new(),
    };
    // A version that no key has.
    let cas = if rng.below(8) == 0 { 0x7777_7777 } else { 0 };
    Packet { opcode, extras, key, value, cas }
}

/// The answers to a packet: everything before the answer to the no-op that is sent behind it. Versions become 1 or 0.
fn answers(client: &mut Client, packet: &Packet, number: u32) -> Vec<String> {
    client.send(&packet.bytes(number));
    client.send(&Packet { opcode: 0x0a, extras: vec![], key: String::new(), value: vec![], cas: 0 }.bytes(u32::MAX));
    let mut answers = Vec::new();
    loop {
        let head = client.exactly(24);
        let body = client.exactly(u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize);
        if head[12..16] == [0xff; 4] {
            return answers;
        }
        let versioned = head[16..24].iter().any(|byte| *byte != 0);
        answers.push(format!("{:02x?} versioned {versioned} {:?}", &head[..16], String::from_utf8_lossy(&body)));
    }
}

#[test]
fn the_same_answers_as_memcached() {
    const QUIET: &[&str] = &["-o", "no_lru_maintainer,no_lru_crawler"];
    for theirs in [Server::memcached(QUIET), Server::memcached_today(QUIET)].into_iter().flatten() {
        compare(&theirs);
    }
}

fn compare(theirs: &Server) {
    let ours = start(&[]);
    let (mut a, mut b) = (theirs.connect(), ours.connect());
    let mut rng = Rng::for_test("binary");
    let mut different = Vec::new();
    for number in 0..5000 {
        let packet = random(&mut rng);
        let (x, y) = (answers(&mut a, &packet, number), answers(&mut b, &packet, number));
        if x != y {
            different.push(format!("{number}: {:02x?}\n  memcached {x:?}\n  hashmere  {y:?}", packet.bytes(number)));
        }
    }
    let count = different.len();
    different.truncate(20);
    assert!(count == 0, "{count} answers differ\n{}", different.join("\n"));
}

#[test]
fn values_longer_than_a_pipe_and_packets_that_lie() {
    let server = start(&["-I", "2m"]);
    let mut client = server.connect();
    let value = vec![b'v'; 1_500_000];
    let set = Packet { opcode: 0x01, extras: vec![0; 8], key: "k".into(), value: value.clone(), cas: 0 };
    client.send(&set.bytes(1));
    assert_eq!(client.exactly(24)[7], 0);
    client.send(&Packet { opcode: 0x0c, extras: vec![], key: "k".into(), value: vec![], cas: 0 }.bytes(2));
    let answer = client.exactly(24 + 4 + 1 + value.len());
    assert!(answer[29..] == value[..]);
    // Too large: refused, and the stream goes on behind the value.
    let set = Packet { value: vec![b'v'; 3_000_000], ..set };
    client.send(&set.bytes(3));
    assert_eq!(client.exactly(24 + 10)[7], 3);
    // The key is said to be longer than the body.
    let mut lie = Packet { opcode: 0x00, extras: vec![], key: "k".into(), value: vec![], cas: 0 }.bytes(4);
    lie[3] = 200;
    client.send(&lie);
    assert!(!client.until(b"never").1);
}
