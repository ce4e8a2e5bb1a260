//! Promise: a replica on another machine comes to be equal again however the network between them failed: frames that
//! vanish for a moment, or for longer than either side waits, while the source is written to and its server is killed.
//! So do two sites that are both written to during it, with clocks that are hours apart.
//! Catches: a link that is dead and not noticed, a place that a lost stream left wrong, a clock that decides whether
//! two sites become equal.
//!
//! The machines are network namespaces with a pair of virtual Ethernet devices between them. Where those are not
//! permitted, the test says so and is skipped.

use crate::site::{all, assert_equal, Process, Site};
use crate::two_way::become_equal;
use hashmere_replica::status;
use hashmere_testkit::procs::LIMIT;
use hashmere_testkit::rng::Rng;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two machines and a cable. They go when it is dropped.
struct Machines(String);

fn ip(arguments: &[&str]) -> bool {
    let status = Command::new("ip").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Machines {
    /// `None`, with a message: namespaces are not permitted here.
    fn new(name: &str) -> Option<Machines> {
        let machines = Machines(format!("hm{name}{}", std::process::id()));
        let [a, b] = machines.names();
        let made = ip(&["netns", "add", &a])
            && ip(&["netns", "add", &b])
            && ip(&["link", "add", "hm0", "netns", &a, "type", "veth", "peer", "name", "hm0", "netns", &b])
            && ip(&["-n", &a, "addr", "add", "10.77.0.1/24", "dev", "hm0"])
            && ip(&["-n", &b, "addr", "add", "10.77.0.2/24", "dev", "hm0"])
            && ip(&["-n", &a, "link", "set", "hm0", "up"])
            && ip(&["-n", &b, "link", "set", "hm0", "up"])
            && ip(&["netns", "exec", &a, "true"]);
        if !made {
            println!("skipped: `ip netns` with `veth` devices is not permitted here");
        }
        made.then_some(machines)
    }

    fn names(&self) -> [String; 2] {
        ["a", "b"].map(|side| format!("{}{side}", self.0))
    }

    /// This command on one of them.
    fn on(&self, machine: usize, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.names()[machine]]).arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        inside
    }

    /// Pulls the cable out of the second machine, or puts it in.
    fn connect(&self, is_connected: bool) {
        let state = if is_connected { "up" } else { "down" };
        assert!(ip(&["-n", &self.names()[1], "link", "set", "hm0", state]));
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in self.names() {
            ip(&["netns", "del", &name]);
        }
    }
}

#[test]
fn equal_after_partitions() {
    let Some(machines) = Machines::new("one") else { return };
    let site = Site::new(8 << 20);
    let serve = || {
        let command =
            site.command(&["serve", "from", "-p", "11211", "-l", "10.77.0.1", "-t", "2", "--feed", "1m", "-q"]);
        Process(machines.on(0, &command).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut server = serve();
    let follow = site.follow(&["tcp://10.77.0.1", "to", "-q"]);
    let mut follower = machines.on(1, &follow);
    let mut follower = Process(follower.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(follower.0.stderr.take().unwrap()));
    let mut n = 0u64;
    let mut write = |count: u64| {
        for _ in 0..count {
            site.from.set(&format!("k{}", n % 300), &n.to_le_bytes()).unwrap();
            if n.is_multiple_of(7) {
                site.from.delete(&format!("k{}", n % 50)).unwrap();
            }
            n += 1;
        }
    };
    let arrives = |what: &str| {
        let deadline = Instant::now() + LIMIT;
        while all(&site.from) != all(&site.to) {
            assert!(Instant::now() < deadline, "{what}: {:?}", status(&site.to));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_equal(&site.from, &site.to, what);
    };
    write(500);
    arrives("before any partition");
    for round in 0..3 {
        machines.connect(false);
        write(200);
        std::thread::sleep(Duration::from_millis(50 * (1 + round)));
        machines.connect(true);
        write(200);
        arrives("after a short one");
    }
    // Long enough for the replicator to give the link up; the server is another one afterwards.
    machines.connect(false);
    write(300);
    let silent = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("silent")));
    assert!(silent.is_some(), "the link was not given up");
    let lag = status(&site.to).unwrap().unwrap().lag_ms;
    assert!(lag >= 9000, "the lag is {lag} ms");
    server.kill();
    write(300);
    server = serve();
    machines.connect(true);
    arrives("after a long one");
    drop((follower, server));
}

/// A library that makes the wall clock of a process wrong by `HASHMERE_TEST_CLOCK` seconds, if a C compiler is here.
fn wrong_clock(site: &Site) -> Option<PathBuf> {
    let (source, library) = (site.path("clock.c"), site.path("clock.so"));
    let text = r#"
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = syscall(SYS_clock_gettime, clock, time);
            if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
                const char *wrong = getenv("HASHMERE_TEST_CLOCK");
                time->tv_sec += wrong ? atol(wrong) : 0;
            }
            return result;
        }
    "#;
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new(std::env::var("CC").unwrap_or("cc".into()));
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    let is_made = compiler.status().is_ok_and(|status| status.success());
    if !is_made {
        println!("skipped: there is no C compiler for a clock that is wrong");
    }
    is_made.then_some(library)
}

