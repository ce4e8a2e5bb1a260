//! How the reader shows what it read: a picture that is redrawn on a terminal, plain lines elsewhere.

use crate::failure::{Failure, Outcome};
use crate::text::{grouped, size};
use console::{style, truncate_str, Term};

/// What is shown.
pub struct Frame {
    /// Since the start.
    pub seconds: f64,
    /// Files of the input.
    pub files: u64,
    /// Bytes of the input.
    pub bytes_total: u64,
    /// Bytes done.
    pub bytes: u64,
    /// Words counted.
    pub words: u64,
    /// Different words.
    pub distinct: u64,
    /// Updates of words in a second.
    pub updates_per_second: f64,
    /// What each slot does: pid (or a word such as `killed`), chunk, path, with tabs between.
    pub slots: Vec<String>,
    /// The most frequent words.
    pub top: Vec<(String, u64)>,
}

impl Frame {
    fn part(&self) -> f64 {
        if self.bytes_total == 0 {
            1.0
        } else {
            self.bytes as f64 / self.bytes_total as f64
        }
    }
}

/// Standard output.
pub struct Screen {
    term: Term,
    /// Lines of the picture that is shown now.
    drawn: usize,
    events: Vec<String>,
}

impl Screen {
    /// Looks whether standard output is a terminal.
    pub fn new() -> Screen {
        Screen { term: Term::stdout(), drawn: 0, events: Vec::new() }
    }

    /// Whether it is.
    pub fn is_terminal(&self) -> bool {
        self.term.is_term()
    }

    /// Shows a frame and new messages.
    pub fn show(&mut self, frame: &Frame, events: &[String]) -> Outcome {
        if !self.is_terminal() {
            self.tell(events)?;
            return self.write(&(plain(frame) + "\n"));
        }
        self.events.extend_from_slice(events);
        let width = usize::from(self.term.size().1).max(20);
        let mut lines = picture(frame, width);
        lines.push(String::new());
        lines.extend(self.events.iter().map(|event| format!("  {}", style(event).yellow())));
        let mut text = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        for line in &lines {
            text.push_str(&truncate_str(line, width - 1, "…"));
            text.push_str("\x1b[K\n");
        }
        self.drawn = lines.len();
        self.write(&text)
    }

    /// Shows new messages between two frames; a terminal shows them with the next frame.
    pub fn tell(&mut self, events: &[String]) -> Outcome {
        if self.is_terminal() {
            self.events.extend_from_slice(events);
            return Ok(());
        }
        for event in events {
            self.write(&format!("  {event}\n"))?;
        }
        Ok(())
    }

    fn write(&self, text: &str) -> Outcome {
        self.term
            .write_str(text)
            .and_then(|()| self.term.flush())
            .map_err(|e| Failure::io("write to standard output", &e))
    }
}

fn plain(frame: &Frame) -> String {
    let top: Vec<String> =
        frame.top.iter().take(3).map(|(word, total)| format!("{word} {}", grouped(*total))).collect();
    format!(
        "{:6.1} s  {:3.0} %  {} words, {} distinct, {} updates/s  {}",
        frame.seconds,
        frame.part() * 100.0,
        grouped(frame.words),
        grouped(frame.distinct),
        grouped(frame.updates_per_second as u64),
        top.join(", ")
    )
}

fn picture(frame: &Frame, width: usize) -> Vec<String> {
    let slots = frame.slots.len();
    let title = format!(
        "{slots} processes count the words of {} files ({}) into one shared table",
        grouped(frame.files),
        size(frame.bytes_total)
    );
    let mut lines = vec![
        format!("  {}", style(title).bold()),
        String::new(),
        format!(
            "  {} {:3.0} %  {:.1} s",
            bar(frame.part(), width.saturating_sub(24).min(60)),
            frame.part() * 100.0,
            frame.seconds
        ),
        format!(
            "  {} words   {} distinct   {} atomic updates a second",
            style(grouped(frame.words)).bold(),
            style(grouped(frame.distinct)).bold(),
            style(grouped(frame.updates_per_second as u64)).bold()
        ),
        String::new(),
    ];
    lines.extend(frame.slots.iter().enumerate().map(|(slot, text)| slot_line(slot, text)));
    lines.push(String::new());
    let most = frame.top.first().map_or(1, |(_, total)| *total).max(1);
    for (word, total) in &frame.top {
        let blocks = ((*total as f64 / most as f64) * 30.0).round() as usize;
        lines.push(format!("  {word:<16} {:<30} {:>9}", style("▪".repeat(blocks)).cyan(), grouped(*total)));
    }
    lines
}

fn bar(part: f64, width: usize) -> String {
    let full = ((part * width as f64).round() as usize).min(width);
    format!("{}{}", style("█".repeat(full)).green(), style("░".repeat(width - full)).dim())
}

fn slot_line(slot: usize, text: &str) -> String {
    let mut fields = text.splitn(3, '\t');
    let (who, chunk, path) =
        (fields.next().unwrap_or_default(), fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let slot = slot + 1;
    match who {
        "" => format!("  worker {slot}  {}", style("starting").dim()),
        "done" => format!("  worker {slot}  {}", style("✓ nothing left to do").green()),
        "killed" => format!("  worker {slot}  {}", style(format!("✗ killed in chunk {chunk}")).red().bold()),
        pid => format!("  worker {slot}  {} pid {pid:<8} chunk {chunk:<5} {}", style("●").green(), style(path).dim()),
    }
}
