//! The parent: damages files one after the other and watches over the child.

use super::damage::Victim;
use super::scribble::scribble_while;
use super::shapes;
use crate::procs::{Worker, LIMIT};
use crate::rng::{mix, Rng};
use crate::scratch::Scratch;
use hashmere_format::header::at;
use std::path::Path;
use std::time::{Duration, Instant};

/// What makes a file hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It was damaged before it is opened.
    Damaged,
    /// It is changed while it is in use; some are damaged before, too.
    Scribbled,
}

/// What was tried, and what went wrong.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files tried.
    pub cases: u64,
    /// Seed and damage of each that ended the child, or made it hang.
    pub failures: Vec<String>,
}

/// Tries damaged files until the time is over, at least `least` of them. Case `n` has the seed `mix(seed + n)`. (The
/// stores that are damaged draw seeds of their own, so a case is the same kind of damage in each run, not the same
/// file: those of failures are kept in `keep`. Of a scribbled file this is how it was in the end; to see such a failure
/// again takes the same seed and some luck.) `program` must call [`drive`](super::drive()) in the role `drive`.
pub fn run(program: &str, manner: Manner, seed: u64, keep: &Path, time: Duration, least: u64) -> Summary {
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
        let (bytes, done) = match manner {
            Manner::Scribbled if rng.chance(80) => (victim.shape.bytes.clone(), String::new()),
            _ => victim.damage(&mut rng),
        };
        write_sparse(&path, &bytes);
        let worker = child.get_or_insert_with(|| Worker::start(program, "drive", &[]));
        let word = rng.word();
        summary.cases += 1;
        let mut use_it = || {
            worker.say(&format!("{word} {}", path.display()));
            worker.answers("done", LIMIT)
        };
        let answer = match manner {
            Manner::Damaged => use_it(),
            Manner::Scribbled => scribble_while(&path, victim, &mut rng, use_it),
        };
        if let Err(how) = answer {
            let kept = keep.join(format!("{case}.mere"));
            // One word of the header says that the file goes with its last user.
            let left = std::fs::read(&path).ok().filter(|_| manner == Manner::Scribbled);
            let bytes = left.unwrap_or(bytes);
            write_sparse(&kept, &bytes);
            let again = format!("{word} {}", kept.display());
            let name = &victim.shape.name;
            let text = format!("{manner:?} case {case}: {how}; {name}:{done} again: echo {again} | {program} drive");
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
    if bytes.len() as u64 > at::FILE + 8 {
        // Or nearly all of them would be refused as copies.
        crate::files::adopt(&file);
    }
}
