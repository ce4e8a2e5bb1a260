//! add, replace, cas; counters; expiry; UIDs.

use crate::support::Scratch;
use std::time::Duration;

#[test]
fn add_and_replace() {
    let s = Scratch::new();
    s.sh("add a k 1").text();
    s.sh("add a k 2").fails(1, "key `k` is there already");
    assert_eq!(s.sh("get a k").text(), "1");
    s.sh("replace a k 3 --flags 4").text();
    assert!(s.sh("get a k -j").text().contains("\"value\":\"3\",\"flags\":4"));
    s.sh("replace a nothing 3").fails(1, "no key `nothing`");
    s.sh("replace nostore k 3").fails(3, "E1");
}

#[test]
fn cas() {
    let s = Scratch::new();
    let version = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap()["version"].to_string();
    s.sh("cas new k 1 --version 5").fails(3, "E1");
    let first = version(s.sh("cas a k 1 --absent --json").text());
    s.sh("cas a k 1 --absent").fails(1, &format!("its version is {first}"));
    s.run(["cas", "a", "k", "2", "--value", "no"]).fails(1, "not as expected");
    let second = version(s.sh("cas a k 2 --value 1 -j --flags 5").text());
    assert!(s.sh("get a k -j").text().contains("\"flags\":5"));
    s.run(["cas", "a", "k", "3", "--version", &first]).fails(1, "not as expected");
    s.run(["cas", "a", "k", "3", "--version", &second]).text();
    s.run_with(["cas", "a", "k", "--value", "3"], b"from stdin").text();
    s.run(["cas", "a", "k", "--value", "3", "--remove"]).fails(1, "not as expected");
    s.run(["cas", "a", "k", "--value", "from stdin", "--remove"]).text();
    s.run(["cas", "a", "k", "--value", "x", "--remove"]).fails(1, "no key `k`");
    s.sh("cas a k 0 --version 0").text();
    s.sh("cas a k 1 --version 0").fails(1, "its version is");
    s.sh("cas a k x --value y --remove").fails(2, "cannot be used with");
}

#[test]
fn counters() {
    let s = Scratch::new();
    assert_eq!(s.sh("incr a n").text(), "1\n");
    assert_eq!(s.sh("incr a n 41").text(), "42\n");
    assert_eq!(s.sh("get a n").text(), "42");
    assert_eq!(s.sh("decr a n 2").text(), "40\n");
    assert_eq!(s.sh("incr a n -30").text(), "10\n");
    assert_eq!(s.sh("decr a n 11").text(), "0\n");
    assert_eq!(s.sh("decr a n2 11").text(), "0\n");
    assert_eq!(s.sh("incr a n3 5 --initial 100").text(), "100\n");
    assert_eq!(s.sh("incr a n3 5 --initial 100").text(), "105\n");
    assert_eq!(s.sh("incr a n3 18446744073709551615").text(), "104\n", "wraps at 2^64");
    s.sh("incr a n4 --no-create").fails(1, "no key `n4`");
    s.sh("incr nostore n4 --no-create").fails(3, "E1");
    s.sh("set a text abc").text();
    s.sh("incr a text").fails(3, "E35");
    assert_eq!(s.sh("get a text").text(), "abc");
    assert_eq!(s.sh("incr a s -3 --signed").text(), "-3\n", "as if it had been 0");
    assert_eq!(s.sh("incr a s 5 --signed").text(), "2\n");
    assert_eq!(s.sh("decr a s 9 --signed").text(), "-7\n");
    assert_eq!(s.sh("get a s").text(), "-7");
    s.sh("incr a s").fails(3, "E35");
    s.sh("incr a s -9223372036854775808 --signed").fails(3, "E42");
    assert_eq!(s.sh("incr a s2 --signed --initial -9223372036854775808").text(), "-9223372036854775808\n");
    s.sh("incr a s 9223372036854775808 --signed").fails(2, "BY must be from -2^63 to 2^63 - 1");
    s.sh("incr a n --initial -1").fails(2, "--initial must be from 0 to 2^64 - 1");
    assert_eq!(s.sh("incr a f 0.1 --float").text(), "0.1\n");
    assert_eq!(s.sh("incr a f 0.2 --float").text(), "0.3\n");
    assert_eq!(s.sh("decr a f 1e3 --float").text(), "-999.7\n");
    assert_eq!(s.sh("get a f").text(), "-999.7");
    s.sh("incr a n 0.5").fails(2, "BY is 0.5, which takes --float");
    s.sh("incr a n --signed --float").fails(2, "cannot be used with");
    s.sh("incr a n nan --float").fails(2, "it is no number");
    assert_eq!(s.sh("ref inc a r3 --by 3").text(), "3\n");
    assert_eq!(s.sh("ref dec a r3 --by 2").text(), "1\n");
    assert_eq!(s.sh("ref dec a r3 --by 2").text(), "0\n");
    assert_eq!(s.sh("ref inc a r").text(), "1\n");
    assert_eq!(s.sh("ref inc a r").text(), "2\n");
    assert_eq!(s.sh("ref dec a r").text(), "1\n");
    assert_eq!(s.sh("ref dec a r").text(), "0\n");
    s.sh("ref dec a r").fails(1, "no key `r`");
}

