//! `top`: what goes on in stores, seen from outside.
//!
//! [`model`] is what is shown, [`view`] and its parts draw it, [`keys`] change it; [`plain`] and [`json`] print it.

mod json;
mod keys;
mod model;
pub(crate) mod number;
mod objects;
mod plain;
mod view;

use crate::cmd::Outcome;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;
use clap::{Args, ValueHint};
use hashmere_os::process;
use model::{Model, Target};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Show what goes on in stores: operations a second by process, memory, segments, queues, logs, feed, replica.
///
/// The files are mapped read-only, and what processes do is read from their own records in it: no server is needed, and
/// they are not slowed down. Processes that have a store open read-only have no such record and are not shown.
#[derive(Args, Debug)]
pub struct Top {
    /// Names or paths of stores (default: all in the namespace folder)
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    stores: Vec<PathBuf>,
    /// Time between two looks, for example 500ms
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// Print what one interval brought as plain text, and end
    #[arg(long)]
    once: bool,
    /// One JSON object for each store and interval, one a line
    #[arg(short, long)]
    json: bool,
}

/// Shorter intervals than this would measure the observer.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Two looks at whether the user asked to stop.
const NAP: Duration = Duration::from_millis(50);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = text::parse_duration(text)?;
    if interval < INTERVAL_MIN || interval > Duration::from_secs(3600) {
        return Err("expected a time from 100ms to 1h".into());
    }
    Ok(interval)
}

impl Top {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let is_screen = !self.once && !self.json;
        if is_screen && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
            let text =
                "top draws on a terminal, and there is none; --once prints what one interval brought, --json lines";
            return Err(Failure::Usage(text.into()));
        }
        let mut model = Model::new(Target::new(self.stores)?, self.interval)?;
        if is_screen {
            return screen(&mut model);
        }
        process::catch_stop();
        let mut output = Output::new();
        loop {
            if !nap(self.interval) {
                return output.finish();
            }
            model.refresh()?;
            for store in &model.stores {
                if self.json {
                    output.line(json::of(&store.now, &store.rates).to_string())?;
                } else {
                    plain::write(&store.now, &store.rates, &mut output)?;
                }
            }
            output.flush()?;
            if self.once {
                return output.finish();
            }
        }
    }
}

/// Sleeps; `false`: the user asked to stop.
fn nap(time: Duration) -> bool {
    let end = Instant::now() + time;
    loop {
        if process::is_asked_to_stop() {
            return false;
        }
        match end.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => std::thread::sleep(left.min(NAP)),
            _ => return true,
        }
    }
}

fn screen(model: &mut Model) -> Outcome {
    // It puts the terminal back as it was also when this process panics.
    let mut terminal = ratatui::try_init().map_err(|e| Failure::io("prepare the terminal", &e))?;
    let done = interact(model, &mut terminal);
    ratatui::restore();
    done
}

fn interact(model: &mut Model, terminal: &mut DefaultTerminal) -> Outcome {
    let theme = view::Theme::of_environment();
    let failed = |e: std::io::Error| Failure::io("use the terminal", &e);
    let mut next = Instant::now() + model.interval;
    loop {
        terminal.draw(|frame| view::draw(frame, model, &theme)).map_err(failed)?;
        if event::poll(next.saturating_duration_since(Instant::now())).map_err(failed)? {
            if let Event::Key(key) = event::read().map_err(failed)? {
                let is_press = key.kind != KeyEventKind::Release;
                if is_press && keys::apply(model, key) == keys::Then::Quit {
                    return Ok(());
                }
            }
        }
        if Instant::now() >= next {
            if !model.paused {
                model.refresh()?;
            }
            next = Instant::now() + model.interval;
        }
    }
}
