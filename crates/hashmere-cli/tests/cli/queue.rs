//! queue: list, stat, drain, recover, drop.

use crate::support::Scratch;
use hashmere::Options;
use hashmere_queue::{Kind, Pool, PoolOptions, QueueOptions};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A store in the scratch folder, as the library opens it; the command calls it `./q.mere`.
fn pool(s: &Scratch) -> Pool {
    let store = Options::new().open(s.path().join("q.mere")).unwrap();
    let pool = PoolOptions::new(10, 24).max_queues(4).max_endpoints(3).open(&store, "jobs").unwrap();
    pool.queue_with("todo", QueueOptions::new().bound(6)).unwrap();
    pool.queue_with("done", QueueOptions::new().kind(Kind::Mpsc)).unwrap();
    pool
}

#[test]
fn a_look_at_pools_and_queues() {
    let s = Scratch::new();
    s.sh("set ./q.mere key value").text();
    assert_eq!(s.sh("queue list ./q.mere").text(), "");
    s.sh("queue stats ./q.mere jobs").fails(3, "E60");
    s.run(["queue", "stats", "./q.mere", &"x".repeat(129)]).fails(3, "E62");
    let pool = pool(&s);
    let mut endpoint = pool.endpoint().unwrap();
    endpoint.pop_many(pool.free(), 5).unwrap();
    endpoint.push_many(&pool.queue("todo").unwrap(), 3).unwrap();
    assert_eq!(s.sh("queue list ./q.mere").text(), "jobs\n");
    let text = s.sh("queue stats ./q.mere jobs").text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("10 elements of 24 bytes"), "{text}");
    assert!(lines[1].starts_with("1 of 3 endpoints hold 2 elements; 0 were returned"), "{text}");
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[3].contains("todo") && lines[3].contains("3 of 6"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&s.sh("queue stats --json ./q.mere jobs").text()).unwrap();
    assert_eq!((&json["held"], &json["endpoints"], &json["elements"]), (&2.into(), &1.into(), &10.into()));
    assert_eq!((&json["queues"][0]["name"], &json["queues"][0]["len"]), (&"free".into(), &5.into()));
    assert_eq!((&json["queues"][2]["name"], &json["queues"][2]["kind"]), (&"done".into(), &"mpsc".into()));
    assert_eq!(s.sh("get ./q.mere key").text(), "value");
}

#[test]
fn drain_and_remove() {
    let s = Scratch::new();
    let pool = pool(&s);
    let mut endpoint = pool.endpoint().unwrap();
    endpoint.pop_many(pool.free(), 8).unwrap();
    endpoint.push_many(&pool.queue("todo").unwrap(), 6).unwrap();
    drop(endpoint);
    s.sh("queue drain ./q.mere jobs nothing").fails(3, "E60");
    // Two were in the endpoint; `done` has no bound and takes all.
    assert_eq!(s.sh("queue drain ./q.mere jobs todo done").text(), "6\n");
    assert_eq!(s.sh("queue drain ./q.mere jobs free todo").text(), "4\n");
    assert_eq!(s.sh("queue drain ./q.mere jobs todo").text(), "4\n");
    assert_eq!(s.sh("queue drain ./q.mere jobs done").text(), "6\n");
    assert_eq!((pool.free().len(), pool.stats().held), (10, 0));
    s.sh("queue remove ./q.mere jobs").text();
    assert!(pool.is_removed());
    assert_eq!(s.sh("queue list ./q.mere").text(), "");
    s.sh("queue remove ./q.mere jobs").fails(1, "jobs");
    assert!(s.sh("check ./q.mere").text().contains('0'));
    s.sh("queue").fails(2, "Usage");
    assert!(s.sh("queue recover --help").text().contains("crashed"));
}

/// Not a test: the process that dies in the next one.
#[test]
#[ignore = "started by another test"]
fn holds_three_elements() {
    let Some(path) = std::env::var_os("HASHMERE_TEST_POOL") else { return };
    let store = Options::new().open(&path).unwrap();
    let pool = Pool::open(&store, "jobs").unwrap();
    let mut endpoint = pool.endpoint().unwrap();
    assert_eq!(endpoint.pop_many(pool.free(), 3).unwrap(), 3);
    println!("\nholding");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn what_a_dead_process_held_is_given_back() {
    let s = Scratch::new();
    let pool = pool(&s);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "queue::holds_three_elements", "--ignored", "--nocapture"])
        .env("HASHMERE_TEST_POOL", s.path().join("q.mere"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "holding"), "it ended before it held anything");
    assert_eq!(s.sh("queue recover ./q.mere jobs").text(), "0\n");
    assert_eq!(pool.free().len(), 7);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(s.sh("queue recover ./q.mere jobs").text(), "3\n");
    assert_eq!(pool.free().len(), 10);
    assert_eq!(s.sh("queue recover ./q.mere jobs").text(), "0\n");
    assert!(s.sh("queue stats ./q.mere jobs").text().contains("3 were returned"));
    let endpoint = pool.endpoint().unwrap();
    assert!(endpoint.pop_wait(&pool.queue("todo").unwrap(), Duration::from_millis(1)).unwrap().is_none());
}
