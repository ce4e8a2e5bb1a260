//! One process in detail.

use super::{cut, Theme};
use crate::text::grouped;
use crate::top::model::Shown;
use crate::top::number::rate;
use hashmere_observe::{Figures, OperationRates, PinActivity, Process, SegmentUse};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

/// Draws it.
pub fn draw(frame: &mut Frame, area: Rect, store: &Shown, (pid, name): (u32, &str), theme: &Theme) {
    let found = store.now.processes.iter().position(|p| p.pid == pid && p.name == name);
    let Some(at) = found else {
        frame.render_widget(Paragraph::new("The process has closed the store. Press esc."), area);
        return;
    };
    let process = &store.now.processes[at];
    let rates = store.rates.processes.get(at).copied().unwrap_or_default();
    let width = (area.width as usize).saturating_sub(12);
    let seconds = store.now.taken_ms.saturating_sub(process.since_ms) / 1000;
    let mut lines = vec![
        pair("pid", format!("{}, {}", process.pid, process.state.name()), theme),
        pair("command", cut(&process.command, width), theme),
        pair("open for", crate::text::duration(std::time::Duration::from_secs(seconds)), theme),
        pair("threads", format!("{} (client slots {})", process.slots.len(), slots(process, width)), theme),
        pair("holds", holds(process), theme),
        pair("pins", pins(process), theme),
        Line::raw(""),
        Line::styled(format!("{:<12} {:>12} {:>20}", "", "A SECOND", "SINCE THE SLOTS WERE"), theme.heading()),
        Line::styled(format!("{:<12} {:>12} {:>20}", "", "", "FIRST USED"), theme.heading()),
    ];
    for (name, of_rates, of_figures) in FIGURES {
        lines.push(Line::raw(format!(
            "{name:<12} {:>12} {:>20}",
            rate(of_rates(&rates)),
            grouped(of_figures(&process.figures))
        )));
    }
    if !process.pins.is_empty() {
        lines.push(Line::raw(""));
        lines.push(Line::styled("SEGMENT      VIEWS  USED AS", theme.heading()));
        lines.extend(process.pins.iter().map(|pin| Line::raw(pin_line(pin, store))));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

type Figure = (&'static str, fn(&OperationRates) -> f64, fn(&Figures) -> u64);

const FIGURES: [Figure; 12] = [
    ("hits", |r| r.hits, |f| f.hits),
    ("misses", |r| r.misses, |f| f.misses),
    ("sets", |r| r.sets, |f| f.sets),
    ("deletes", |r| r.deletes, |f| f.deletes),
    ("lock waits", |r| r.lock_waits, |f| f.lock_waits),
    ("taken over", |r| r.takeovers, |f| f.takeovers),
    ("evicted", |r| r.evicted, |f| f.evicted),
    ("expired", |r| r.expired, |f| f.expired),
    ("cleaned", |r| r.cleaned, |f| f.cleaned),
    ("moved", |r| r.moved, |f| f.moved),
    ("splits", |r| r.splits, |f| f.splits),
    ("retries", |r| r.retries, |f| f.retries),
];

fn pair<'a>(name: &'a str, value: String, theme: &Theme) -> Line<'a> {
    Line::from(vec![Span::styled(format!("{name:<12}"), theme.heading()), Span::raw(value)])
}

fn slots(process: &Process, width: usize) -> String {
    let all: Vec<String> = process.slots.iter().map(u32::to_string).collect();
    cut(&all.join(" "), width.saturating_sub(24))
}

fn holds(process: &Process) -> String {
    format!(
        "{}, {}; {} under way",
        crate::text::plural(process.locks, "lock"),
        crate::text::plural(process.transactions, "transaction"),
        crate::text::plural(process.busy, "operation")
    )
}

fn pins(process: &Process) -> String {
    format!(
        "{} on {}, of which {} would be free",
        crate::text::plural(process.views(), "view"),
        crate::text::plural(process.pins.len() as u64, "segment"),
        process.held_back()
    )
}

fn pin_line(pin: &PinActivity, store: &Shown) -> String {
    let use_ = store.now.segments.map.get(pin.segment as usize).map_or("-", |use_| use_.name());
    let held = if use_ == SegmentUse::PendingFree.name() { ": held back" } else { "" };
    format!("{:>7} {:>10}  {}{held}", pin.segment, pin.views, use_.replace('_', " "))
}
