//! Draws the model. Letters distinguish everything, so that no colour is needed to read it.

mod process;
mod segments;
mod store;
mod stores;

use super::keys::HELP;
use super::model::{Model, Screen};
use super::number::rate;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use ratatui::Frame;

/// Colours, or none.
pub struct Theme {
    has_colours: bool,
}

impl Theme {
    /// With colours.
    #[cfg(test)]
    pub const COLOURS: Theme = Theme { has_colours: true };
    /// Without.
    #[cfg(test)]
    pub const PLAIN: Theme = Theme { has_colours: false };

    /// As the user wants it: the variable `NO_COLOR`, if it is not empty, asks for none.
    pub fn of_environment() -> Theme {
        Theme { has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.has_colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn heading(&self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    fn alarm(&self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn chosen(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

/// Below this nothing can be read.
const LEAST: (u16, u16) = (60, 16);

/// Draws it all.
pub fn draw(frame: &mut Frame, model: &Model, theme: &Theme) {
    let area = frame.area();
    if (area.width, area.height) < LEAST || area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("{}x{}: too small, {}x{} is the least", area.width, area.height, LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(area);
    frame.render_widget(title(model, theme), head);
    match (&model.screen, model.store()) {
        (Screen::Stores, _) => stores::draw(frame, body, model, theme),
        (Screen::Store(_), Some(store)) => store::draw(frame, body, model, store, theme),
        (Screen::Process(_, pid, name), Some(store)) => process::draw(frame, body, store, (*pid, name), theme),
        (_, None) => frame.render_widget(Paragraph::new("The store was removed. Press esc."), body),
    }
    frame.render_widget(footer(model, theme), foot);
    if model.is_help {
        help(frame, area, theme);
    }
}

fn title<'a>(model: &Model, theme: &Theme) -> Line<'a> {
    let mut spans = vec![Span::styled("hashmere top", theme.heading())];
    match model.store() {
        Some(store) => {
            let now = &store.now;
            let mode = format!("{:?}", now.mode).to_lowercase();
            let durable = if now.durable { ", durable" } else { "" };
            spans.push(Span::styled(format!("  {}", now.name()), Style::new().add_modifier(Modifier::BOLD)));
            spans.push(Span::raw(format!("  {mode}{durable}, {}", crate::text::plural(now.items, "key"))));
            if store.rates.items.abs() >= 0.05 {
                spans.push(Span::raw(format!(
                    " ({}{}/s)",
                    if store.rates.items > 0.0 { "+" } else { "" },
                    rate(store.rates.items)
                )));
            }
        }
        None => spans.push(Span::raw(format!("  {}", crate::text::plural(model.stores.len() as u64, "store")))),
    }
    spans.push(Span::raw(format!("  every {}", crate::text::duration(model.interval))));
    if model.paused {
        spans.push(Span::styled("  PAUSED", theme.alarm()));
    }
    Line::from(spans)
}

fn footer<'a>(model: &Model, theme: &Theme) -> Line<'a> {
    if model.is_typing {
        return Line::styled(format!("filter: {}_  (enter: done, esc: none)", model.filter), theme.heading());
    }
    let mut text = "q quit  h help  p pause".to_string();
    if !matches!(model.screen, Screen::Process(..)) {
        let order = if model.reversed { ", reversed" } else { "" };
        text.push_str(&format!("  s sort: {}{order}  r reverse  / filter", model.sort.name()));
        if !model.filter.is_empty() {
            text.push_str(&format!(": {}", model.filter));
        }
        text.push_str("  enter");
    }
    if model.screen != Screen::Stores {
        text.push_str("  esc");
    }
    Line::styled(text, theme.colour(Color::DarkGray))
}

fn help(frame: &mut Frame, area: Rect, theme: &Theme) {
    let lines: Vec<Line> = HELP
        .iter()
        .map(|(keys, text)| Line::from(vec![Span::styled(format!(" {keys:<15}"), theme.heading()), Span::raw(*text)]))
        .collect();
    let (width, height) = (60.min(area.width), lines.len() as u16 + 2);
    let place = Rect::new(
        (area.width - width) / 2,
        (area.height - height.min(area.height)) / 2,
        width,
        height.min(area.height),
    );
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::ALL).title("Keys")), place);
}

/// The part of a list that is seen, so that the chosen line is in it.
fn visible(lines: usize, chosen: usize, height: usize) -> std::ops::Range<usize> {
    let height = height.max(1);
    let chosen = chosen.min(lines.saturating_sub(1));
    let start = chosen.saturating_sub(height - 1);
    start..lines.min(start + height)
}

/// At most `columns` columns of a text, with a mark where it was cut.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    let head: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{head}>")
}

#[cfg(test)]
mod tests;
