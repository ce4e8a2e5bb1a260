//! `check`.

use super::Outcome;
use crate::args::StoreArgs;
use crate::failure::{code, Failure};
use crate::output::Output;
use crate::text;
use clap::Args;

/// Verify the whole store and name what is wrong (exit status 3).
///
/// Others go on using it. Prints a summary, or a line for each problem: its code, the byte offset in the file, and a
/// text.
#[derive(Args, Debug)]
pub struct Check {
    #[command(flatten)]
    store: StoreArgs,
    /// One JSON object
    #[arg(short, long)]
    json: bool,
}

impl Check {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let store = self.store.reader()?;
        let report = store.check();
        let mut output = Output::new();
        if self.json {
            let problems: Vec<_> = report
                .problems
                .iter()
                .map(|p| serde_json::json!({"code": p.code, "offset": p.offset, "text": p.text}))
                .collect();
            let json = serde_json::json!({
                "path": store.path().to_string_lossy(), "clean": report.is_clean(),
                "items": report.items, "segments": report.segments, "dead_locks": report.dead_locks, "problems": problems,
            });
            output.line(json.to_string())?;
        } else if report.is_clean() {
            let items = text::plural(report.items, "item");
            output.line(format!("clean: {items} in {}", text::plural(report.segments, "segment")))?;
            if report.dead_locks != 0 {
                let locks = text::plural(report.dead_locks, "lock");
                output.line(format!("{locks} of clients that died: the next to need one repairs what it covers"))?;
            }
        } else {
            for problem in &report.problems {
                output.line(format!("{} at byte {}: {}", problem.code, problem.offset, problem.text))?;
            }
        }
        output.finish()?;
        if report.is_clean() {
            return Ok(());
        }
        let problems = text::plural(report.problems.len() as u64, "problem");
        let text =
            format!("{}: {problems} found; `hashmere dump` saves what can still be read", store.path().display());
        Err(Failure::error(code::NOT_CLEAN, text))
    }
}
