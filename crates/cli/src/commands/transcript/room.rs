//! A live room, as an agent in it remembers it.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use bandstand_transcript::room::{RoomFinding, decode_rows_with_sources, lint_rows};
use bandstand_transcript::{Format, LintOptions, lint};
use bandstand_wire::ids::{IdentityId, RoomId};
use serde_json::{Value, json};

use super::file::{format_named, profile_named};
use super::paint::Paint;
use super::{findings, view, warn};
use crate::cli::ReadArguments;
use crate::commands::with_client;
use crate::output::{Failure, say, say_json};
use crate::people::client::{Client, PAGE, row_of};
use crate::people::model::{Participant, Row};
use crate::people::places;
use crate::people::text::{harmless, time_of_day};

/// What an agent reads of a room.
struct Remembered {
    room: RoomId,
    agent: IdentityId,
    /// Oldest first.
    rows: Vec<Value>,
    /// Whether there are older rows than those that were read.
    cut: bool,
}

pub(super) fn lint(read: &ReadArguments) -> Result<ExitCode, Failure> {
    let format = read.room.to.as_deref().map(format_named).transpose()?.unwrap_or(Format::OpenAiChat);
    let options = LintOptions { profile: profile_named(read.profile.as_deref())?, ..LintOptions::new(format) };
    with_client(&read.room.account(read.json), async |client| {
        let remembered = remembered(&client, read).await?;
        let found = lint_rows(&remembered.rows, &remembered.agent.to_string(), &options);
        let refused = found.iter().any(|found| found.finding.severity == lint::Severity::Error);
        if read.json {
            say_json(&json!({
                "chat_room_id": remembered.room, "agent_id": remembered.agent, "format": format.name(),
                "rows": remembered.rows.len(), "has_older": remembered.cut, "refused": refused,
                "findings": found.iter().map(|found| finding_json(found, &remembered.rows)).collect::<Vec<_>>(),
            }))?;
        } else {
            let paint = Paint::for_output(read.color);
            let mut lines = vec![told(&remembered, format.name())];
            if found.is_empty() {
                lines.push("Nothing is wrong with it.".to_owned());
            }
            for found in &found {
                lines.push(findings::line(&found.finding, place(found, &remembered.rows).as_deref(), &paint));
            }
            say(&lines.join("\n"));
        }
        Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

pub(super) fn show(read: &ReadArguments) -> Result<ExitCode, Failure> {
    with_client(&read.room.account(read.json), async |client| {
        let remembered = remembered(&client, read).await?;
        let (decoded, sources) = decode_rows_with_sources(&remembered.rows, &remembered.agent.to_string());
        warn(&decoded.warnings);
        if read.json {
            say_json(&decoded.transcript.to_canonical())?;
            return Ok(ExitCode::SUCCESS);
        }
        let paint = Paint::for_output(read.color);
        let moment = |index: usize| {
            let row = sources.get(index)?.first().and_then(|at| remembered.rows.get(*at))?;
            Some(when(&row_of(row).ok()?))
        };
        let mut lines = vec![told(&remembered, "as the agent remembers it")];
        lines.extend(view::lines(&decoded.transcript, &paint, moment));
        say(&lines.join("\n"));
        Ok(ExitCode::SUCCESS)
    })
}

fn told(remembered: &Remembered, what: &str) -> String {
    let older = if remembered.cut { "; there are older ones, --rows reads more" } else { "" };
    format!("{what}, {} rows of the room {}{older}:", remembered.rows.len(), remembered.room)
}

fn when(row: &Row) -> String {
    format!("{} {}", time_of_day(&row.inserted_at), row.id)
}

/// Where a finding is: the moments and ids of its rows.
fn place(found: &RoomFinding, rows: &[Value]) -> Option<String> {
    let read = found.rows.iter().filter_map(|at| rows.get(*at)).filter_map(|row| row_of(row).ok());
    let told: Vec<String> = read.map(|row| when(&row)).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn finding_json(found: &RoomFinding, rows: &[Value]) -> Value {
    let mut told = findings::json(&found.finding);
    let row = |row: &Value| json!({ "id": row["id"], "message_type": row["message_type"], "inserted_at": row["inserted_at"] });
    told["rows"] = found.rows.iter().filter_map(|at| rows.get(*at)).map(row).collect();
    told
}

async fn remembered(client: &Client, read: &ReadArguments) -> Result<Remembered, Failure> {
    let wanted = read.room.room.as_deref().unwrap_or_default();
    let most = read.room.rows.max(1);
    if client.is_agents() {
        return Ok(own(client, wanted, read.room.agent.as_deref(), most).await?);
    }
    let Some(who) = &read.room.agent else {
        return Err(Failure::Usage("whose history of the room? --agent WHO, or the agent's own key".into()));
    };
    let room = places::room(client, wanted).await?;
    let agent = agent_of(&client.participants(room).await?, who)?;
    let (rows, cut) = visible(client, room, agent, most).await?;
    Ok(Remembered { room, agent, rows, cut })
}

/// An agent among those in the room; by its id also one that has left.
fn agent_of(participants: &[Participant], who: &str) -> anyhow::Result<IdentityId> {
    match places::who(participants, who)? {
        Some(somebody) if somebody.kind == "Agent" => Ok(somebody.id),
        Some(somebody) => bail!("{} is no agent: only agents remember a room", harmless(&somebody.label())),
        None => {
            who.parse().map_err(|_| anyhow!("there is no {who} in this room; an agent that left is named by its id"))
        }
    }
}

/// With the agent's own key: what its SDK reads.
async fn own(client: &Client, wanted: &str, who: Option<&str>, most: usize) -> anyhow::Result<Remembered> {
    let me = client.agent_me().await?;
    if let Some(who) = who.filter(|who| places::candidates(std::slice::from_ref(&me), who).is_empty()) {
        bail!("this key is {}'s, not {who}'s; with a user's key any agent's history is read", harmless(&me.label()));
    }
    let room = places::agents_room(client, wanted).await?;
    let (mut rows, mut cursor, mut cut) = (Vec::new(), None, false);
    loop {
        let (page, next) = client.agent_context(room, cursor.as_deref()).await?;
        rows.extend(page);
        if rows.len() > most {
            cut = true;
            rows.drain(..rows.len() - most);
        }
        match next {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(Remembered { room, agent: me.id, rows, cut })
}

/// With a user's key: of all rows, what the agent sent and the messages that mention it.
async fn visible(client: &Client, room: RoomId, agent: IdentityId, most: usize) -> anyhow::Result<(Vec<Value>, bool)> {
    let (mut rows, mut before, mut seen, mut cut) = (Vec::new(), None, 0, false);
    loop {
        let page = client.older(room, before, PAGE.min(most - seen)).await?;
        let last = page.rows.last().map(row_of).transpose()?.map(|row| row.id);
        seen += page.rows.len();
        for row in page.rows {
            let read = row_of(&row)?;
            if read.sender_id == agent || (read.is_text() && mentions(&read, agent)) {
                rows.push(row);
            }
        }
        if !page.has_more || last.is_none() {
            break;
        }
        if seen >= most {
            cut = true;
            break;
        }
        before = last;
    }
    rows.reverse();
    Ok((rows, cut))
}

/// Whether a message was for somebody.
fn mentions(row: &Row, who: IdentityId) -> bool {
    let who = who.to_string();
    let mentions = row.metadata.as_ref().and_then(|metadata| metadata.get("mentions")).and_then(Value::as_array);
    mentions.into_iter().flatten().any(|mention| {
        mention.get("id").and_then(Value::as_str) == Some(who.as_str())
            && mention.get("kind").and_then(Value::as_str) != Some("reference")
    })
}
