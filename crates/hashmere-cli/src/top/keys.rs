//! What keys do.

use super::model::{Model, Sort};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It does.
    Go,
    /// The user has seen enough.
    Quit,
}

/// The keys, for the screen that explains them.
pub const HELP: [(&str, &str); 9] = [
    ("up down j k", "choose a line"),
    ("enter", "look into the store or process"),
    ("esc backspace", "back"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "filter by a part of the name, command or pid; esc takes it off"),
    ("p space", "pause, go on"),
    ("h ?", "this help"),
    ("q ctrl-c", "quit"),
];

/// Does what a key means.
pub fn apply(model: &mut Model, key: KeyEvent) -> Then {
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        return Then::Quit;
    }
    if model.is_typing {
        type_filter(model, key.code);
        return Then::Go;
    }
    if model.is_help && key.code != KeyCode::Char('q') {
        model.is_help = false;
        return Then::Go;
    }
    let last = model.lines().saturating_sub(1);
    match key.code {
        KeyCode::Char('q') => return Then::Quit,
        KeyCode::Char('h' | '?') => model.is_help = true,
        KeyCode::Char('p' | ' ') => model.paused = !model.paused,
        KeyCode::Char('s') => {
            let at = Sort::ALL.iter().position(|sort| *sort == model.sort).unwrap_or(0);
            model.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
        }
        KeyCode::Char('r') => model.reversed = !model.reversed,
        KeyCode::Char('/') => model.is_typing = true,
        KeyCode::Down | KeyCode::Char('j') => model.chosen = (model.chosen + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => model.chosen = model.chosen.saturating_sub(1),
        KeyCode::Home => model.chosen = 0,
        KeyCode::End => model.chosen = last,
        KeyCode::Enter | KeyCode::Right => model.enter(),
        KeyCode::Esc if !model.filter.is_empty() => model.filter.clear(),
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => {
            model.leave();
        }
        _ => {}
    }
    Then::Go
}

fn type_filter(model: &mut Model, key: KeyCode) {
    model.chosen = 0;
    match key {
        KeyCode::Enter => model.is_typing = false,
        KeyCode::Esc => {
            model.is_typing = false;
            model.filter.clear();
        }
        KeyCode::Backspace => {
            model.filter.pop();
        }
        KeyCode::Char(c) => model.filter.push(c),
        _ => {}
    }
}
