//! `bench`: a quick benchmark that verifies every value it reads. It is a part of the command, for users to run on
//! their machines; what is compared with other stores is in `bench/`.

mod runs;

use crate::cmd::Outcome;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;
use clap::Args;
use hashmere::{Options, Store};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Run a quick benchmark on a store of its own, which is removed at the end.
///
/// First a hot set that fits the caches (keys and values are the decimal text of 0..KEYS), then a larger set. Every
/// value that is read is compared with what was written. For comparisons with other systems use `make bench`.
#[derive(Args, Debug)]
pub struct Bench {
    /// Folder of the store (default: the namespace folder)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keys of the hot set
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    keys: u64,
    /// Operations of each measurement on the hot set
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    ops: u64,
    /// Records of the larger set (0 leaves it out)
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    items: u64,
    /// JSON lines: name, operations, ns per operation
    #[arg(short, long)]
    json: bool,
}

/// One line of the result.
pub struct Measured {
    /// What was measured.
    pub name: &'static str,
    /// How many operations.
    pub ops: u64,
    /// How long they took together.
    pub time: Duration,
}

impl Bench {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let name = format!("bench-{}", std::process::id());
        let target = match &self.dir {
            // Something with a slash in it is a path.
            Some(folder) => Path::new(".").join(folder).join(name + ".mere"),
            None => PathBuf::from(name),
        };
        let store = Options::new().create_new(true).open(&target)?;
        let _removal = Removal(target);
        self.measure(&store)
    }

    fn measure(&self, store: &Store) -> Outcome {
        let mut output = Output::new();
        if !self.json {
            output.line(format!("{}\n", store.path().display()))?;
        }
        let mut print = |measured: Measured| self.print(&mut output, &measured);
        print(runs::fill(store, self.keys, "hot: fill")?)?;
        print(runs::set_and_get(store, self.keys, self.ops)?)?;
        print(runs::set(store, self.keys, self.ops)?)?;
        print(runs::get(store, self.keys, self.ops, "hot: get")?)?;
        print(runs::get_many(store, self.keys, self.ops, "hot: bulk get, 100 a call")?)?;
        print(runs::scan(store, self.keys, (self.ops / self.keys).max(1), "hot: scan, a pair")?)?;
        print(runs::incr(store, self.ops)?)?;
        if self.items > 0 {
            let ops = self.ops.min(self.items);
            store.clear()?;
            print(runs::fill(store, self.items, "large: fill")?)?;
            print(runs::get(store, self.items, ops, "large: get")?)?;
            print(runs::get_many(store, self.items, ops, "large: bulk get, 100 a call")?)?;
            print(runs::scan(store, self.items, 1, "large: scan, a pair")?)?;
            let bytes = store.stats().bytes_allocated;
            if !self.json {
                let each = bytes as f64 / self.items as f64;
                output.line(format!("\n{:<28} {each:>10.1} bytes a record, all included", "large: space"))?;
            }
        }
        output.finish()
    }

    fn print(&self, output: &mut Output, measured: &Measured) -> Result<(), Failure> {
        let ns = measured.time.as_nanos() as f64 / measured.ops.max(1) as f64;
        if self.json {
            let json = serde_json::json!({"name": measured.name, "ops": measured.ops, "ns_per_op": ns});
            output.line(json.to_string())?;
        } else {
            let rate = 1000.0 / ns;
            let ops = text::grouped(measured.ops);
            output.line(format!("{:<28} {ns:>10.1} ns/op {rate:>9.2} M/s   {ops:>12} ops", measured.name))?;
        }
        output.flush()
    }
}

/// Removes the store at the end, whatever the end is.
struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = Store::remove(&self.0);
    }
}
