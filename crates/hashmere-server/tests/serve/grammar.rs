//! Requests for the differential test: mostly right, some wrong in one place.

use hashmere_testkit::rng::Rng;

/// A request with placeholders: `{cas K}` is the version that the server at hand last gave the key.
pub struct Request {
    pub text: String,
    /// The key whose version it needs.
    pub cas_of: Option<String>,
}

fn pick(rng: &mut Rng, from: &[&'static str]) -> &'static str {
    from[rng.index(from.len())]
}

fn key(rng: &mut Rng) -> String {
    match rng.below(60) {
        0 => "k".repeat(250),
        1 => "k".repeat(251),
        2 => "with\tt\u{1}ab".into(),
        _ => format!("k{}", rng.below(8)),
    }
}

fn value(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => String::new(),
        1 => "x".repeat(rng.below(3000) as usize),
        2 | 3 => rng.below(200).to_string(),
        4 => {
            pick(rng, &["18446744073709551615", "9", "99", "10", "1000", "9  ", " 9", "-5", "+5", "12a", "007"]).into()
        }
        _ => format!("value {}", rng.below(100)),
    }
}

/// Nothing that could end within the test.
fn exptime(rng: &mut Rng) -> &'static str {
    pick(rng, &["0", "0", "0", "1000", "2592000", "2000000000", "-1", "100"])
}

fn number(rng: &mut Rng) -> String {
    match rng.below(10) {
        0 => pick(rng, &["18446744073709551615", "18446744073709551616", "-1", "x", "1x", "0"]).into(),
        _ => rng.below(50).to_string(),
    }
}

/// A request.
pub fn request(rng: &mut Rng) -> Request {
    let key = key(rng);
    let mut cas_of = None;
    let mut text = match rng.below(15) {
        0..=3 => store(rng, &key, &mut cas_of),
        4..=6 => retrieve(rng, &key),
        7 => count(rng, &key),
        8 => small(rng, &key),
        9..=10 => meta_get(rng, &key, &mut cas_of),
        11..=12 => meta_set(rng, &key, &mut cas_of),
        _ => meta_rest(rng, &key, &mut cas_of),
    };
    // Versions of different keys are not related: the key must stay the one that the version is of.
    if cas_of.is_none() && rng.below(12) == 0 {
        let spoilt = spoil(rng, &text);
        if !waits(&spoilt) {
            text = spoilt;
        }
    }
    Request { text, cas_of }
}

fn noreply(rng: &mut Rng) -> &'static str {
    if rng.below(6) == 0 {
        " noreply"
    } else {
        ""
    }
}

fn store(rng: &mut Rng, key: &str, cas_of: &mut Option<String>) -> String {
    let value = value(rng);
    let verb = pick(rng, &["set", "set", "set", "add", "replace", "append", "prepend", "cas"]);
    let flags = pick(rng, &["0", "0", "7", "4294967295"]);
    let exptime = exptime(rng);
    let len = match rng.below(25) {
        0 => format!("{}", value.len() + 1),
        1 if !value.is_empty() => format!("{}", value.len() - 1),
        2 => "-1".into(),
        3 => "2000000".into(),
        4 => pick(rng, &["+1", "4294967296", "x"]).into(),
        _ => value.len().to_string(),
    };
    let body = if len == "2000000" { "z".repeat(2_000_000) } else { value };
    let cas = match (verb, rng.below(3)) {
        ("cas", 0) => " 9999999999999".to_string(),
        ("cas", _) => {
            *cas_of = Some(key.into());
            " {cas}".into()
        }
        _ => String::new(),
    };
    format!("{verb} {key} {flags} {exptime} {len}{cas}{}\r\n{body}\r\n", noreply(rng))
}

fn retrieve(rng: &mut Rng, key: &str) -> String {
    let verb = pick(rng, &["get", "gets", "get", "gat 1000", "gats 0", "gat -1"]);
    let more: String = (0..rng.below(4)).map(|_| format!(" k{}", rng.below(8))).collect();
    format!("{verb} {key}{more}\r\n")
}

fn count(rng: &mut Rng, key: &str) -> String {
    format!("{} {key} {}{}\r\n", pick(rng, &["incr", "decr"]), number(rng), noreply(rng))
}

fn small(rng: &mut Rng, key: &str) -> String {
    match rng.below(12) {
        0 => format!("touch {key} {}{}\r\n", exptime(rng), noreply(rng)),
        1 => format!("delete {key}{}\r\n", pick(rng, &["", " 0", " 5", " noreply", " 0 noreply", " x"])),
        2 => format!("flush_all{}\r\n", pick(rng, &["", " noreply", " 0", " x", " 1000"])).replace(" 1000", " 0"),
        3 => format!("verbosity{}\r\n", pick(rng, &[" 0", "", " 0 noreply", " x"])),
        4 => {
            format!(
                "{}\r\n",
                pick(
                    rng,
                    &[
                        "bogus",
                        "",
                        " ",
                        "GET k1",
                        "gets",
                        "get",
                        "set",
                        "mz k",
                        "mg",
                        "ms",
                        "md",
                        "a",
                        "incr k1",
                        " get k1",
                        "me",
                        "me k1",
                        "foo noreply"
                    ]
                )
            )
        }
        5 => format!("{}\r\n", pick(rng, &["slabs automove 0", "lru tune", "lru_crawler", "slabs", "stats bogus"])),
        _ => format!("delete {key}\r\n"),
    }
}

