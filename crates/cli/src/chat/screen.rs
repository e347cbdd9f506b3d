//! What there is to see, and what keys and happenings do to it. It knows no terminal and no server.

use std::collections::{HashMap, HashSet};

use bandstand_wire::ids::{IdentityId, MessageId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::input::Input;
use crate::people::client::row_of;
use crate::people::feed::Happening;
use crate::people::model::{Delivery, Participant, Row, Working};

/// Something that the server must be asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Post this.
    Send(String),
    /// Read what is before this row.
    Older(MessageId),
    /// What became of this message?
    Ask(MessageId),
    /// End.
    Quit,
}

/// What is known of the rows before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// There are some.
    More,
    /// They are being read.
    Coming,
    /// There are none.
    None,
}

/// The whole of it.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) me: IdentityId,
    pub(super) title: String,
    pub(super) participants: Vec<Participant>,
    pub(super) working: Vec<Working>,
    /// Oldest first.
    pub(super) rows: Vec<Row>,
    known: HashSet<MessageId>,
    pub(super) deliveries: HashMap<MessageId, Vec<Delivery>>,
    pub(super) input: Input,
    /// Whether events are shown with all their lines.
    pub(super) unfolded: bool,
    /// Rows of the screen between the newest line and the lowest one that is seen.
    pub(super) up: usize,
    pub(super) past: Past,
    /// Why there is no connection, while there is none.
    pub(super) lost: Option<String>,
    /// Something to tell, until the next key.
    pub(super) notice: Option<String>,
    /// Columns and rows for the conversation, and how many rows it has, when it was drawn last.
    pub(super) seen: Seen,
}

/// What was drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) columns: usize,
    pub(super) height: usize,
    pub(super) lines: usize,
}

impl Screen {
    pub(super) fn new(me: IdentityId, title: String, participants: Vec<Participant>) -> Self {
        Self {
            me,
            title,
            participants,
            working: Vec::new(),
            rows: Vec::new(),
            known: HashSet::new(),
            deliveries: HashMap::new(),
            input: Input::default(),
            unfolded: false,
            up: 0,
            past: Past::None,
            lost: None,
            notice: None,
            seen: Seen::default(),
        }
    }

    /// Puts rows, oldest first, before those that are there.
    pub(super) fn older(&mut self, rows: Vec<Row>, more: bool) {
        self.past = if more { Past::More } else { Past::None };
        let mut fresh: Vec<Row> = rows.into_iter().filter(|row| self.known.insert(row.id)).collect();
        fresh.append(&mut self.rows);
        self.rows = fresh;
    }

    /// They could not be read.
    pub(super) fn not_older(&mut self, why: &str) {
        self.past = Past::More;
        self.notice(why.to_owned());
    }

    pub(super) fn notice(&mut self, text: String) {
        self.notice = Some(text);
    }

    pub(super) fn delivered(&mut self, message: MessageId, deliveries: Vec<Delivery>) {
        self.deliveries.insert(message, deliveries);
    }

    /// A message was posted: one wants to see it.
    pub(super) fn sent(&mut self) {
        self.up = 0;
    }

    /// It was not; what was typed comes back, unless something else is typed already.
    pub(super) fn not_sent(&mut self, text: &str, why: &str) {
        if self.input.text().is_empty() {
            self.input.put(text);
        }
        self.notice(format!("not sent: {why}"));
    }

    /// The newest own messages.
    pub(super) fn own_newest(&self, count: usize) -> Vec<MessageId> {
        let own = self.rows.iter().rev().filter(|row| row.is_text() && row.sender_id == self.me);
        own.take(count).map(|row| row.id).collect()
    }

    /// Own messages of which it is not known that they came to an end.
    fn open_own(&self) -> Vec<Action> {
        let done = |id: &MessageId| {
            let ended = |it: &Delivery| matches!(it.verdict.as_str(), "done" | "ended");
            self.deliveries.get(id).is_some_and(|all| all.iter().all(ended))
        };
        self.own_newest(20).into_iter().filter(|id| !done(id)).map(Action::Ask).collect()
    }

    pub(super) fn paste(&mut self, text: &str) {
        // A line break would send half of it.
        self.input.insert(&text.replace(['\n', '\r', '\t'], " "));
    }

    /// What a key does.
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Action> {
        self.notice = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return vec![Action::Quit],
            KeyCode::Char('d') if control && self.input.text().is_empty() => return vec![Action::Quit],
            KeyCode::Char('o') if control => self.unfolded = !self.unfolded,
            KeyCode::Tab => self.input.complete(&self.participants, self.me),
            KeyCode::Enter => {
                if !self.input.text().trim().is_empty() {
                    return vec![Action::Send(self.input.take().trim().to_owned())];
                }
            }
            KeyCode::PageUp => return self.page_up(),
            KeyCode::PageDown => self.up = self.up.saturating_sub(self.step()),
            KeyCode::Esc => self.up = 0,
            _ => self.input.key(key),
        }
        Vec::new()
    }

    fn step(&self) -> usize {
        self.seen.height.saturating_sub(2).max(1)
    }

    fn page_up(&mut self) -> Vec<Action> {
        let top = self.seen.lines.saturating_sub(self.seen.height);
        self.up = (self.up + self.step()).min(top);
        if self.up == top
            && self.past == Past::More
            && let Some(first) = self.rows.first()
        {
            self.past = Past::Coming;
            return vec![Action::Older(first.id)];
        }
        Vec::new()
    }

    /// What a happening does.
    pub(super) fn happened(&mut self, happening: Happening) -> Vec<Action> {
        match happening {
            Happening::Row(row) => match row_of(&row) {
                Ok(row) => return self.posted(row),
                Err(error) => self.notice(format!("{error:#}")),
            },
            Happening::Delivery { message, deliveries } => self.delivered(message, deliveries),
            Happening::Working(working) => self.working = working,
            Happening::Presence(rows) => {
                for (id, online) in rows {
                    if let Some(who) = self.participants.iter_mut().find(|it| it.id == id) {
                        who.online = Some(online);
                    }
                }
                // Why nobody answers changes with who is there, and no event says so.
                return self.open_own();
            }
            Happening::Joined(who) => {
                self.participants.retain(|it| it.id != who.id);
                self.participants.push(who);
            }
            Happening::Left(id) => self.participants.retain(|it| it.id != id),
            Happening::Connected => {
                self.lost = None;
                return self.open_own();
            }
            Happening::Lost(why) => self.lost = Some(why),
            // The end is the caller's.
            Happening::Ended(_) => {}
        }
        Vec::new()
    }

    fn posted(&mut self, row: Row) -> Vec<Action> {
        if !self.known.insert(row.id) {
            return Vec::new();
        }
        // Whoever reads what is above goes on reading it.
        if self.up > 0 {
            self.up += super::view::height_of(self, &row);
        }
        let ask = row.is_text() && row.sender_id == self.me;
        let id = row.id;
        self.rows.push(row);
        if ask && !self.deliveries.contains_key(&id) { vec![Action::Ask(id)] } else { Vec::new() }
    }
}
