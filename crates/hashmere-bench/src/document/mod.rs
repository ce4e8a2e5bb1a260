//! `docs/performance.md` and its plots, written from the results of a run. The page is never edited by hand: a test
//! holds it against the results beside it.

mod page;
pub mod plot;

use crate::results::Results;
use crate::Outcome;
use std::fs;
use std::path::Path;

/// Runs `document RESULTS FOLDER`: writes `performance.md` into the folder, and `performance/*.svg`.
pub fn main(arguments: &[String]) -> Outcome {
    let [results, folder] = arguments else { return Err(crate::USAGE.into()) };
    let (results, folder) = (Results::read(results.as_ref())?, Path::new(folder));
    if results.quick {
        return Err("these figures are of a smoke test: they mean nothing, and are not put into documents".into());
    }
    fs::create_dir_all(folder.join("performance"))?;
    for (name, text) in files(&results) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// All files, each with its content.
fn files(results: &Results) -> Vec<(String, String)> {
    let plots = page::plots(results);
    let page = page::markdown(results, &plots);
    let plots = plots.into_iter().map(|(name, plot)| (format!("performance/{name}.svg"), plot.svg()));
    plots.chain([("performance.md".to_string(), page)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents in the repository are what the results in the repository say.
    #[test]
    fn the_page_is_that_of_the_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let results = Results::read(&root.join("bench/results/latest.json")).unwrap();
        for (name, text) in files(&results) {
            let there = fs::read_to_string(root.join("docs").join(&name)).unwrap_or_default();
            assert!(there == text, "docs/{name} is not what bench/document writes");
        }
    }
}
