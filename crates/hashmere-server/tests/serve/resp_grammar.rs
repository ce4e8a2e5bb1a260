//! Commands that are sent to Redis and to this server.

use hashmere_testkit::rng::Rng;

/// A request: its arguments.
pub type Request = Vec<Vec<u8>>;

const KEYS: &[&str] = &["a", "b", "c", "d", "key:1", "key:2", ""];
const VALUES: &[&str] = &[
    "",
    "x",
    "0",
    "1",
    "-1",
    "10",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "3.5",
    "0.25",
    "abc",
    "hello world",
    "01",
    " 1",
    "1 x",
    "line\r\nbreak",
    "\0zero\0",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "5",
    "-5",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "x",
    "",
    "1.5",
    "99999999999999999999",
];
const FLOATS: &[&str] = &["0.1", "-0.1", "1", "3.0e2", "0.5", "-7.25", "x", "", "nan", "inf", " 1", "1e-3"];
/// Distances: seconds that no test takes, none, the past, and what is no time. No two that are long are the same, see
/// [`distance`].
const TIMES: &[&str] = &["10000", "20000", "30000", "0", "-1", "x", "9223372036854775807", ""];
const POINTS: &[&str] = &["4102444800", "4102444900", "1", "0", "-5", "x", "9223372036854775807"];
const POINTS_MS: &[&str] = &["4102444800000", "4102444900000", "1", "0", "-5", "x"];
const PATTERNS: &[&str] = &["*", "a", "key:*", "?", "[a-c]", "[^a]", "key:[12]", "nothing", "\\a", "[a", "*1", ""];

fn word(rng: &mut Rng, upper: &str) -> Vec<u8> {
    match rng.index(3) {
        0 => upper.to_ascii_lowercase().into(),
        _ => upper.into(),
    }
}

fn one(rng: &mut Rng, of: &[&str]) -> Vec<u8> {
    of[rng.index(of.len())].into()
}

/// One of these distances; of long ones some other as long. Of two that are the same the later one ends later, by
/// whatever time passed between the requests: the two servers need not agree whether that was a millisecond.
fn distance(rng: &mut Rng, of: &[&str]) -> Vec<u8> {
    let text = of[rng.index(of.len())];
    match text.parse::<u64>() {
        Ok(long @ 10_000..=30_000) => (long + 1000 * rng.below(1_000_000)).to_string().into(),
        Ok(long @ 10_000_000..=20_000_000) => (long + 1_000_000 * rng.below(1_000_000)).to_string().into(),
        _ => text.into(),
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    one(rng, KEYS)
}

fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.index(12) {
        0 => vec![b'v'; rng.index(200)],
        1 => vec![b'w'; 40_000],
        _ => one(rng, VALUES),
    }
}

/// The options of `SET` and `GETEX`, in any order, and some that do not go together.
fn options(rng: &mut Rng, flags: &[&str], request: &mut Request) {
    for _ in 0..rng.index(4) {
        match rng.index(8) {
            0 => request.extend([word(rng, "EX"), distance(rng, TIMES)]),
            1 => request.extend([word(rng, "PX"), distance(rng, &["10000000"])]),
            2 => request.extend([word(rng, "EXAT"), one(rng, POINTS)]),
            3 => request.extend([word(rng, "PXAT"), one(rng, POINTS_MS)]),
            4 if rng.index(8) == 0 => request.push(b"bad".to_vec()),
            _ => {
                let flag = flags[rng.index(flags.len())];
                request.push(word(rng, flag));
            }
        }
    }
}

const ONE_KEY: &[&str] = &[
    "GET",
    "GET",
    "STRLEN",
    "GETDEL",
    "INCR",
    "INCR",
    "DECR",
    "TTL",
    "EXPIRETIME",
    "PERSIST",
    "TYPE",
    "PTTL",
    "PEXPIRETIME",
];
const MANY_KEYS: &[&str] = &["MGET", "MGET", "DEL", "UNLINK", "EXISTS", "TOUCH"];
const WRONG: &[&str] =
    &["GET", "SET", "MSET", "EXPIRE", "INCRBY", "OBJECT", "CLIENT", "PING", "EXEC", "WATCH", "SETEX"];

