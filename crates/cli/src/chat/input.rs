//! The line that is typed.

use bandstand_wire::ids::IdentityId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::people::mentions::{completions, unfinished};
use crate::people::model::Participant;

/// A text and a place in it.
#[derive(Debug, Default)]
pub(super) struct Input {
    text: String,
    /// In bytes, at the beginning of a character.
    cursor: usize,
    /// What Tab goes through.
    cycle: Option<Cycle>,
}

#[derive(Debug)]
struct Cycle {
    /// Where the `@` is.
    at: usize,
    labels: Vec<String>,
    next: usize,
}

impl Input {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Takes the text away.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        self.cycle = None;
        std::mem::take(&mut self.text)
    }

    /// Puts a text there, with the cursor at its end.
    pub(super) fn put(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
        self.cycle = None;
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        self.cycle = None;
    }

    /// Does what a key means for the text; the rest is not its business.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('w') if control => {
                let kept = self.before_cursor().trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.drain(kept..self.cursor);
                self.cursor = kept;
            }
            KeyCode::Char(_) if control => {}
            KeyCode::Char(character) => return self.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => {
                if let Some(previous) = self.previous() {
                    self.text.remove(previous);
                    self.cursor = previous;
                }
            }
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.previous().unwrap_or(0),
            KeyCode::Right => {
                self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
            }
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return,
        }
        self.cycle = None;
    }

    fn previous(&self) -> Option<usize> {
        self.before_cursor().char_indices().next_back().map(|(at, _)| at)
    }

    /// Completes the mention before the cursor; again, with the next one that fits.
    pub(super) fn complete(&mut self, room: &[Participant], me: IdentityId) {
        if self.cycle.is_none() {
            let Some((at, typed)) = unfinished(self.before_cursor()) else { return };
            let labels: Vec<String> = completions(room, me, typed).iter().map(|it| it.label()).collect();
            if labels.is_empty() {
                return;
            }
            self.cycle = Some(Cycle { at, labels, next: 0 });
        }
        let Some(cycle) = &mut self.cycle else { return };
        let label = format!("{} ", cycle.labels[cycle.next]);
        cycle.next = (cycle.next + 1) % cycle.labels.len();
        let at = cycle.at;
        self.text.replace_range(at..self.cursor, &label);
        self.cursor = at + label.len();
    }

    /// Whom the unfinished mention before the cursor may become.
    pub(super) fn hints(&self, room: &[Participant], me: IdentityId) -> Vec<String> {
        match unfinished(self.before_cursor()) {
            Some((_, typed)) => completions(room, me, typed).iter().map(|it| it.label()).collect(),
            None => Vec::new(),
        }
    }
}
