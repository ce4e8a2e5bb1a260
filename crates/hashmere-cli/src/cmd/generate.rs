//! `completions`, `man`.

use super::Outcome;
use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, CommandFactory, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print the completions for a shell.
///
/// For example into ~/.local/share/bash-completion/completions/hashmere.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "hashmere", &mut script);
        let mut output = Output::new();
        output.raw(&script)?;
        output.finish()
    }
}

/// Print the man page, or write all man pages (hashmere.1, hashmere-get.1, ...) into a folder.
#[derive(Args, Debug)]
pub struct Man {
    /// The folder; created if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let command = Cli::command().disable_help_subcommand(true);
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(|e| Failure::io("write the man page", &e))?;
            let mut output = Output::new();
            output.raw(&page)?;
            return output.finish();
        };
        let failed = |e| Failure::io(format!("write man pages into {}", folder.display()), &e);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(command, &folder).map_err(failed)
    }
}