/// A request.
pub fn request(rng: &mut Rng) -> Request {
    let mut request = Vec::new();
    let name = |rng: &mut Rng, request: &mut Request, upper: &str| request.push(word(rng, upper));
    match rng.index(30) {
        0..=5 => {
            let upper = ONE_KEY[rng.index(ONE_KEY.len())];
            name(rng, &mut request, upper);
            request.push(key(rng));
        }
        6..=7 => {
            let upper = MANY_KEYS[rng.index(MANY_KEYS.len())];
            name(rng, &mut request, upper);
            request.extend((0..1 + rng.index(4)).map(|_| key(rng)));
        }
        8..=11 => {
            name(rng, &mut request, "SET");
            request.extend([key(rng), value(rng)]);
            if rng.index(2) == 0 {
                options(rng, &["NX", "XX", "GET", "KEEPTTL", "KEEPTTL", "PERSIST"], &mut request);
            }
        }
        12 => {
            name(rng, &mut request, "GETEX");
            request.push(key(rng));
            options(rng, &["PERSIST", "PERSIST", "NX"], &mut request);
        }
        13 => {
            let upper = ["SETNX", "GETSET", "APPEND", "APPEND"][rng.index(4)];
            name(rng, &mut request, upper);
            request.extend([key(rng), value(rng)]);
        }
        14 => {
            let (upper, times) = [("SETEX", TIMES), ("PSETEX", &["10000000", "0", "-1", "x"])][rng.index(2)];
            name(rng, &mut request, upper);
            request.extend([key(rng), distance(rng, times), value(rng)]);
        }
        15 => {
            name(rng, &mut request, "SETRANGE");
            request.extend([key(rng), one(rng, &["0", "1", "5", "30", "-1", "x", "1048577000"]), value(rng)]);
        }
        16..=17 => {
            let upper = ["GETRANGE", "SUBSTR"][rng.index(2)];
            name(rng, &mut request, upper);
            request.extend([key(rng), one(rng, NUMBERS), one(rng, NUMBERS)]);
        }
        18..=19 => {
            let upper = ["INCRBY", "DECRBY"][rng.index(2)];
            name(rng, &mut request, upper);
            request.extend([key(rng), one(rng, NUMBERS)]);
        }
        20 => {
            name(rng, &mut request, "INCRBYFLOAT");
            request.extend([key(rng), one(rng, FLOATS)]);
        }
        21 => {
            let upper = ["MSET", "MSETNX"][rng.index(2)];
            name(rng, &mut request, upper);
            (0..1 + rng.index(3)).for_each(|_| request.extend([key(rng), one(rng, VALUES)]));
            if rng.index(6) == 0 {
                request.push(key(rng));
            }
        }
        22..=23 => {
            let (upper, times) = [
                ("EXPIRE", TIMES),
                ("PEXPIRE", &["10000000", "20000000", "0", "-1", "x"]),
                ("EXPIREAT", POINTS),
                ("PEXPIREAT", POINTS_MS),
            ][rng.index(4)];
            name(rng, &mut request, upper);
            request.extend([key(rng), distance(rng, times)]);
            for _ in 0..rng.index(3) {
                let flag = ["NX", "XX", "GT", "LT", "LT", "GT", "bad"][rng.index(7)];
                request.push(word(rng, flag));
            }
        }
        24 => {
            let upper = ["RENAME", "RENAMENX"][rng.index(2)];
            name(rng, &mut request, upper);
            request.extend([key(rng), key(rng)]);
        }
        25 => {
            name(rng, &mut request, "COPY");
            request.extend([key(rng), key(rng)]);
            match rng.index(5) {
                0 => request.push(word(rng, "REPLACE")),
                1 => request.extend([word(rng, "DB"), one(rng, &["0", "x", "-1", "16"])]),
                2 => request.push(b"bad".to_vec()),
                _ => {}
            }
        }
        26 => {
            name(rng, &mut request, "KEYS");
            request.push(one(rng, PATTERNS));
        }
        27 => {
            let wrong = WRONG[rng.index(WRONG.len())];
            name(rng, &mut request, wrong);
            request.extend((0..rng.index(2)).map(|_| one(rng, VALUES)));
        }
        28 => match rng.index(10) {
            0 => request.extend([b"nosuch".to_vec(), value(rng), value(rng)]),
            1 => request.extend([b"OBJECT".to_vec(), b"ENCODING".to_vec(), b"nothing".to_vec()]),
            2 => request.extend([b"OBJECT".to_vec(), b"nosuch".to_vec(), key(rng)]),
            3 => request.extend([b"SELECT".to_vec(), one(rng, &["0", "16", "x", "-1", ""])]),
            4 => request.extend([b"PING".to_vec(), value(rng)]),
            5 => request.extend([b"ECHO".to_vec(), value(rng)]),
            6 => request.extend([b"SCAN".to_vec(), one(rng, &["x", "1x"])]),
            7 => request.extend([b"WAIT".to_vec(), b"0".to_vec(), one(rng, &["x", "-1", "1"])]),
            8 => request.extend([b"MEMORY".to_vec(), b"USAGE".to_vec(), b"nothing".to_vec()]),
            _ => request.extend([b"CLIENT".to_vec(), one(rng, &["nosuch", "GETNAME", "ID"]), b"more".to_vec()]),
        },
        _ => {
            let upper = ["MULTI", "EXEC", "EXEC", "DISCARD", "UNWATCH"][rng.index(5)];
            name(rng, &mut request, upper);
        }
    }
    request
}

/// Some requests of which the first watches a key and the last ends a transaction.
pub fn watched(rng: &mut Rng) -> Vec<Request> {
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Request>();
    let mut all = vec![words(&["DISCARD"]), words(&["SET", "b", "3"]), words(&["WATCH", "b", "c"])];
    for _ in 0..rng.index(3) {
        all.push(match rng.index(6) {
            0 => words(&["SET", "b", "4"]),
            1 => words(&["INCR", "c"]),
            2 => words(&["SET", "b", "5", "NX"]),
            3 => words(&["EXPIRE", "b", "10000"]),
            4 => words(&["UNWATCH"]),
            _ => words(&["GET", "b"]),
        });
    }
    all.push(words(&["MULTI"]));
    for _ in 0..1 + rng.index(4) {
        let mut request = request(rng);
        while request[0].eq_ignore_ascii_case(b"MULTI") || request[0].eq_ignore_ascii_case(b"EXEC") {
            request = self::request(rng);
        }
        all.push(request);
    }
    all.push(words(&["EXEC"]));
    all
}

/// The bytes of a request.
pub fn encode(request: &Request) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for argument in request {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}
