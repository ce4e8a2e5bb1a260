//! Topics of Kafka, with a real broker: `make feed-kafka`, which fetches it.

use crate::kill::{behind_last_reset, demand_equal, entries, kill_often};
use crate::redis::{move_all, once};
use crate::script::{all, Script};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use hashmere_feed::Event;
use hashmere_sinks::{pump, Position, SinkError, Target};
use hashmere_testkit::scratch::Scratch;
use std::cell::Cell;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker on a free port, with its data in a folder of the test, gone when it is dropped.
struct Kafka {
    child: Child,
    port: u16,
    scratch: Scratch,
}

/// The folder with the broker's jars.
fn jars() -> PathBuf {
    std::env::var_os("HASHMERE_KAFKA").expect("HASHMERE_KAFKA is the folder of Kafka's jars: make feed-kafka").into()
}

fn java(arguments: &[&str]) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]).arg(jars().join("*"));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn free_ports() -> [u16; 2] {
    let bound = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    bound.map(|listener| listener.local_addr().unwrap().port())
}

impl Kafka {
    fn start() -> Kafka {
        let scratch = Scratch::new("kafka");
        let [port, controller] = free_ports();
        let properties = scratch.path().join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
             log.dirs={}\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
             transaction.state.log.num.partitions=1\nauto.create.topics.enable=false\n",
            scratch.path().join("data").display()
        );
        std::fs::write(&properties, text).unwrap();
        let properties = properties.to_str().unwrap();
        let format = ["kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", properties];
        assert!(java(&format).stdout(Stdio::null()).status().unwrap().success(), "the data folder cannot be made");
        let child = Kafka::spawn(properties);
        let mut kafka = Kafka { child, port, scratch };
        kafka.await_up();
        kafka
    }

    fn spawn(properties: &str) -> Child {
        java(&["kafka.Kafka", properties]).stdout(Stdio::null()).spawn().unwrap()
    }

    fn await_up(&mut self) {
        let end = Instant::now() + Duration::from_secs(180);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end && self.child.try_wait().unwrap().is_none(), "Kafka does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = Kafka::spawn(self.scratch.path().join("server.properties").to_str().unwrap());
        self.await_up();
    }

    fn target(&self, rest: &str) -> String {
        format!("kafka://127.0.0.1:{}/{rest}", self.port)
    }

    /// Partition, key and event of each record that is committed.
    fn records(&self, topic: &str) -> Vec<(i32, Option<Vec<u8>>, Event)> {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sinks/Consume.java");
        let output = java(&[program, &self.port.to_string(), topic]).output().unwrap();
        assert!(output.status.success(), "the consumer failed");
        let text = String::from_utf8(output.stdout).unwrap();
        let record = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let key = (words[1] != "-").then(|| BASE64.decode(words[1]).unwrap());
            (words[0].parse().unwrap(), key, Event::from_json(&BASE64.decode(words[2]).unwrap()).unwrap())
        };
        text.lines().map(record).collect()
    }

    fn events(&self, topic: &str) -> Vec<Event> {
        self.records(topic).into_iter().map(|(_, _, event)| event).collect()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All of it with one broker: it takes half a minute to start on a busy machine.
#[test]
#[ignore = "starts a broker of Kafka: make feed-kafka"]
fn a_topic_has_everything_once() {
    let mut kafka = Kafka::start();
    // Records have key and envelope, and a second run goes on.
    assert_eq!(move_all(&kafka.target("plain"), 300, &once()).unwrap(), all(300).len() as u64);
    demand_equal(&kafka.events("plain"), &all(300));
    move_all(&kafka.target("plain"), 500, &once()).unwrap();
    demand_equal(&kafka.events("plain"), &all(500));
    for (_, key, event) in kafka.records("plain") {
        assert_eq!(key, event.change().map(|change| change.key.clone()));
    }
    assert_eq!(move_all(&kafka.target("plain"), 500, &once()).unwrap(), 0, "it began again");

    // Three partitions: each has the changes of its keys in order, and what concerns every key.
    move_all(&kafka.target("parts?partitions=3"), 500, &once()).unwrap();
    let records = kafka.records("parts");
    let mut keys = std::collections::BTreeMap::new();
    for partition in 0..3 {
        let found: Vec<_> =
            records.iter().filter(|(at, ..)| *at == partition).map(|(.., event)| event.clone()).collect();
        for event in found.iter().filter_map(Event::change) {
            keys.insert(event.key.clone(), partition);
        }
        let of = |event: &&Event| match event.change() {
            Some(change) => keys.get(&change.key) == Some(&partition),
            None => true,
        };
        let expected: Vec<_> = all(500).iter().filter(of).cloned().collect();
        assert!(found.len() > 50, "partition {partition} has {} records", found.len());
        demand_equal(&found, &expected);
    }

    // A second feeder takes over, and the first one learns of it.
    let [mut a, mut b] = [(); 2].map(|()| kafka.target("two").parse::<Target>().unwrap().sink());
    let events = all(30);
    assert_eq!(a.position().unwrap(), None);
    a.send(&events[..10]).unwrap();
    assert_eq!(b.position().unwrap(), Position::behind(&events[9]));
    let error = a.send(&events[10..]).unwrap_err();
    assert!(error.is_temporary(), "{error}");
    b.send(&events[10..]).unwrap();
    assert_eq!(a.position().unwrap(), events.last().and_then(Position::behind));
    demand_equal(&kafka.events("two"), &events);

    // What it does not take.
    let mut long = all(30)[25].change().unwrap().clone();
    long.value = hashmere_feed::Value::Bytes(vec![b'x'; 2 << 20]);
    let refused = a.send(&[Event::Change(long)]).unwrap_err();
    assert!(matches!(&refused, SinkError::Refused(text) if text.contains("max.message.bytes")), "{refused}");

    // Feeders are killed at work.
    kill_often(&kafka.target("killed"), "kill-kafka", Duration::from_millis(400));
    demand_equal(&behind_last_reset(kafka.events("killed")), &all(entries()));

    // The broker is killed, and waited for.
    let target = kafka.target("broker");
    let failures = Cell::new(0);
    let mut sink = target.parse::<Target>().unwrap().sink();
    let open = |from: Option<&_>| {
        let mut script = Script::open(3000, from);
        script.slow = Some((Duration::from_millis(20), 50));
        Ok(Box::new(script) as Box<dyn hashmere_sinks::Source>)
    };
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            kafka.kill();
            kafka.start_again();
        });
        pump(sink.as_mut(), open, &once(), &|| false, &mut |_| failures.set(failures.get() + 1)).unwrap();
        killer.join().unwrap();
    });
    assert!(failures.get() > 0);
    demand_equal(&kafka.events("broker"), &all(3000));
}
