//! `bandstand chat`: a room in the terminal. `screen` is what there is to see and what keys do, without a terminal; `view`
//! draws it; here are the terminal and the server.

mod input;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Context;
use bandstand_wire::ids::{MessageId, RoomId};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, read};
use ratatui::crossterm::execute;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::cli::ChatArguments;
use crate::commands::with_client;
use crate::output::Failure;
use crate::people::client::{Client, RowPage, room_of, row_of, typed};
use crate::people::feed::{Feed, Happening};
use crate::people::mentions::Addressing;
use crate::people::model::{Delivery, Participant, Row};
use crate::people::places;
use screen::{Action, Screen};

/// Rows that are read at once.
const PAGE: usize = 50;
/// Own messages of the past whose deliveries are asked for.
const ASKED: usize = 20;

pub(crate) fn run(arguments: &ChatArguments) -> Result<ExitCode, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::Usage("chat needs a terminal; `bandstand tail` and `send` do without".into()));
    }
    with_client(&arguments.account, async |client| {
        let room = places::room(&client, &arguments.room).await?;
        let me = client.me().await?;
        let title = room_of(&client.room(room).await?)?.name().to_owned();
        let mut screen = Screen::new(me.id, title, client.participants(room).await?);
        let page = client.older(room, None, PAGE).await?;
        let last = page.rows.first().map(row_of).transpose()?.map(|row| row.id);
        screen.older(rows(page.rows)?, page.has_more);
        let feed = Feed::start(&client, room, me.id, last);
        let chat = Chat { client, room, screen };
        chat.show(feed).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// What came of something that was asked of the server.
enum Answer {
    Older(anyhow::Result<RowPage>),
    Deliveries(MessageId, Vec<Delivery>),
    Sent,
    NotSent(String, anyhow::Error),
}

struct Chat {
    client: Client,
    room: RoomId,
    screen: Screen,
}

impl Chat {
    async fn show(mut self, feed: mpsc::Receiver<Happening>) -> anyhow::Result<()> {
        let mut terminal = ratatui::try_init().context("cannot take the terminal")?;
        let _ = execute!(io::stdout(), EnableBracketedPaste);
        let ended = self.live(&mut terminal, feed).await;
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        ratatui::try_restore().context("cannot give the terminal back; `reset` does")?;
        ended
    }

    async fn live(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        mut feed: mpsc::Receiver<Happening>,
    ) -> anyhow::Result<()> {
        let (typed, mut keys) = mpsc::unbounded_channel();
        // It ends with the process: reading a terminal cannot be given up.
        std::thread::spawn(move || {
            while let Ok(event) = read() {
                if typed.send(event).is_err() {
                    return;
                }
            }
        });
        let (answered, mut answers) = mpsc::unbounded_channel();
        for message in self.screen.own_newest(ASKED) {
            self.ask(message, &answered);
        }
        loop {
            terminal.draw(|frame| view::draw(frame, &mut self.screen))?;
            let actions = tokio::select! {
                event = keys.recv() => match event {
                    Some(Event::Key(key)) if key.kind != KeyEventKind::Release => self.screen.key(key),
                    Some(Event::Paste(text)) => {
                        self.screen.paste(&text);
                        Vec::new()
                    }
                    // Drawing looks at the size anew.
                    Some(_) => Vec::new(),
                    None => return Ok(()),
                },
                happening = feed.recv() => match happening {
                    Some(Happening::Ended(error)) => return Err(error),
                    Some(happening) => self.screen.happened(happening),
                    None => return Ok(()),
                },
                Some(answer) = answers.recv() => self.answered(answer),
            };
            for action in actions {
                match action {
                    Action::Quit => return Ok(()),
                    Action::Send(text) => self.send(text, &answered),
                    Action::Older(before) => self.read_older(before, &answered),
                    Action::Ask(message) => self.ask(message, &answered),
                }
            }
        }
    }

    fn answered(&mut self, answer: Answer) -> Vec<Action> {
        match answer {
            Answer::Older(Ok(page)) => match rows(page.rows) {
                Ok(rows) => self.screen.older(rows, page.has_more),
                Err(error) => self.screen.notice(format!("{error:#}")),
            },
            Answer::Older(Err(error)) => self.screen.not_older(&format!("{error:#}")),
            Answer::Deliveries(message, deliveries) => self.screen.delivered(message, deliveries),
            Answer::Sent => self.screen.sent(),
            Answer::NotSent(text, error) => self.screen.not_sent(&text, &format!("{error:#}")),
        }
        Vec::new()
    }

    fn send(&self, text: String, answered: &mpsc::UnboundedSender<Answer>) {
        let (client, room, me) = (self.client.clone(), self.room, self.screen.me);
        let (participants, answered) = (self.screen.participants.clone(), answered.clone());
        tokio::spawn(async move {
            let sent = post(&client, room, &participants, me, &text).await;
            let _ = answered.send(match sent {
                Ok(()) => Answer::Sent,
                Err(error) => Answer::NotSent(text, error),
            });
        });
    }

    fn read_older(&self, before: MessageId, answered: &mpsc::UnboundedSender<Answer>) {
        let (client, room, answered) = (self.client.clone(), self.room, answered.clone());
        tokio::spawn(async move {
            let _ = answered.send(Answer::Older(client.older(room, Some(before), PAGE).await));
        });
    }

    fn ask(&self, message: MessageId, answered: &mpsc::UnboundedSender<Answer>) {
        let (client, room, answered) = (self.client.clone(), self.room, answered.clone());
        tokio::spawn(async move {
            // Without an answer the line under the message stays as it is.
            if let Ok(rows) = client.deliveries(room, message, None).await
                && let Ok(deliveries) = typed(rows)
            {
                let _ = answered.send(Answer::Deliveries(message, deliveries));
            }
        });
    }
}

async fn post(
    client: &Client,
    room: RoomId,
    participants: &[Participant],
    me: bandstand_wire::ids::IdentityId,
    text: &str,
) -> anyhow::Result<()> {
    let addressed = Addressing { room: participants, me, in_text: true }.address(text, &[])?;
    client.post(room, &addressed.content, &addressed.to).await?;
    Ok(())
}

/// Rows oldest first, of a page that is newest first.
fn rows(page: Vec<Value>) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = typed(page)?;
    rows.reverse();
    Ok(rows)
}
