//! batch.

use crate::support::{Ran, Scratch};
use serde_json::Value;

fn batch(s: &Scratch, arguments: &str, input: &str) -> Ran {
    s.run_with("batch".split(' ').chain(arguments.split_whitespace()), input.as_bytes())
}

#[test]
fn operations() {
    let s = Scratch::new();
    let all = "set a 1 --flags 3   # flags\n\n# a comment\nincr a 4\nincr new 7\ndecr new 2\nincr no 5 --no-create\n\
               set 'two words' \"x y\"\nappend 'two words' !\nprepend 'two words' -5\nget 'two words'\nget no\ndelete no\n\
               incr made --initial 100\ntouch made --ttl 1h\ndel a\n";
    assert_eq!(batch(&s, "a", all).text(), "a\t5\nnew\t7\nnew\t5\ntwo words\t-5x y!\nmade\t100\n");
    s.sh("exists a a").fails(1, "");
    assert_eq!(s.run(["get", "a", "two words"]).text(), "-5x y!");
    assert!(s.sh("ttl a made").text().starts_with("59m"));
    // From a file, with escapes, as JSON.
    std::fs::write(
        s.path().join("ops"),
        b"set 'k\\x00\\n' 'v\\xff'\nget 'k\\x00\\n'\ntouch x\nget x\nset 'b' 2\nincr b\n",
    )
    .unwrap();
    let line = batch(&s, "a ops --escape --json", "").text();
    let json: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["succeeded"], true);
    let results = json["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|result| result["operation"].as_str().unwrap()).collect();
    assert_eq!(names, ["set", "get", "touch", "get", "set", "incr"]);
    assert_eq!((&results[0]["key"], &results[0]["created"]), (&Value::from("k\0\n"), &Value::from(true)));
    assert_eq!((&results[1]["present"], &results[1]["value_base64"]), (&Value::from(true), &Value::from("dv8=")));
    assert_eq!((&results[2]["present"], &results[3]["present"]), (&Value::from(false), &Value::from(false)));
    assert_eq!((&results[5]["key"], &results[5]["number"]), (&Value::from("b"), &Value::from(3)));
    assert_eq!(batch(&s, "a -", "").text(), "");
    assert_eq!(batch(&s, "a --json", "").text(), "{\"succeeded\":true,\"results\":[]}\n");
    batch(&s, "nostore --no-create", "get a").fails(3, "E1");
}

#[test]
fn every_kind_of_counter() {
    let s = Scratch::new();
    let all = "incr s -2 --signed\ndecr s 5 --signed\nincr --signed no --no-create\nincr f 1 --float --initial 0.1\n\
               incr f 0.2 --float\ndecr f 1 --float\n";
    assert_eq!(batch(&s, "a", all).text(), "s\t-2\ns\t-7\nf\t0.1\nf\t0.3\nf\t-0.7\n");
    let json: Value =
        serde_json::from_str(&batch(&s, "a --json", "incr s --signed\nincr f 2.5 --float\n").text()).unwrap();
    assert_eq!((&json["results"][0]["number"], &json["results"][1]["number"]), (&Value::from(-6), &Value::from(1.8)));
    batch(&s, "a", "set b 1\nincr s -9223372036854775808 --signed").fails(3, "E42");
    batch(&s, "a", "incr s 0.5 --signed").fails(3, "BY is 0.5, which takes --float");
    batch(&s, "a", "incr s 9223372036854775808 --signed").fails(3, "BY must be from -2^63 to 2^63 - 1");
    batch(&s, "a", "incr n 9223372036854775808").fails(3, "in a batch BY must be from -2^63 to 2^63 - 1");
    batch(&s, "a", "incr s --signed --float").fails(3, "cannot be used with");
    s.sh("exists a b").fails(1, "");
}

#[test]
fn conditions() {
    let s = Scratch::new();
    s.sh("set a leader me").text();
    let json: Value = serde_json::from_str(&s.sh("get a leader --json").text()).unwrap();
    let take = format!(
        "if present leader\nif value leader me\nif version leader {}\nif absent other\nif version other 0\n\
         set leader you\nelse\nget leader\n",
        json["version"]
    );
    assert_eq!(batch(&s, "a", &take).text(), "");
    let again = batch(&s, "a", &take);
    assert_eq!((again.code(), again.0.stdout.as_slice()), (1, b"leader\tyou\n".as_slice()));
    assert!(again.err().contains("the conditions do not hold"));
    let again = batch(&s, "a --json -q", &take);
    let json: Value = serde_json::from_slice(&again.0.stdout).unwrap();
    assert_eq!((again.code(), &json["succeeded"], again.err()), (1, &Value::from(false), String::new()));
    // Without `else` nothing is done.
    batch(&s, "a", "if absent leader\nset leader none").fails(1, "do not hold");
    assert_eq!(s.sh("get a leader").text(), "you");
}

#[test]
fn what_is_malformed_is_named() {
    let s = Scratch::new();
    for (input, with) in [
        ("set a 1\nsett b 2", "standard input, line 2: unrecognized subcommand 'sett'"),
        ("set a", "line 1: the following required arguments were not provided: <VALUE>"),
        ("set a 1 2", "line 1: unexpected argument '2' found"),
        ("incr a x", "line 1: invalid value 'x' for '[BY]'"),
        ("set a 1 --ttl 5", "line 1: invalid value '5' for '--ttl"),
        ("\n\nset 'a 1", "line 3: a quotation mark"),
        ("set a 1\nif absent a", "line 2: an `if` behind an operation"),
        ("else", "line 1: an `else` without"),
        ("if absent a\nelse\nelse", "line 3: a second `else`"),
        ("if", "line 1"),
    ] {
        batch(&s, "a", input).fails(3, "E91");
        batch(&s, "a", input).fails(3, with);
        batch(&s, "a", input).fails(3, "nothing was done");
    }
    batch(&s, "a --escape", "set 'a\\q' 1").fails(3, "line 1: in a word: unknown escape");
    batch(&s, "a nofile", "").fails(3, "cannot read nofile");
    // None of them has made the store.
    s.sh("info a").fails(3, "E1");
    batch(&s, "a", "set text x").text();
    batch(&s, "a", "set b 1\nincr text").fails(3, "E35");
    s.sh("exists a b").fails(1, "");
    let many: String = (0..1025).map(|i| format!("set key{i} x\n")).collect();
    batch(&s, "a", &many).fails(3, "E41");
    assert_eq!(s.sh("len a").text(), "1\n");
}