#[test]
fn expiry() {
    let s = Scratch::new();
    s.sh("set a k v").text();
    assert_eq!(s.sh("ttl a k").text(), "forever\n");
    assert_eq!(s.sh("ttl a k --ms").text(), "-1\n");
    s.sh("touch a k --ttl 1h").text();
    let ms: u64 = s.sh("ttl a k --ms").text().trim().parse().unwrap();
    assert!(ms > 3_500_000 && ms <= 3_600_000);
    let text = s.sh("ttl a k").text();
    assert!(text.starts_with("59m") && text.ends_with("s\n"), "{text}");
    s.sh("touch a k --never").text();
    assert_eq!(s.sh("ttl a k").text(), "forever\n");
    assert_eq!(s.sh("get a k --touch 30m").text(), "v");
    assert!(s.sh("ttl a k").text().starts_with("29m"));
    s.sh("touch a k --expires-at 4000000000000").text();
    assert!(s.sh("get a k -j").text().contains("\"expires_at_ms\":4000000000000"));
    s.sh("touch a nothing --never").fails(1, "no key");
    s.sh("ttl a nothing").fails(1, "no key");
    s.sh("get a nothing --touch 5s").fails(1, "no key");
    s.sh("set a brief v --ttl 50ms").text();
    std::thread::sleep(Duration::from_millis(60));
    s.sh("get a brief").fails(1, "no key");
    s.sh("exists a brief").fails(1, "");
}

#[test]
fn uids() {
    let s = Scratch::new();
    s.sh("set a k v").text();
    let uid = s.sh("uid a k").text();
    let handle = s.sh("uid a k --entry-id").text();
    s.sh("set a k other").text();
    assert_eq!(s.sh("uid a k").text(), uid);
    assert_eq!(s.run(["uid", "a", "--at", uid.trim()]).text(), "k\tother\n");
    assert_eq!(s.run(["uid", "a", "--entry-id", "--at", handle.trim()]).text(), "k\tother\n");
    assert!(s.run(["uid", "a", "--json", "--at", uid.trim()]).text().contains("\"key\":\"k\""));
    s.sh("uid a nothing").fails(1, "no key");
    s.sh("del a k").text();
    s.run(["uid", "a", "--entry-id", "--at", handle.trim()]).fails(3, "E21");
}

#[test]
fn wait_prints_the_version_of_a_change() {
    let s = Scratch::new();
    s.sh("set a key one").text();
    let version = |key: &str| {
        let json = s.run(["get", "a", key, "--json"]).text();
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["version"].as_u64().unwrap()
    };
    let first = version("key");
    let waiting = |arguments: &[&str]| {
        let mut command = s.command(["wait", "a"].iter().chain(arguments));
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    // With the version that was seen it does not matter which process is first.
    let waits = waiting(&["key", "--version", &first.to_string(), "--timeout", "100s"]);
    s.sh("set a key two").text();
    let printed = waits.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), format!("{}\n", version("key")));
    assert_eq!(s.run(["wait", "a", "key", "--version", &first.to_string(), "--value"]).text(), "two");
    let waits = waiting(&["new", "--version", "0"]);
    s.sh("set a new 1").text();
    assert!(waits.wait_with_output().unwrap().status.success());
    let second = version("key").to_string();
    s.sh("delete a key").text();
    assert_eq!(s.run(["wait", "a", "key", "--version", &second]).text(), "removed\n");
    s.sh("wait a key --timeout 1ms").fails(1, "key `key` has not changed");
    s.sh("wait nostore key").fails(3, "E1");
}
