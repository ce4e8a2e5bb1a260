//! `metrics`.

use super::Outcome;
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, ValueHint};
use hashmere::{Options, Store};
use hashmere_server::metrics::{name_of, of_stores, Form};
use std::path::PathBuf;

/// Print the figures of stores as metrics for Prometheus, without a server.
///
/// For a textfile collector, or a program that is run by the scraper. Each store has its name as a label, or its path
/// if two have the same name.
#[derive(Args, Debug)]
pub struct Metrics {
    /// Names of the stores, or paths
    #[arg(required = true, value_name = "STORE", value_hint = ValueHint::AnyPath)]
    stores: Vec<PathBuf>,
    /// OpenMetrics 1.0.0 instead of Prometheus's text
    #[arg(long)]
    openmetrics: bool,
}

impl Metrics {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let open = |name: &PathBuf| Options::new().read_only().open(name).map_err(Failure::from);
        let stores = self.stores.iter().map(open).collect::<Result<Vec<Store>, Failure>>()?;
        let names: Vec<String> = stores.iter().map(name_of).collect();
        let named: Vec<(String, &Store)> = stores
            .iter()
            .zip(&names)
            .map(|(store, name)| {
                let is_alone = names.iter().filter(|other| *other == name).count() == 1;
                (if is_alone { name.clone() } else { store.path().display().to_string() }, store)
            })
            .collect();
        let form = if self.openmetrics { Form::OpenMetrics } else { Form::Prometheus };
        let mut output = Output::new();
        output.raw(of_stores(&named, form).as_bytes())?;
        output.finish()
    }
}
