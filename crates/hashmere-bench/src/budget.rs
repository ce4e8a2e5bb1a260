//! A plain loop over one operation, for `valgrind --tool=callgrind`, `strace -c` and `perf`, on a store that
//! `work hashmere fill` made. `bench/budget` runs it with N and with 2 N operations and subtracts, so that opening
//! cancels.

use crate::tables::{bulk_matches, store_file};
use crate::workload::{eight_digits, Random};
use crate::Outcome;
use hashmere::{Counter, Options, Store, WriteBatch, WriteError};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Keys in a bulk get.
const BULK: usize = 32;

/// Runs `budget OPERATION COUNT RECORDS FOLDER`.
pub fn main(arguments: &[String]) -> Outcome {
    let [operation, count, records, folder] = arguments else {
        return Err(crate::USAGE.into());
    };
    let (count, records): (u64, u32) = (count.parse()?, records.parse()?);
    let mut options = Options::new().create(false);
    let file = store_file(Path::new(folder));
    // The same while another process samples it.
    let (operation, is_sampled) = match operation.strip_prefix("sampled-") {
        Some(operation) => (operation, true),
        None => (operation.as_str(), false),
    };
    // The same with a feed of changes.
    let operation = match operation.strip_prefix("fed-") {
        Some(operation) => {
            options = options.feed(64 << 20);
            operation
        }
        None => operation,
    };
    let store = options.open(&file)?;
    let _sampled = if is_sampled { Some(Sampled::start(&file)?) } else { None };
    let mut one = operation_of(operation, &store, records)?;
    for round in 0..count {
        if !one(round)? {
            return Err(format!("{operation} went wrong").into());
        }
    }
    Ok(())
}

/// A process that samples the store, as long as this is kept.
struct Sampled(Child);

