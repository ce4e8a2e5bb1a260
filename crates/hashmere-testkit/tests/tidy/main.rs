//! Promise: the rules of the house that a text can break are held. Each file here is one rule; it names what breaks
//! the rule by file and line, and says what to do instead.
//!
//! A rule that the code does not follow everywhere yet has a list of exceptions. It only shrinks: an entry that is no
//! longer needed fails the test as well.

// The lint spares functions marked as tests, but not what they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod calls;
mod crates;
mod cycles;
mod length;
mod source;
mod sync;
mod width;
mod words;

/// What breaks a rule, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// A file, with a line if there is one.
    place: String,
    /// What is wrong there, and what to do.
    text: String,
}

impl Problem {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Problem {
        Problem { place: place.into(), text: text.into() }
    }

    /// On a line of a file, counted from 0.
    fn on_line(path: &str, line: usize, text: impl Into<String>) -> Problem {
        Problem::new(format!("{path}:{}", line + 1), text)
    }
}

/// Fails with all of them.
#[track_caller]
fn demand_none(problems: &[Problem]) {
    let lines: Vec<_> = problems.iter().map(|problem| format!("{}: {}", problem.place, problem.text)).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), lines.join("\n"));
}

/// For the tests of the rules: the places of what was found.
fn places(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.place.as_str()).collect()
}
