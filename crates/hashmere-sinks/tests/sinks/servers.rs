//! The servers: each on a port of this machine that is its own, also while it is not there, with its data in a folder
//! of the test; gone when it is dropped.

use hashmere_testkit::memcached::{Port, PATIENCE};
use hashmere_testkit::scratch::Scratch;
use serde_json::{json, Value as Json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    child: Child,
    pub port: u16,
    /// Where it speaks TLS, if it does: NATS on the same port as without.
    pub tls_port: Option<u16>,
    program: &'static str,
    scratch: Scratch,
    _reserved: Vec<Port>,
}

impl Server {
    pub fn nats() -> Server {
        Server::start("nats-server")
    }

    pub fn redis() -> Server {
        Server::start("redis-server")
    }

    /// One that wants certificates of its clients; also without TLS, for what the tests ask themselves. Certificates
    /// and keys are in its folder. `None`, with a message: it or the openssl command cannot do that.
    pub fn with_tls(program: &'static str) -> Option<Server> {
        let mut server = match program {
            "redis-server" => Server::redis(),
            _ => Server::nats(),
        };
        server.kill();
        for name in ["server", "client", "other"] {
            if !certificate(server.scratch.path(), name) {
                eprintln!("skipped: the openssl command is not installed (scripts/setup packages openssl)");
                return None;
            }
        }
        server.tls_port = Some(server.port);
        if program == "redis-server" {
            let port = Port::reserve();
            server.tls_port = Some(port.number());
            server._reserved.push(port);
        }
        server.start_again();
        Some(server)
    }

    /// The path of a file of its folder.
    pub fn file(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    fn start(program: &'static str) -> Server {
        let (scratch, reserved) = (Scratch::new("sinks"), Port::reserve());
        let port = reserved.number();
        let child = spawn(program, &scratch, port, None);
        let mut server = Server { child, port, tls_port: None, program, scratch, _reserved: vec![reserved] };
        assert!(server.is_up(), "{program} does not start: {}", server.said());
        server
    }

    /// What it wrote.
    fn said(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("output")).unwrap_or_default()
    }

