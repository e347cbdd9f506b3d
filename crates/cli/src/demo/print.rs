//! How the demo looks.

use std::io::IsTerminal;

use crate::output::say;
use crate::people::model::Row;
use crate::people::text::{one_line, readable, wrapped};

/// Columns of a line: as many as the terminal has, within these. Longer lines are hard to read.
const WIDTH: std::ops::RangeInclusive<usize> = 40..=96;
/// Columns of a name.
const NAME: usize = 12;

/// Prints the demo's lines, in colours where somebody looks at them.
pub(super) struct Print {
    colours: bool,
    width: usize,
}

impl Print {
    pub(super) fn new() -> Self {
        let plain = crate::environment("NO_COLOR").is_some_and(|value| !value.is_empty());
        let terminal = std::io::stdout().is_terminal();
        let columns = if terminal { ratatui::crossterm::terminal::size().ok() } else { None };
        let width =
            columns.map_or(*WIDTH.end(), |(columns, _)| usize::from(columns).clamp(*WIDTH.start(), *WIDTH.end()));
        Self { colours: terminal && !plain, width }
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Begins a part.
    pub(super) fn heading(&self, text: &str) {
        say(&format!("\n{}", self.styled("1", text)));
    }

    /// A word of the demo itself.
    pub(super) fn note(&self, text: &str) {
        for line in wrapped(text, self.width - 2) {
            say(&format!("  {}", self.styled("2", &line)));
        }
    }

    /// One of several things to know.
    pub(super) fn point(&self, text: &str) {
        let mut mark = "- ";
        for line in wrapped(text, self.width - 4) {
            say(&format!("  {mark}{line}"));
            mark = "  ";
        }
    }

    /// A line of somebody in the room.
    pub(super) fn row(&self, row: &Row, person: bool) {
        let name = row.sender_name.as_deref().unwrap_or("somebody");
        let name = one_line(if person { "you" } else { name }, NAME - 1);
        let name = format!("{name:<NAME$}");
        if !row.is_text() {
            let kind = row.message_type.replace('_', " ");
            let line = one_line(&format!("· {kind}: {}", readable(row)), self.width - NAME - 2);
            return say(&format!("  {}{}", self.styled("2", &name), self.styled("2", &line)));
        }
        let colour = if person { "1;36" } else { "1;32" };
        let mut name = self.styled(colour, &name);
        for line in wrapped(&readable(row), self.width - NAME - 2) {
            say(&format!("  {name}{line}"));
            name = " ".repeat(NAME);
        }
    }

    /// What the ledger says.
    pub(super) fn ledger(&self, text: &str) {
        for line in text.lines() {
            let bare = line.trim_start();
            let indent = line.len() - bare.len();
            let mut space = " ".repeat(indent);
            for part in wrapped(bare, self.width - 6 - indent) {
                say(&format!("  {} {space}{part}", self.styled("33", "│")));
                space = " ".repeat(indent + 2);
            }
        }
    }
}
