//! The parent: damages files one after the other and watches over the child.

use super::damage::Victim;
use super::shapes;
use crate::procs::Worker;
use crate::rng::{mix, Rng};
use crate::scratch::Scratch;
use std::path::Path;
use std::time::{Duration, Instant};

/// A child that says nothing for so long hangs.
const HANG: Duration = Duration::from_secs(60);

/// What was tried, and what went wrong.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files tried.
    pub cases: u64,
    /// Seed and damage of each that ended the child, or made it hang.
    pub failures: Vec<String>,
}

/// Tries damaged files until the time is over, at least `least` of them. Case `n` has the seed `mix(seed + n)`. (The stores that
/// are damaged draw seeds of their own, so a case is the same kind of damage in each run, not the same file: those of
/// failures are kept in `keep`.) `program` must call [`drive`](super::drive) in the role `drive`.
pub fn run(program: &str, seed: u64, keep: &Path, time: Duration, least: u64) -> Summary {
    let victims: Vec<Victim> = shapes::all().into_iter().map(Victim::new).collect();
    let scratch = Scratch::new("hostile");
    let path = scratch.store("damaged");
    let mut summary = Summary::default();
    let mut child = None;
    let begin = Instant::now();
    while summary.cases < least || begin.elapsed() < time {
        let case = mix(seed.wrapping_add(summary.cases));
        let mut rng = Rng::from_seed(case);
        let victim = rng.pick(&victims);
        let (bytes, done) = victim.damage(&mut rng);
        write_sparse(&path, &bytes);
        let worker = child.get_or_insert_with(|| Worker::start(program, "drive", &[]));
        let word = rng.word();
        worker.say(&format!("{word} {}", path.display()));
        summary.cases += 1;
        if let Err(how) = worker.answers("done", HANG) {
            let kept = keep.join(format!("{case}.mere"));
            write_sparse(&kept, &bytes);
            let again = format!("{word} {}", kept.display());
            let text =
                format!("case {case}: {how}; {}:{done} again: echo {again} | {program} drive", victim.shape.name);
            println!("{text}");
            summary.failures.push(text);
            child = None;
        }
    }
    summary
}

/// Writes what is not zero; the rest are holes, as in the file that it was. A new file each time.
fn write_sparse(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let _ = std::fs::remove_file(path);
    let file = std::fs::File::create(path).expect("create a damaged file");
    for (page, part) in bytes.chunks(4096).enumerate() {
        if part.iter().any(|byte| *byte != 0) {
            file.write_all_at(part, page as u64 * 4096).expect("write a damaged file");
        }
    }
    file.set_len(bytes.len() as u64).expect("size a damaged file");
}
