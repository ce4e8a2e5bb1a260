//! The `hashmere` command: every operation of a store from the shell.

// One `json!` names every statistic.
#![recursion_limit = "256"]
#![forbid(unsafe_code)]

mod args;
mod bench;
mod cli;
mod cmd;
mod failure;
mod output;
mod serve;
mod text;
mod top;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.command.run(cli.quiet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(cli.quiet),
    }
}
