//! `bandstand tail`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context;
use bandstand_domain::clock::Clock as _;
use bandstand_server::system::SystemClock;
use bandstand_wire::ids::RoomId;
use bandstand_wire::time::Timestamp;
use serde_json::Value;

use super::with_client;
use crate::cli::TailArguments;
use crate::output::{Failure, try_to_say};
use crate::people::client::{Client, PAGE, row_of};
use crate::people::feed::{Feed, Happening};
use crate::people::model::Row;
use crate::people::places;
use crate::people::text::{harmless, one_line, readable, time_of_day};
use crate::settings::duration;

/// Columns of an event's line.
const EVENT: usize = 200;

pub(crate) fn run(arguments: &TailArguments) -> Result<ExitCode, Failure> {
    let since = arguments.since.as_deref().map(moment).transpose()?;
    with_client(&arguments.account, async |client| {
        let room = places::room(&client, &arguments.room).await?;
        let printer = Printer { json: arguments.account.json, messages: arguments.messages };
        let me = client.me().await?;
        let mut rows = match since {
            Some(since) => rows_since(&client, room, since).await?,
            None => newest(&client, room, arguments.lines).await?,
        };
        rows.reverse();
        let last = match rows.last() {
            Some(row) => Some(row_of(row)?.id),
            // What is there already was not asked for, but what follows it is.
            None => client.older(room, None, 1).await?.rows.first().map(row_of).transpose()?.map(|row| row.id),
        };
        for row in rows {
            if !printer.print(&row)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if arguments.no_follow {
            return Ok(ExitCode::SUCCESS);
        }
        follow(&printer, Feed::start(&client, room, me.id, last)).await
    })
}

async fn follow(
    printer: &Printer,
    mut happenings: tokio::sync::mpsc::Receiver<Happening>,
) -> Result<ExitCode, Failure> {
    let mut lost = false;
    while let Some(happening) = happenings.recv().await {
        match happening {
            Happening::Row(row) => {
                if !printer.print(&row)? {
                    break;
                }
            }
            Happening::Lost(why) => {
                if !lost {
                    let _ = writeln!(io::stderr(), "lost the connection: {why}; trying again");
                }
                lost = true;
            }
            Happening::Connected => {
                if std::mem::take(&mut lost) {
                    let _ = writeln!(io::stderr(), "connected again, nothing was missed");
                }
            }
            Happening::Ended(error) => return Err(Failure::Failed(error)),
            Happening::Delivery { .. }
            | Happening::Working(_)
            | Happening::Presence(_)
            | Happening::Joined(_)
            | Happening::Left(_) => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest rows, newest first.
async fn newest(client: &Client, room: RoomId, count: usize) -> anyhow::Result<Vec<Value>> {
    let mut rows: Vec<Value> = Vec::new();
    while rows.len() < count {
        let before = rows.last().map(row_of).transpose()?.map(|row| row.id);
        let page = client.older(room, before, (count - rows.len()).min(PAGE)).await?;
        let more = page.has_more && !page.rows.is_empty();
        rows.extend(page.rows);
        if !more {
            break;
        }
    }
    Ok(rows)
}

/// The rows after a moment, newest first.
async fn rows_since(client: &Client, room: RoomId, since: Timestamp) -> anyhow::Result<Vec<Value>> {
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let before = rows.last().map(row_of).transpose()?.map(|row| row.id);
        let page = client.older(room, before, PAGE).await?;
        let more = page.has_more && !page.rows.is_empty();
        for row in page.rows {
            let posted = Timestamp::parse(&row_of(&row)?.inserted_at).context("a row's time cannot be read")?;
            if posted <= since {
                return Ok(rows);
            }
            rows.push(row);
        }
        if !more {
            return Ok(rows);
        }
    }
}

/// A moment, or how long ago it was.
fn moment(text: &str) -> Result<Timestamp, Failure> {
    if let Ok(moment) = Timestamp::parse(text) {
        return Ok(moment);
    }
    let ago = duration(text).map_err(|_| {
        Failure::Usage(format!(
            "--since {text:?} is neither a moment, such as 2026-01-31T10:00:00Z, nor a time, such as 10m"
        ))
    })?;
    let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_micros(SystemClock.now().as_micros().saturating_sub(ago)))
}

struct Printer {
    json: bool,
    messages: bool,
}

impl Printer {
    /// Prints a row; false when nobody reads any more.
    fn print(&self, row: &Value) -> Result<bool, Failure> {
        let read = row_of(row)?;
        if self.messages && !read.is_text() {
            return Ok(true);
        }
        let line = if self.json { row.to_string() } else { line(&read) };
        Ok(try_to_say(&line).is_ok())
    }
}

/// A row as people read it: a message with all its lines, an event on one.
pub(crate) fn line(row: &Row) -> String {
    let time = time_of_day(&row.inserted_at);
    let who = harmless(row.sender_name.as_deref().unwrap_or("somebody"));
    if row.is_text() {
        let text = readable(row);
        // A further line must not look like a row of its own.
        return format!("{time} {who}: {}", text.replace('\n', "\n         "));
    }
    format!("{time} · {who} {}: {}", row.message_type.replace('_', " "), one_line(&readable(row), EVENT))
}