#[test]
fn two_sites_are_equal_after_partitions_with_clocks_hours_apart() {
    let Some(machines) = Machines::new("two") else { return };
    let mut rng = Rng::for_test("two-sites-partitions");
    let site = Site::new(8 << 20);
    let Some(clock) = wrong_clock(&site) else { return };
    hashmere_feed::enable(&site.to, 8 << 20, true).unwrap();
    let stores = [&site.from, &site.to];
    let (names, addresses) = (["from", "to"], ["10.77.0.1", "10.77.0.2"]);
    // The second machine is five hours ahead.
    let on = |n: usize, command: &mut Command| {
        command.env("LD_PRELOAD", &clock).env("HASHMERE_TEST_CLOCK", ["0", "18000"][n]);
        machines.on(n, command)
    };
    let serve = |n: usize| {
        let mut command =
            site.command(&["serve", names[n], "-p", "11211", "-l", addresses[n], "-t", "1", "--feed", "1m", "-q"]);
        Process(on(n, &mut command).spawn().unwrap())
    };
    let follower = |n: usize| {
        let peer = format!("tcp://{}", addresses[1 - n]);
        Process(on(n, &mut site.follow(&[&peer, names[n], "--two-way", "-q"])).spawn().unwrap())
    };
    let (mut servers, mut followers) = ([0, 1].map(serve), [0, 1].map(follower));
    for round in 0..4 {
        machines.connect(round == 0);
        let mut writers = [0, 1].map(|n| {
            let mut command = on(n, &mut site.writer_command(stores[n], &mut rng));
            Process(command.stdin(Stdio::piped()).spawn().unwrap())
        });
        let before = stores.map(|store| hashmere_feed::info(store).unwrap().position);
        let deadline = Instant::now() + LIMIT;
        while (0..2).any(|n| hashmere_feed::info(stores[n]).unwrap().position < before[n] + 1000) {
            assert!(Instant::now() < deadline, "the writers do not write");
            std::thread::sleep(Duration::from_millis(5));
        }
        if round > 1 {
            let n = rng.index(2);
            servers[n].kill();
            followers[1 - n].kill();
            (servers[n], followers[1 - n]) = (serve(n), follower(1 - n));
        }
        for writer in &mut writers {
            drop(writer.0.stdin.take());
            assert!(writer.ended().success(), "the writer failed");
        }
        machines.connect(true);
        become_equal(stores, &format!("after partition {round}"));
    }
    let newest = |n: usize| stores[n].iter().map(|pair| pair.unwrap().metadata.version.0).max().unwrap();
    println!("newest versions: {} and {}", newest(0), newest(1));
    drop((servers, followers));
}
