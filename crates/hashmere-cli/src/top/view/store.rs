//! One store: totals, memory, segments, what is in it besides keys, processes.

use super::{cut, segments, visible, Theme};
use crate::top::model::{Model, Shown};
use crate::top::number::{bytes, percent, rate};
use crate::top::objects::{objects, stuck};
use hashmere_observe::{OperationRates, Process, ProcessState};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::Frame;

/// Columns of a process besides its command.
const FIXED: usize = 61;

/// Draws it.
pub fn draw(frame: &mut Frame, area: Rect, model: &Model, store: &Shown, theme: &Theme) {
    let now = &store.now;
    let width = area.width as usize;
    let objects = objects(now, &store.rates);
    // Of a small screen the map takes two lines, of a large one a sixth.
    let map_rows = (area.height as usize / 6).max(2).min(now.segments.map.len().div_ceil(width.max(1)).max(1));
    let object_rows = objects.len().min((area.height as usize / 5).max(2));
    let totals = totals(store);
    let [figures, memory, map, list, processes] = Layout::vertical([
        Constraint::Length(totals.len() as u16),
        Constraint::Length(2),
        Constraint::Length(map_rows as u16 + 1),
        Constraint::Length(object_rows as u16),
        Constraint::Min(0),
    ])
    .areas(area);
    let alarms =
        totals.into_iter().map(|(text, alarm)| Line::styled(text, if alarm { theme.alarm() } else { Style::new() }));
    frame.render_widget(Paragraph::new(alarms.collect::<Vec<_>>()), figures);
    let bar = vec![segments::bar(&now.memory, width, theme), segments::bar_legend(&now.memory, theme)];
    frame.render_widget(Paragraph::new(bar), memory);
    let mut lines = segments::map(&now.segments, width, map_rows, theme);
    lines.push(segments::map_legend(&now.segments, theme));
    frame.render_widget(Paragraph::new(lines), map);
    let mut lines: Vec<Line> = objects.iter().take(object_rows).map(|text| Line::raw(cut(text, width))).collect();
    if objects.len() > object_rows {
        if let Some(last) = lines.last_mut() {
            *last = Line::raw(format!("... and {} more: --once shows all", objects.len() - object_rows + 1));
        }
    }
    frame.render_widget(Paragraph::new(lines), list);
    list_processes(frame, processes, model, store, theme);
}

/// The lines above the bar, and whether one is an alarm.
fn totals(store: &Shown) -> Vec<(String, bool)> {
    let (now, total) = (&store.now, &store.rates.total);
    let mut lines = vec![
        (
            format!(
                "reads {}/s, {} hit   sets {}/s   deletes {}/s   lock waits {}/s",
                rate(total.reads()),
                percent(total.hit_ratio()),
                rate(total.sets),
                rate(total.deletes),
                rate(total.lock_waits)
            ),
            false,
        ),
        (
            format!(
                "evicted {}/s  expired {}/s  cleaned {}/s  moved {}/s  splits {}/s  taken over {}",
                rate(total.evicted),
                rate(total.expired),
                rate(total.cleaned),
                rate(total.moved),
                rate(total.splits),
                now.totals.takeovers
            ),
            false,
        ),
        (memory(store), false),
    ];
    if now.poisoned {
        lines.push(("A FLUSH HAS FAILED: nothing is written any more".into(), true));
    }
    if now.no_space_since_ms != 0 {
        let seconds = now.taken_ms.saturating_sub(now.no_space_since_ms) / 1000;
        lines.push((format!("NO SPACE: the file system refused memory {seconds} s ago"), true));
    }
    for process in now.stuck_holders().take(3) {
        lines.push((stuck(process), true));
    }
    lines
}

fn memory(store: &Shown) -> String {
    let memory = &store.now.memory;
    let maximum = if memory.max == 0 { "no maximum".into() } else { format!("at most {}", bytes(memory.max)) };
    let growth = store.rates.allocated;
    let grows = match growth {
        g if g >= 1.0 => format!(", grows {}/s", bytes(g as u64)),
        g if g <= -1.0 => format!(", shrinks {}/s", bytes(-g as u64)),
        _ => String::new(),
    };
    format!("memory {} taken of {}, {maximum}{grows}", bytes(memory.allocated), bytes(memory.file))
}

fn list_processes(frame: &mut Frame, area: Rect, model: &Model, store: &Shown, theme: &Theme) {
    if area.height == 0 {
        return;
    }
    let listed = model.listed_processes(store);
    let head = format!(
        "{:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>4} {:>5}  {}",
        "PID", "HIT/s", "MISS/s", "SET/s", "DEL/s", "WAIT/s", "VIEWS", "THR", "STATE", "COMMAND"
    );
    let mut lines = vec![Line::styled(head, theme.heading())];
    if listed.is_empty() {
        let none = if store.now.processes.is_empty() {
            "No process has it open for writing."
        } else {
            "No process passes the filter."
        };
        lines.push(Line::raw(none));
    }
    for i in visible(listed.len(), model.chosen, area.height as usize - 1) {
        let (process, rates) = listed[i];
        let style = if process.is_stuck_holder() { theme.alarm() } else { Style::new() };
        let style = if i == model.chosen.min(listed.len() - 1) { style.patch(theme.chosen()) } else { style };
        lines.push(Line::styled(line(process, rates, area.width as usize), style));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn line(process: &Process, rates: &OperationRates, width: usize) -> String {
    let state = match process.state {
        ProcessState::Running => "run",
        ProcessState::Stopped => "STOP",
        ProcessState::Crashed => "GONE",
        ProcessState::Alive => "alive",
    };
    format!(
        "{:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>4} {:>5}  {}",
        process.pid,
        rate(rates.hits),
        rate(rates.misses),
        rate(rates.sets),
        rate(rates.deletes),
        rate(rates.lock_waits),
        process.views(),
        process.slots.len(),
        state,
        cut(&process.command, width.saturating_sub(FIXED + 2))
    )
}
