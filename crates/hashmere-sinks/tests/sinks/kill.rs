//! A process that moves events is killed at random moments, many times; then the sink has everything.

use crate::script::{all, is_repetition, Script};
use crate::servers::Server;
use hashmere_feed::Event;
use hashmere_sinks::{pump, read_dir, PumpOptions, Target};
use hashmere_testkit::limits::times;
use hashmere_testkit::procs::die_with_parent;
use hashmere_testkit::rng::Rng;
use hashmere_testkit::scratch::Scratch;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const TARGET: &str = "HASHMERE_TEST_SINK";
/// The entry at which it waits to be killed. Without it, it ends behind the last one.
const HALT: &str = "HASHMERE_TEST_SINK_HALT";
/// Kills at full length, and entries for each: with fewer kills fewer are moved.
const KILLS: u64 = 25;
const EACH: u64 = 800;
/// The longest that one works before it is killed.
const LONGEST: Duration = Duration::from_millis(45);

/// How many entries are moved in all.
pub fn entries() -> u64 {
    times(KILLS) * EACH
}

#[test]
#[ignore = "no test: the other tests start it as the process that they kill"]
fn feeder() {
    die_with_parent();
    let target: Target = std::env::var(TARGET).expect("it is started by `kill_often`").parse().unwrap();
    let halt: Option<u64> = std::env::var(HALT).ok().map(|text| text.parse().unwrap());
    let options = PumpOptions { once: true, ..PumpOptions::default() };
    let open = |from: Option<&_>| {
        let mut script = Script::open(halt.unwrap_or_else(entries), from);
        script.slow = Some((Duration::from_millis(2), 50));
        script.not_before = halt.map(|_| Arc::default());
        Ok(Box::new(script) as Box<dyn hashmere_sinks::Source>)
    };
    let mut sink = target.sink();
    pump(sink.as_mut(), open, &options, &|| false, &mut |error| eprintln!("feeder: {error}")).unwrap();
}

fn command(target: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::feeder", "--include-ignored", "--nocapture", "--test-threads=1", "--quiet"]);
    command.env(TARGET, target).stdout(Stdio::null());
    command
}

/// Starts and kills; only the last one comes to the end. Each of the others halts somewhere behind the one before, so
/// that there is work for all of them however long they live.
pub fn kill_often(target: &str, name: &str, longest: Duration) {
    let mut rng = Rng::for_test(name);
    let kills = times(KILLS);
    for kill in 1..=kills {
        let mut child = command(target).env(HALT, (entries() * kill / (kills + 1)).to_string()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(8_000 + rng.below(longest.as_micros() as u64)));
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended by itself: {ended:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(command(target).status().unwrap().success());
}

/// What is left of the first copies that were killed before they had a position is in front.
pub fn behind_last_reset(events: Vec<Event>) -> Vec<Event> {
    let at = events.iter().rposition(|event| matches!(event, Event::Reset { .. })).unwrap();
    events[at..].to_vec()
}

#[track_caller]
pub fn demand_equal(found: &[Event], expected: &[Event]) {
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    let at = differs.unwrap_or(found.len().min(expected.len()));
    assert!(
        found.len() == expected.len() && differs.is_none(),
        "{} and {} events; at {at} {:?}, expected {:?}",
        found.len(),
        expected.len(),
        found.get(at),
        expected.get(at)
    );
}

#[test]
fn redis_has_everything_once() {
    let server = Server::redis();
    let target = format!("redis://127.0.0.1:{}/feed", server.port);
    kill_often(&target, "kill-redis", LONGEST);
    let stored = server.redis_entries("feed");
    let found = stored.iter().map(|(_, value)| Event::from_json(value).unwrap()).collect();
    demand_equal(&behind_last_reset(found), &all(entries()));
}

#[test]
fn nats_has_everything_once_and_drops_repetitions() {
    let server = Server::nats();
    let target = format!("nats://127.0.0.1:{}/FEED", server.port);
    kill_often(&target, "kill-nats", LONGEST);
    let messages = server.nats_messages("FEED");
    let found = messages.iter().map(|(_, _, payload)| Event::from_json(payload).unwrap()).collect();
    let expected: Vec<_> = all(entries()).into_iter().filter(|event| !is_repetition(event)).collect();
    demand_equal(&behind_last_reset(found), &expected);
}

#[test]
fn a_folder_has_everything_once() {
    let scratch = Scratch::new("sinks");
    let folder = scratch.path().join("feed");
    kill_often(&format!("dir:{}", folder.display()), "kill-dir", LONGEST);
    let mut found = Vec::new();
    let events = read_dir(&folder, |event, _| {
        found.push(event);
        Ok(())
    });
    assert_eq!(events.unwrap().events, found.len() as u64);
    demand_equal(&behind_last_reset(found), &all(entries()));
}