impl Sampled {
    fn start(file: &Path) -> Outcome<Sampled> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["observe", "sampler"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output of the sampler")?;
        let sampled = Sampled(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line != "on\n" {
            return Err("the sampler did not begin".into());
        }
        Ok(sampled)
    }
}

impl Drop for Sampled {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

type Operation<'a> = Box<dyn FnMut(u64) -> Outcome<bool> + 'a>;

/// Gives each key another value of eight digits, and removes the garbage that this leaves. The same for any number of
/// operations, so it cancels.
fn replace_all(store: &Store, records: u32, plus: u32) -> Outcome<()> {
    for n in 0..records {
        store.set(&eight_digits(n), &eight_digits(n + plus))?;
    }
    store.compact()?;
    Ok(())
}

fn operation_of<'a>(operation: &str, store: &'a Store, records: u32) -> Outcome<Operation<'a>> {
    let mut random = Random(7);
    let mut draw = move || random.below(records.into()) as u32;
    let mut buffer = Vec::with_capacity(64);
    Ok(match operation {
        // The loop itself: drawing a key, making its text, comparing.
        "none" => Box::new(move |_| {
            let text = black_box(eight_digits(draw()));
            Ok(black_box(&text) == &text)
        }),
        "get" => Box::new(move |_| {
            let text = eight_digits(draw());
            Ok(store.get_into(&text, &mut buffer)?.is_some() && buffer == text)
        }),
        "miss" => Box::new(move |_| {
            let text = eight_digits(draw() + records);
            Ok(store.get_into(&text, &mut buffer)?.is_none())
        }),
        // Of values that are shown where they are.
        "view" => {
            for n in 0..records {
                store.set(&eight_digits(n), &[eight_digits(n); 2].concat())?;
            }
            Box::new(move |_| {
                let text = eight_digits(draw());
                Ok(store.view(&text)?.is_some_and(|view| view.is_zero_copy() && view[8..] == text[..]))
            })
        }
        // Whether what a view shows is still the key's value.
        "view-current" => {
            const VIEWS: usize = 16;
            let mut views = Vec::with_capacity(VIEWS);
            for _ in 0..VIEWS {
                let text = eight_digits(draw());
                store.set(&text, &[text; 2].concat())?;
                views.push(store.view(&text)?.filter(|view| view.is_zero_copy()).ok_or("a view is a copy")?);
            }
            Box::new(move |_| {
                // As in `none`.
                let text = black_box(eight_digits(draw()));
                Ok(black_box(&text) == &text && views[usize::from(text[7]) % VIEWS].is_up_to_date()?)
            })
        }
        // Of values that are copied, because they may be replaced in place.
        "view-short" => Box::new(move |_| {
            let text = eight_digits(draw());
            Ok(store.view(&text)?.is_some_and(|view| *view == text[..]))
        }),
        "bulk" => {
            // One round in 32 does the work of 32.
            let (mut numbers, mut keys) = ([0; BULK], Vec::with_capacity(BULK));
            Box::new(move |round| {
                if round % BULK as u64 != 0 {
                    return Ok(true);
                }
                numbers.fill_with(&mut draw);
                bulk_matches(store, &numbers, &mut keys)
            })
        }
        "set" => Box::new(move |_| {
            let text = eight_digits(draw());
            Ok(!store.set(&text, &text)?.created)
        }),
        // Values that replace some that were replaced before: most of their records are where that is done in place.
        "set-again" => {
            replace_all(store, records, 0)?;
            Box::new(move |_| {
                let text = eight_digits(draw());
                Ok(!store.set(&text, &text)?.created)
            })
        }
        // The same of counters, of eight digits before and after.
        "incr" => {
            replace_all(store, records, 10_000_000)?;
            Box::new(move |_| Ok(store.incr(&eight_digits(draw()), 1, Counter::EXISTING)?.is_some()))
        }
        // Values of 16 bytes, to be compared with those below: none is replaced in place.
        "set-16" => Box::new(move |_| {
            let text = eight_digits(draw());
            store.set(&text, &[text; 2].concat())?;
            Ok(true)
        }),
        // One round in 2 sets 2 keys at one moment, or one in 10 sets 10.
        "batch-2" | "batch-10" => {
            let width = if operation == "batch-2" { 2 } else { 10 };
            let mut batch = WriteBatch::new();
            Box::new(move |round| {
                if round % width != 0 {
                    return Ok(true);
                }
                batch.clear();
                for _ in 0..width {
                    let text = eight_digits(draw());
                    batch.set(text, [text; 2].concat());
                }
                Ok(store.write_batch(&batch)?.len() as u64 == width)
            })
        }
        // A transaction that reads 2 keys and writes both.
        "transfer" => {
            let mut other = Vec::with_capacity(64);
            Box::new(move |_| {
                let (from, to) = (eight_digits(draw()), eight_digits(draw()));
                Ok(store.transaction(|t| -> Result<bool, WriteError> {
                    let found = t.get_into(from, &mut buffer)?.is_some() && t.get_into(to, &mut other)?.is_some();
                    if found {
                        t.set(from, &other)?;
                        t.set(to, &buffer)?;
                    }
                    Ok(found)
                })?)
            })
        }
        // The same with values of its own.
        "transfer-own" => Box::new(move |_| {
            let (from, to) = (eight_digits(draw()), eight_digits(draw()));
            Ok(store.transaction(|t| -> Result<bool, WriteError> {
                let (Some(one), Some(other)) = (t.get(from)?, t.get(to)?) else { return Ok(false) };
                t.set(from, other)?;
                t.set(to, one)?;
                Ok(true)
            })?)
        }),
        "churn" => {
            // Delete one, and set it again the next time.
            let mut n = 0;
            Box::new(move |round| {
                if round % 2 == 0 {
                    n = draw();
                    return Ok(store.delete(&eight_digits(n))?);
                }
                let text = eight_digits(n);
                Ok(store.set(&text, &text)?.created)
            })
        }
        other => return Err(format!("no such operation: {other}\n{}", crate::USAGE).into()),
    })
}
