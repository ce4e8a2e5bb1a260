//! Promise: a proxy in front of several servers, with the sample configuration, finds one that was killed warm again.
//! `scripts/cluster` does it under load, with real clients.

use crate::support::{start_at, Client, Port, Scratch, Server, PATIENCE};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Proxy(Child, #[expect(dead_code, reason = "kept for it")] Port);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A proxy on `port` in front of servers on `ports`, as the sample configuration says.
fn proxy(folder: &Scratch, port: &Port, ports: &[Port; 3]) -> Option<Proxy> {
    let stats = Port::reserve();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/cluster/twemproxy.yml");
    let mut text = std::fs::read_to_string(sample).unwrap();
    for (written, port) in [":11210", ":11311", ":11312", ":11313"].into_iter().zip(std::iter::once(port).chain(ports))
    {
        assert_eq!(text.matches(written).count(), 1, "{written}");
        text = text.replace(written, &format!(":{port}"));
    }
    let file = folder.path().join("proxy.yml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("nutcracker");
    command.arg("-c").arg(&file).args(["-s", &stats.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some(Proxy(child, stats)),
        Err(_) => {
            eprintln!("skipped: nutcracker is not installed (scripts/setup packages nutcracker)");
            None
        }
    }
}

#[test]
fn three_servers_behind_twemproxy_one_of_them_killed_and_warm_again() {
    let folders = [Scratch::new("serve"), Scratch::new("serve"), Scratch::new("serve")];
    let (port, ports) = (Port::reserve(), [(); 3].map(|()| Port::reserve()));
    let mut servers: Vec<Server> =
        folders.iter().zip(&ports).map(|(folder, port)| start_at(folder, port, &[])).collect();
    let Some(_proxy) = proxy(&folders[0], &port, &ports) else { return };
    let deadline = Instant::now() + PATIENCE;
    let connect = || loop {
        assert!(Instant::now() < deadline, "the proxy does not listen");
        match TcpStream::connect(("127.0.0.1", port.number())) {
            Ok(stream) => return Client::new(stream),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut client = connect();
    // The reply to a request that begins so; the proxy answers with errors while it has no connection to a server, or
    // while that does not answer as soon as the configuration says.
    let mut ask = |request: &str, begin: &str, end: &str| loop {
        assert!(Instant::now() < deadline, "no answer to {request:?}");
        client.send(request.as_bytes());
        let (answer, open) = client.until(b"\r\n");
        if !open {
            client = connect();
        } else if answer.starts_with(begin.as_bytes()) {
            let rest = if answer.ends_with(end.as_bytes()) { Vec::new() } else { client.until(end.as_bytes()).0 };
            return String::from_utf8([answer, rest].concat()).unwrap();
        } else {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    for i in 0..300 {
        ask(&format!("set key{i} 0 0 3\r\n{i:03}\r\n"), "STORED", "\r\n");
    }
    for server in &servers {
        let listed = server.connect().ask("hashmere keys key\r\n").matches("KEY ").count();
        assert!((50..200).contains(&listed), "{listed} of 300 keys");
    }
    servers[1].signal("KILL");
    servers[1].child.wait().unwrap();
    servers[1] = start_at(&folders[1], &ports[1], &[]);
    for i in 0..300 {
        let expected = format!("VALUE key{i} 0 3\r\n{i:03}\r\nEND\r\n");
        assert_eq!(ask(&format!("get key{i}\r\n"), "VALUE", "END\r\n"), expected);
    }
}
