//! The command line: which subcommands there are.

use crate::cmd::*;
use clap::{Parser, Subcommand};

const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 the key is not there, or the condition is not met; 2 usage; 3 error. \
An error prints `hashmere: error E<code>: ...`; the codes are stable.

STORE is a name (a file in the folder HASHMERE_DIR, or else /dev/shm/hashmere-<uid>), or a path if it has a slash or \
ends in .mere. KEY and VALUE are taken byte by byte as they are; with --escape, \\xNN and the like are interpreted. \
A KEY or VALUE that starts with a hyphen is written behind `--`.";

/// One hash table in one file, shared by all processes of the machine.
#[derive(Parser, Debug)]
#[command(name = "hashmere", version, after_help = EXIT_STATUS, max_term_width = 110)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    /// No messages for what is not there, and no progress bar
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands. Each is described at the type of its arguments: that text is also its help.
#[derive(Subcommand, Debug)]
pub enum Command {
    Get(read::Get),
    Exists(read::Exists),
    ValueLen(read::ValueLen),
    Set(write::Set),
    Add(write::Add),
    Replace(write::Replace),
    Append(write::Append),
    Prepend(write::Prepend),
    Cas(cas::Cas),
    #[command(visible_alias = "del")]
    Delete(remove::Delete),
    Take(remove::Take),
    Incr(counter::Incr),
    Decr(counter::Decr),
    Ref(counter::RefOf),
    Touch(expiry::Touch),
    Ttl(expiry::TtlOf),
    Uid(uid::UidOf),
    Wait(wait::Wait),
    Scan(scan::Scan),
    Random(scan::Random),
    Len(scan::Len),
    Batch(batch::Batch),
    Load(load::Load),
    Dump(dump::Dump),
    Backup(backup::Backup),
    Replicate(replicate::Replicate),
    Restore(restore::Restore),
    Feed(Box<feed::FeedOf>),
    Create(admin::Create),
    Ls(info::Ls),
    Info(info::Info),
    Stats(stats::StatsOf),
    Top(crate::top::Top),
    Hot(hot::Hot),
    Big(big::Big),
    Latency(latency::Latency),
    Metrics(metrics::Metrics),
    Check(check::Check),
    Queue(queue::QueueOf),
    Log(Box<log::LogOf>),
    Compact(admin::Compact),
    Sync(admin::Sync),
    Clear(admin::Clear),
    Remove(admin::Remove),
    Serve(crate::serve::Serve),
    Bench(crate::bench::Bench),
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Command {
    /// Runs it.
    pub fn run(self, quiet: bool) -> Outcome {
        match self {
            Command::Get(c) => c.run(),
            Command::Exists(c) => c.run(),
            Command::ValueLen(c) => c.run(),
            Command::Set(c) => c.run(),
            Command::Add(c) => c.run(),
            Command::Replace(c) => c.run(),
            Command::Append(c) => c.run(),
            Command::Prepend(c) => c.run(),
            Command::Cas(c) => c.run(),
            Command::Delete(c) => c.run(),
            Command::Take(c) => c.run(),
            Command::Incr(c) => c.run(),
            Command::Decr(c) => c.run(),
            Command::Ref(c) => c.run(),
            Command::Touch(c) => c.run(),
            Command::Ttl(c) => c.run(),
            Command::Uid(c) => c.run(),
            Command::Wait(c) => c.run(),
            Command::Scan(c) => c.run(quiet),
            Command::Random(c) => c.run(),
            Command::Len(c) => c.run(),
            Command::Batch(c) => c.run(),
            Command::Load(c) => c.run(quiet),
            Command::Dump(c) => c.run(quiet),
            Command::Backup(c) => c.run(quiet),
            Command::Replicate(c) => c.run(quiet),
            Command::Restore(c) => c.run(quiet),
            Command::Feed(c) => c.run(quiet),
            Command::Create(c) => c.run(),
            Command::Ls(c) => c.run(),
            Command::Info(c) => c.run(),
            Command::Stats(c) => c.run(),
            Command::Top(c) => c.run(),
            Command::Hot(c) => c.run(),
            Command::Big(c) => c.run(quiet),
            Command::Latency(c) => c.run(),
            Command::Metrics(c) => c.run(),
            Command::Check(c) => c.run(),
            Command::Queue(c) => c.run(),
            Command::Log(c) => c.run(),
            Command::Compact(c) => c.run(),
            Command::Sync(c) => c.run(),
            Command::Clear(c) => c.run(),
            Command::Remove(c) => c.run(),
            Command::Serve(c) => c.run(quiet),
            Command::Bench(c) => c.run(),
            Command::Completions(c) => c.run(),
            Command::Man(c) => c.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
