//! The end of the demo: every total is compared with a plain count by one process, which knows nothing of chunks.

use crate::failure::{Failure, Outcome};
use crate::job::{self, Chunk, State, WordCount};
use crate::plan::{Killed, Plan, Ran};
use crate::text::{grouped, per_second, plural, size};
use crate::words::{count_lines, count_words, Counts};
use crate::worker::number;
use console::style;
use hashmere::{Cursor, Filter, Store};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the comparison found.
pub struct Verdict {
    /// Words that differ, some of them, as messages.
    pub differences: Vec<String>,
    /// How many there are.
    pub different: u64,
    /// The plain count.
    pub words: u64,
    /// Different words of the plain count.
    pub distinct: u64,
    /// Lines of the plain count.
    pub lines: u64,
    /// Bytes of the plain count.
    pub bytes: u64,
    /// How long the plain count took.
    pub plain_time: Duration,
}

impl Verdict {
    /// Whether everything agrees.
    pub fn outcome(&self) -> Outcome {
        match self.different {
            0 => Ok(()),
            n => Err(Failure::new(format!("{} between store and plain count", plural(n, "difference")))),
        }
    }

    fn differs(&mut self, text: String) {
        self.different += 1;
        if self.differences.len() < 10 {
            self.differences.push(text);
        }
    }

    fn expect(&mut self, what: &str, store: u64, plain: u64) {
        if store != plain {
            self.differs(format!("{what}: {} in the store, {} by the plain count", grouped(store), grouped(plain)));
        }
    }
}

/// Counts the files again, plainly, and compares word by word.
pub fn compare(store: &Store, files: &[PathBuf], plan: &Plan, ran: &Ran) -> Result<Verdict, Failure> {
    let begin = Instant::now();
    let mut counts = Counts::new();
    let (mut words, mut lines, mut bytes) = (0, 0, 0);
    for path in files {
        let text = std::fs::read(path).map_err(|e| Failure::io(format!("read {}", path.display()), &e))?;
        words += count_words(&text, &mut counts);
        lines += count_lines(&text);
        bytes += text.len() as u64;
    }
    let distinct = counts.len() as u64;
    let plain_time = begin.elapsed();
    let mut verdict = Verdict { differences: Vec::new(), different: 0, words, distinct, lines, bytes, plain_time };
    compare_words(store, counts, &mut verdict)?;
    compare_sums(store, plan.chunks, &mut verdict)?;
    compare_kills(store, ran, &mut verdict)?;
    let report = store.check();
    for problem in &report.problems {
        verdict.differs(format!("check: {} at byte {}: {}", problem.code, problem.offset, problem.text));
    }
    Ok(verdict)
}

fn compare_words(store: &Store, mut counts: Counts, verdict: &mut Verdict) -> Outcome {
    for pair in store.scan(Cursor::START, Filter::all().prefix(job::WORD_PREFIX)) {
        let pair = pair?;
        let word = pair.key.strip_prefix(job::WORD_PREFIX).unwrap_or_default();
        // Taken out, so that a word which the scan returned twice differs too.
        let plain = counts.remove(word).unwrap_or(0);
        verdict.expect(&format!("`{}`", word.escape_ascii()), WordCount::decode(&pair.value)?.total, plain);
    }
    for (word, plain) in counts {
        verdict.expect(&format!("`{}`", word.escape_ascii()), 0, plain);
    }
    Ok(())
}

/// Words, lines and bytes as the finished chunks have them.
fn compare_sums(store: &Store, chunks: u64, verdict: &mut Verdict) -> Outcome {
    let (mut all_words, mut all_lines, mut all_bytes) = (0, 0, 0);
    for id in 1..=chunks {
        let key = job::chunk_key(id);
        let chunk = Chunk::decode(&store.get(&key)?.ok_or_else(|| job::missing(&key))?)?;
        match chunk.state {
            State::Done { lines, words, .. } => {
                all_words += words;
                all_lines += lines;
                all_bytes += chunk.piece.len;
            }
            state => verdict.differs(format!("chunk {id} is not done: {state:?}")),
        }
    }
    verdict.expect("words", all_words, verdict.words);
    verdict.expect("lines", all_lines, verdict.lines);
    verdict.expect("bytes", all_bytes, verdict.bytes);
    Ok(())
}

