//! Promise: the examples of `docs/guide/http.md` do what the page says.

use super::Http;
use std::process::Command;

/// Behind the output of each command.
const END: &str = "\u{1}end\u{1}";
/// Without its progress meter, which it shows where the output is no terminal. A stream ends when it has come to what
/// is there now and not after some seconds, in which a busy machine may not have come so far.
const CURL: &str = r#"
curl() {
    case " $* " in
        *" --max-time "*) sed '/"synced"/q' < <(exec curl -s --no-buffer "${@/#2/600}" 2>/dev/null) ;;
        *) command curl -s "$@" ;;
    esac
}
"#;

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed (scripts/setup http)");
    }
    found
}

#[test]
fn examples_of_the_guide() {
    if !has("curl") || !has("jq") {
        return;
    }
    let http = Http::start(&["--http-write", "--feed", "1m"]);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/http.md")).unwrap();
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut examples: Vec<(&str, String)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => examples.push((command, String::new())),
            None => examples.last_mut().unwrap().1.push_str(&format!("{line}\n")),
        }
    }
    assert!(examples.len() >= 15, "{}", examples.len());
    let commands = examples.iter().map(|(command, _)| format!("{command}\nprintf '{END}'\n")).collect::<String>();
    let script = commands.replace("localhost:8080", &format!("127.0.0.1:{}", http.port()));
    let done = Command::new("bash").args(["-c", &(CURL.to_owned() + &script)]).output().unwrap();
    let output = String::from_utf8(done.stdout).unwrap();
    assert_eq!(output.matches(END).count(), examples.len(), "{}", String::from_utf8_lossy(&done.stderr));
    for ((command, expected), said) in examples.iter().zip(output.split(END)) {
        // A value has no line ending of its own.
        assert_eq!(said.replace('\r', "").trim_end(), expected.trim_end(), "$ {command}");
    }
}