    fn is_up(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && self.child.try_wait().unwrap().is_none() {
            let answers = match self.program {
                "redis-server" => ask_redis(self.port, b"*1\r\n$4\r\nPING\r\n").is_some_and(|line| line == "+PONG"),
                _ => ask_nats(self.port, "$JS.API.INFO", &Json::Null).is_some(),
            };
            if answers {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Kills it; nothing answers until [`start_again`](Self::start_again).
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn start_again(&mut self) {
        self.child = spawn(self.program, &self.scratch, self.port, self.tls_port);
        assert!(self.is_up(), "{} does not start again: {}", self.program, self.said());
    }

    /// Entries of a stream of Redis: keys and values.
    pub fn redis_entries(&self, stream: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap());
        let command = format!("*4\r\n$6\r\nXRANGE\r\n${}\r\n{stream}\r\n$1\r\n-\r\n$1\r\n+\r\n", stream.len());
        connection.get_mut().write_all(command.as_bytes()).unwrap();
        let mut bulks = Vec::new();
        let len = number(&mut connection, b'*');
        for _ in 0..len {
            assert_eq!(number(&mut connection, b'*'), 2);
            bulk(&mut connection);
            assert_eq!(number(&mut connection, b'*'), 4);
            let fields: Vec<_> = (0..4).map(|_| bulk(&mut connection)).collect();
            assert_eq!((fields[0].as_slice(), fields[2].as_slice()), (&b"key"[..], &b"value"[..]));
            bulks.push((fields[1].clone(), fields[3].clone()));
        }
        bulks
    }

    pub fn redis_command(&self, words: &[&str]) -> String {
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command += &format!("${}\r\n{word}\r\n", word.len()));
        ask_redis(self.port, command.as_bytes()).unwrap()
    }

    pub fn nats_ask(&self, subject: &str, question: &Json) -> Json {
        ask_nats(self.port, subject, question).unwrap()
    }

    /// Messages of a stream: subjects, headers and payloads.
    pub fn nats_messages(&self, stream: &str) -> Vec<(String, String, Vec<u8>)> {
        use base64::engine::general_purpose::STANDARD as BASE64;
        use base64::Engine;
        let state = self.nats_ask(&format!("$JS.API.STREAM.INFO.{stream}"), &Json::Null);
        let (first, last) =
            (state["state"]["first_seq"].as_u64().unwrap(), state["state"]["last_seq"].as_u64().unwrap());
        let mut connection = nats(self.port).unwrap();
        let mut messages = Vec::new();
        for seq in first..=last {
            let got =
                nats_request(&mut connection, &format!("$JS.API.STREAM.MSG.GET.{stream}"), &json!({ "seq": seq }));
            let got = got.unwrap();
            let message = &got["message"];
            if message.is_null() {
                continue;
            }
            let decoded = |name: &str| BASE64.decode(message[name].as_str().unwrap_or_default()).unwrap();
            let subject = message["subject"].as_str().unwrap().to_owned();
            messages.push((subject, String::from_utf8(decoded("hdrs")).unwrap(), decoded("data")));
        }
        messages
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate for localhost that has signed itself, and its key.
fn certificate(folder: &std::path::Path, name: &str) -> bool {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(folder.join(format!("{name}.key")));
    command.arg("-out").arg(folder.join(format!("{name}.pem"))).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn spawn(program: &str, scratch: &Scratch, port: u16, tls_port: Option<u16>) -> Child {
    let (folder, port) = (scratch.path().to_str().unwrap(), port.to_string());
    let mut command = Command::new(program);
    match program {
        "redis-server" => command.args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--dir",
            folder,
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "no",
        ]),
        _ => command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd", folder]),
    };
    if let Some(tls_port) = tls_port {
        match program {
            "redis-server" => {
                command.args(["--tls-port", &tls_port.to_string(), "--tls-auth-clients", "yes"]);
                for (option, file) in [("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "client.pem")] {
                    command.arg(format!("--tls-{option}-file")).arg(scratch.path().join(file));
                }
            }
            _ => {
                let file = |name: &str| scratch.path().join(name).display().to_string();
                let text = format!(
                    "allow_non_tls: true\ntls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}\n",
                    file("server.pem"),
                    file("server.key"),
                    file("client.pem")
                );
                let config = scratch.path().join("nats.conf");
                std::fs::write(&config, text).unwrap();
                command.arg("-c").arg(config);
            }
        }
    }
    let output = std::fs::File::options().create(true).append(true).open(scratch.path().join("output")).unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    command.spawn().unwrap_or_else(|error| panic!("{program}: {error}; `scripts/setup feed` installs it"))
}

fn number(connection: &mut impl BufRead, letter: u8) -> usize {
    let mut line = String::new();
    connection.read_line(&mut line).unwrap();
    assert_eq!(line.as_bytes()[0], letter, "{line}");
    line[1..].trim_end().parse().unwrap()
}

fn bulk(connection: &mut impl BufRead) -> Vec<u8> {
    let len = number(connection, b'$');
    let mut bytes = vec![0; len + 2];
    connection.read_exact(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

fn ask_redis(port: u16, command: &[u8]) -> Option<String> {
    let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?);
    connection.get_mut().write_all(command).ok()?;
    let mut line = String::new();
    connection.read_line(&mut line).ok()?;
    if line.starts_with('$') && !line.starts_with("$-") {
        line.clear();
        connection.read_line(&mut line).ok()?;
    }
    Some(line.trim_end().to_owned())
}

fn nats(port: u16) -> Option<BufReader<TcpStream>> {
    let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?);
    connection.get_mut().set_read_timeout(Some(PATIENCE)).ok()?;
    let mut line = String::new();
    connection.read_line(&mut line).ok()?;
    let connect = b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB _INBOX.test 1\r\n";
    connection.get_mut().write_all(connect).ok()?;
    Some(connection)
}

fn nats_request(connection: &mut BufReader<TcpStream>, subject: &str, question: &Json) -> Option<Json> {
    let question = if question.is_null() { String::new() } else { question.to_string() };
    let line = format!("PUB {subject} _INBOX.test {}\r\n{question}\r\n", question.len());
    connection.get_mut().write_all(line.as_bytes()).ok()?;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).ok()?;
        if line.starts_with("HMSG") {
            return None;
        }
        if line.starts_with("MSG") {
            let len: usize = line.trim_end().rsplit(' ').next()?.parse().ok()?;
            let mut bytes = vec![0; len + 2];
            connection.read_exact(&mut bytes).ok()?;
            return serde_json::from_slice(&bytes[..len]).ok();
        }
        if line.is_empty() {
            return None;
        }
    }
}

fn ask_nats(port: u16, subject: &str, question: &Json) -> Option<Json> {
    nats_request(&mut nats(port)?, subject, question)
}
