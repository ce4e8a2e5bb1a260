//! The list of stores.

use super::{cut, visible, Theme};
use crate::top::model::{Model, Shown};
use crate::top::number::{bytes, percent, rate};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::Frame;

/// Columns besides the name.
const FIXED: usize = 66;

/// Draws it.
pub fn draw(frame: &mut Frame, area: Rect, model: &Model, theme: &Theme) {
    let listed = model.listed_stores();
    let width = (area.width as usize).saturating_sub(FIXED).clamp(10, 40);
    let head = format!(
        "{:<width$} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}  {}",
        "STORE", "KEYS", "TAKES", "READ/s", "HIT", "WRITE/s", "WAIT/s", "PROC", "STATE"
    );
    let mut lines = vec![Line::styled(head, theme.heading())];
    if listed.is_empty() {
        let text = if model.stores.is_empty() {
            "There is no store in the namespace folder."
        } else {
            "No store passes the filter."
        };
        lines.push(Line::raw(text));
    }
    for i in visible(listed.len(), model.chosen, area.height as usize - 1) {
        let (text, is_alarm) = line(listed[i], width);
        let style = if is_alarm { theme.alarm() } else { Style::new() };
        let style = if i == model.chosen.min(listed.len() - 1) { style.patch(theme.chosen()) } else { style };
        lines.push(Line::styled(text, style));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn line(shown: &Shown, width: usize) -> (String, bool) {
    let (now, total) = (&shown.now, &shown.rates.total);
    let stuck = now.stuck_holders().count();
    let mut states = Vec::new();
    if stuck != 0 {
        states.push(format!("{stuck} STUCK"));
    }
    if now.poisoned {
        states.push("FLUSH FAILED".to_string());
    }
    if now.no_space_since_ms != 0 {
        states.push("no space".to_string());
    }
    if let Some(replica) = &now.replica {
        states.push(format!("replica, lag {}", replica.lag()));
    }
    if now.feed.is_some() {
        states.push(format!("feed {}/s", rate(shown.rates.feed)));
    }
    if now.backup_pid.is_some() {
        states.push("backup".to_string());
    }
    let text = format!(
        "{:<width$} {:>6} {:>6} {:>6} {:>6} {:>7} {:>6} {:>5}  {}",
        cut(&now.name(), width),
        rate(now.items as f64),
        bytes(now.memory.allocated),
        rate(total.reads()),
        percent(total.hit_ratio()),
        rate(total.sets + total.deletes),
        rate(total.lock_waits),
        now.processes.len(),
        states.join(", ")
    );
    (text, stuck != 0 || now.poisoned || now.no_space_since_ms != 0)
}