/// The process that took a chunk over must have skipped the very words that the killed one had applied.
fn compare_kills(store: &Store, ran: &Ran, verdict: &mut Verdict) -> Outcome {
    for (i, kill) in ran.kills.iter().enumerate() {
        let Some(left) = &kill.chunk else { continue };
        let again = |later: &Killed| later.chunk.as_ref().is_some_and(|other| other.id == left.id);
        if !ran.kills[i + 1..].iter().any(again) {
            let skipped = number(store, &job::resumed_key(left.id))?;
            verdict.expect(&format!("words of chunk {} skipped", left.id), skipped, left.applied);
        }
    }
    Ok(())
}

/// Prints what was done and how it ended.
pub fn report(store: &Store, plan: &Plan, ran: &Ran, verdict: &Verdict, keep: bool) -> Outcome {
    let mut output = std::io::stdout().lock();
    let mut line = |name: &str, text: String| print_line(&mut output, format!("  {name:<12} {text}").trim_end());
    let seconds = ran.time.as_secs_f64();
    let updates = number(store, job::LIVE_UPDATES)?;
    line("", String::new())?;
    line("input", format!("{}, {}", size(verdict.bytes), plural(verdict.lines, "line")))?;
    line("words", format!("{}, of which {} distinct", grouped(verdict.words), grouped(verdict.distinct)))?;
    let rate = per_second(updates, seconds);
    line("table", format!("{} atomic updates in {seconds:.2} s, {rate} a second", grouped(updates)))?;
    line("workers", format!("{} at a time, {} processes in all", plan.slots, ran.started))?;
    for kill in &ran.kills {
        let (at, slot, pid) = (kill.after.as_secs_f64(), kill.slot + 1, kill.pid);
        line("SIGKILL", format!("at {at:.2} s for worker {slot} (pid {pid}), {}", left_by(kill)))?;
        if let Some(left) = &kill.chunk {
            let rest = grouped(left.words - left.applied);
            line("", format!("its next process skipped these {} and applied the other {rest}", grouped(left.applied)))?;
        }
    }
    if u64::from(plan.kills) > ran.kills.len() as u64 {
        line("SIGKILL", "not sent: the work was done before the moment came (try a larger --max-input)".into())?;
    }
    let live = grouped(number(store, job::LIVE_WORDS)?);
    line("live counter", format!("{live} words (a plain `incr` beside the updates; a kill costs it a few)"))?;
    let plain = (grouped(verdict.words), verdict.plain_time.as_secs_f64());
    line("plain count", format!("{} words by one process in {:.2} s", plain.0, plain.1))?;
    if verdict.different == 0 {
        let text =
            format!("all {} totals agree exactly: nothing lost, nothing counted twice", grouped(verdict.distinct));
        line("result", style(text).green().bold().to_string())?;
    } else {
        line("result", style("the totals DIFFER").red().bold().to_string())?;
        for difference in &verdict.differences {
            line("", difference.clone())?;
        }
    }
    line("", String::new())?;
    next_steps(&mut output, plan, keep)
}

fn print_line(output: &mut impl Write, text: &str) -> Outcome {
    writeln!(output, "{text}").map_err(|error| Failure::io("write to standard output", &error))
}

fn left_by(kill: &Killed) -> String {
    match &kill.chunk {
        Some(left) => {
            format!("in chunk {} with {} of {} words applied", left.id, grouped(left.applied), grouped(left.words))
        }
        None => "between two chunks".into(),
    }
}

fn next_steps(output: &mut impl Write, plan: &Plan, keep: bool) -> Outcome {
    let store = plan.store.display();
    if keep {
        print_line(output, "  The store is left there. Look around:")?;
    } else {
        print_line(output, "  The store is removed. `hashmere-demo --keep` keeps it; then look around:")?;
    }
    for command in [
        format!("hashmere scan {store} --prefix word: --limit 5"),
        format!("hashmere get {store} word:license          # the total, then the last chunk of each worker"),
        format!("hashmere scan {store} --glob 'chunk:0000??'"),
        format!("hashmere incr {store} my:counter 5"),
        format!("hashmere stats {store}"),
        format!("hashmere remove {store}"),
    ] {
        print_line(output, &format!("    {command}"))?;
    }
    Ok(())
}
