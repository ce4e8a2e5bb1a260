//! Memory as a bar, segments as a map. Each use has a letter, and a colour where there are colours.

use super::Theme;
use crate::top::number::bytes;
use hashmere_observe::{Memory, SegmentUse, Segments};
use ratatui::style::Color;
use ratatui::text::{Line, Span};

const PARTS: [(char, &str, Color); 6] = [
    ('#', "live", Color::Green),
    ('x', "dead", Color::Red),
    ('i', "index", Color::Blue),
    ('r', "regions", Color::Magenta),
    ('-', "other", Color::Yellow),
    ('.', "free", Color::DarkGray),
];

fn parts(memory: &Memory) -> [u64; 6] {
    [memory.live, memory.dead, memory.index, memory.regions, memory.other, memory.free]
}

/// The bar, `width` columns wide with its brackets.
pub fn bar<'a>(memory: &Memory, width: usize, theme: &Theme) -> Line<'a> {
    let inner = width.saturating_sub(2);
    let total = memory.total.max(1) as f64;
    let mut spans = vec![Span::raw("[")];
    let (mut so_far, mut drawn) = (0u64, 0);
    for (part, (letter, _, colour)) in parts(memory).into_iter().zip(PARTS) {
        so_far += part;
        // Ends are rounded, not lengths: so the bar is as long as it should be.
        let end = (so_far as f64 / total * inner as f64).round() as usize;
        spans.push(Span::styled(letter.to_string().repeat(end.saturating_sub(drawn)), theme.colour(colour)));
        drawn = drawn.max(end);
    }
    spans.push(Span::raw(" ".repeat(inner.saturating_sub(drawn))));
    spans.push(Span::raw("]"));
    Line::from(spans)
}

/// What the letters of the bar mean, with bytes.
pub fn bar_legend<'a>(memory: &Memory, theme: &Theme) -> Line<'a> {
    let mut spans = Vec::new();
    for (part, (letter, name, colour)) in parts(memory).into_iter().zip(PARTS).filter(|(part, _)| *part != 0) {
        spans.push(Span::styled(letter.to_string(), theme.colour(colour)));
        spans.push(Span::raw(format!(" {name} {}  ", bytes(part))));
    }
    Line::from(spans)
}

fn look(use_: SegmentUse) -> (char, Color) {
    match use_ {
        SegmentUse::Open => ('o', Color::LightGreen),
        SegmentUse::Partial => ('p', Color::Green),
        SegmentUse::Sealed => ('#', Color::Green),
        SegmentUse::Cleaning => ('c', Color::Yellow),
        SegmentUse::PendingFree => ('w', Color::LightYellow),
        SegmentUse::Large => ('L', Color::Cyan),
        SegmentUse::Index => ('i', Color::Blue),
        SegmentUse::Region => ('r', Color::Magenta),
        SegmentUse::Free => ('.', Color::DarkGray),
        SegmentUse::Offline => ('_', Color::DarkGray),
    }
}

/// The map in `rows` rows of `width` columns, in the order of the file.
pub fn map<'a>(segments: &Segments, width: usize, rows: usize, theme: &Theme) -> Vec<Line<'a>> {
    let cells = segments.condensed(width * rows);
    let row = |cells: &[SegmentUse]| {
        Line::from(
            cells
                .chunk_by(|a, b| a == b)
                .map(|same| {
                    let (letter, colour) = look(same[0]);
                    Span::styled(letter.to_string().repeat(same.len()), theme.colour(colour))
                })
                .collect::<Vec<_>>(),
        )
    };
    cells.chunks(width.max(1)).map(row).collect()
}

/// What the letters of the map mean, for those uses that there are.
pub fn map_legend<'a>(segments: &Segments, theme: &Theme) -> Line<'a> {
    let mut spans = vec![Span::raw(format!("{} segments of {}:", segments.map.len(), bytes(segments.bytes)))];
    for use_ in SegmentUse::ALL {
        let count = segments.count(use_);
        if count != 0 {
            let (letter, colour) = look(use_);
            spans.push(Span::styled(format!(" {letter}"), theme.colour(colour)));
            spans.push(Span::raw(format!(" {} {count}", use_.name().replace('_', " "))));
        }
    }
    Line::from(spans)
}