fn flags(rng: &mut Rng, all: &[&'static str]) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(5) {
        text.push(' ');
        text.push_str(pick(rng, all));
    }
    text
}

fn meta_get(rng: &mut Rng, key: &str, cas_of: &mut Option<String>) -> String {
    let all = [
        "v", "v", "c", "f", "k", "s", "t", "q", "u", "O123", "T1000", "N1000", "R30", "R2000", "h", "!", "Tx", "Dx",
        "M", "C1", "x", "T+1",
    ];
    if rng.below(15) == 0 {
        return format!("mg {} b{}\r\n", pick(rng, &["azE=", "azI=", "!!", "azE"]), flags(rng, &all));
    }
    let mut flags = flags(rng, &all);
    if rng.below(6) == 0 && !flags.contains(" C") {
        *cas_of = Some(key.into());
        flags.push_str(" C{cas}");
    }
    format!("mg {key}{flags}\r\n")
}

fn meta_set(rng: &mut Rng, key: &str, cas_of: &mut Option<String>) -> String {
    let value = value(rng);
    let all = [
        "c", "k", "q", "O1", "T1000", "T0", "F9", "ME", "MA", "MP", "MR", "MS", "N1000", "I", "s", "t", "!", "Fx",
        "Mz", "Ms", "Jx",
    ];
    let mut flags = flags(rng, &all);
    match rng.below(5) {
        0 => flags.push_str(" C9999999999999"),
        1 => {
            *cas_of = Some(key.into());
            flags.push_str(" C{cas}");
        }
        _ => {}
    }
    let len = match rng.below(40) {
        0 => (value.len() + 1).to_string(),
        1 => pick(rng, &["S2", "x", "+1", "4294967296"]).into(),
        _ => value.len().to_string(),
    };
    format!("ms {key} {len}{flags}\r\n{value}\r\n")
}

fn meta_rest(rng: &mut Rng, key: &str, cas_of: &mut Option<String>) -> String {
    let mut cas = String::new();
    match rng.below(6) {
        0 => cas.push_str(" C9999999999999"),
        1 => {
            *cas_of = Some(key.into());
            cas.push_str(" C{cas}");
        }
        _ => {}
    }
    if rng.below(2) == 0 {
        let all = ["q", "k", "O7", "I", "T1000", "x", "x", "c", "!", "z", "Cx"];
        return format!("md {key}{}{cas}\r\n", flags(rng, &all));
    }
    let all = [
        "q", "k", "O7", "t", "v", "c", "N1000", "J13", "D7", "DX", "MI", "MD", "M-", "M+", "Mz", "Mi", "s", "T1000",
        "!",
    ];
    format!("ma {key}{}{cas}\r\n", flags(rng, &all))
}

/// Breaks the first line in one place.
fn spoil(rng: &mut Rng, text: &str) -> String {
    let (line, rest) = text.split_once("\r\n").unwrap();
    let mut words: Vec<&str> = line.split(' ').collect();
    let at = rng.below(words.len() as u64) as usize;
    match rng.below(5) {
        0 if words.len() > 1 => drop(words.remove(at)),
        1 => words.insert(at, "extra"),
        2 => words[at] = "x",
        3 => words.push("noreply"),
        _ => return format!("{}\n{rest}", words.join("  ")),
    }
    // A word that moved into the place of the length may say more than is sent: a server that ignores as much would
    // wait for it.
    let place = match words.first() {
        Some(&("set" | "add" | "replace" | "append" | "prepend" | "cas")) => 4,
        Some(&"ms") => 2,
        _ => usize::MAX,
    };
    if words.get(place).and_then(|word| word.parse().ok()).is_some_and(|length: usize| length > rest.len()) {
        return text.to_string();
    }
    format!("{}\r\n{rest}", words.join(" "))
}

/// Whether a line declares more data than there are behind it: another number may have come into the place of the
/// length, and a bad line's data are waited for as well.
fn waits(text: &str) -> bool {
    let (line, rest) = text.split_once('\n').unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = match words.first() {
        Some(&("set" | "add" | "replace" | "append" | "prepend" | "cas")) => 4,
        Some(&"ms") => 2,
        _ => return false,
    };
    words.get(at).and_then(|len| len.parse::<u64>().ok()).is_some_and(|len| len > rest.len() as u64)
}
