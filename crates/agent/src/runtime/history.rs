//! What an agent remembers of a room when it comes back to it.

use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use serde_json::Value;

use crate::adapter::{HistoryEntry, Sender};
use crate::client::model::ChatMessage;
use crate::client::{Client, ClientError, ContextPlace};
use crate::roster::{Member, Roster};

/// Rows of a page: the most that the platform gives.
const PAGE: i64 = 100;

/// The newest part of a room's past, oldest first: what the agent sent and what mentions it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    /// The rows.
    pub(super) entries: Vec<HistoryEntry>,
    /// Whether older rows were left out, because there were more than the agent keeps.
    pub(super) cut: bool,
}

/// Reads the newest `keep` rows of a room that are older than `trigger`.
///
/// The platform lists the oldest first. Where it counts pages, only the last ones are read; else all are walked.
pub(super) async fn read(
    client: &Client,
    me: IdentityId,
    room: RoomId,
    trigger: Option<MessageId>,
    keep: usize,
    roster: &Roster,
) -> Result<History, ClientError> {
    let (mut rows, older) = newest(client, room, keep.saturating_add(1)).await?;
    // What came after the message that is being handled has turns of its own.
    if let Some(at) = rows.iter().position(|row| Some(row.id) == trigger) {
        rows.truncate(at);
    }
    let cut = older || rows.len() > keep;
    let surplus = rows.len().saturating_sub(keep);
    let members = roster.members();
    let entries = rows.drain(surplus..).map(|row| entry(row, me, &members)).collect();
    Ok(History { entries, cut })
}

/// The newest rows, at least `wanted` if there are as many; and whether there are older ones.
async fn newest(client: &Client, room: RoomId, wanted: usize) -> Result<(Vec<ChatMessage>, bool), ClientError> {
    let first = client.context_page(room, 1, PAGE).await?;
    let Some(pages) = first.pointer("/metadata/total_pages").and_then(Value::as_i64) else {
        return walk(client, room, wanted).await;
    };
    if pages <= 1 {
        return Ok((rows_of(first), false));
    }
    let mut rows: Vec<ChatMessage> = Vec::new();
    let mut page = pages;
    while page >= 1 && rows.len() < wanted {
        let mut older =
            if page == 1 { rows_of(first.clone()) } else { rows_of(client.context_page(room, page, PAGE).await?) };
        older.append(&mut rows);
        rows = older;
        page -= 1;
    }
    // A row that was added meanwhile may have moved another from one page to the next.
    rows.dedup_by_key(|row| row.id);
    Ok((rows, page >= 1))
}

async fn walk(client: &Client, room: RoomId, wanted: usize) -> Result<(Vec<ChatMessage>, bool), ClientError> {
    let mut rows: Vec<ChatMessage> = Vec::new();
    let mut older = false;
    let mut place = ContextPlace::Start;
    loop {
        let page = client.context(room, &place, PAGE).await?;
        rows.extend(page.data);
        // No more than two pages' worth is held.
        if rows.len() > wanted {
            older = true;
            rows.drain(..rows.len() - wanted);
        }
        match page.metadata.next_cursor {
            Some(next) if page.metadata.has_more => place = ContextPlace::Cursor(next),
            _ => return Ok((rows, older)),
        }
    }
}

/// The rows of a page. A row that cannot be read is left out: one odd row must not cost the agent its memory.
fn rows_of(mut page: Value) -> Vec<ChatMessage> {
    let rows = page.get_mut("data").map(Value::take).unwrap_or_default();
    let Value::Array(rows) = rows else { return Vec::new() };
    rows.into_iter()
        .filter_map(|row| {
            serde_json::from_value(row).inspect_err(|why| tracing::warn!(%why, "a row of the context is left out")).ok()
        })
        .collect()
}

fn entry(row: ChatMessage, me: IdentityId, members: &[Member]) -> HistoryEntry {
    let content = readable(&row, members);
    let name = row
        .sender_name
        .filter(|name| !name.trim().is_empty())
        .or_else(|| members.iter().find(|member| member.id == row.sender_id)?.name.clone());
    HistoryEntry {
        id: row.id,
        message_type: row.message_type,
        content,
        sender: Sender::Identity { id: row.sender_id, kind: row.sender_type, name },
        own: row.sender_id == me,
        metadata: row.metadata,
    }
}

/// A text with mentions as a person reads them: `@[[id]]` becomes `@handle`, or `@Display-Name` where no handle is known.
/// An id that nobody knows stays as it is.
pub fn readable(row: &ChatMessage, members: &[Member]) -> String {
    let mentions = row.mentions();
    let mut text = String::with_capacity(row.content.len());
    let mut rest = row.content.as_str();
    while let Some(at) = rest.find("@[[") {
        let (before, token) = rest.split_at(at);
        text.push_str(before);
        let Some(end) = token.find("]]") else {
            rest = token;
            break;
        };
        let (id, after) = (&token[3..end], &token[end + 2..]);
        let shown = id.parse::<IdentityId>().ok().and_then(|id| {
            let named = mentions.iter().find(|mention| mention.id == id);
            let member = members.iter().find(|member| member.id == id);
            let handle = member.and_then(|member| member.handle.clone()).or_else(|| named?.handle.clone());
            let name = member.and_then(|member| member.name.clone()).or_else(|| named?.name.clone());
            handle
                .map(|handle| handle.trim_start_matches('@').to_owned())
                .filter(|handle| !handle.is_empty())
                .or_else(|| name.map(|name| name.split_whitespace().collect::<Vec<_>>().join("-")))
        });
        match shown {
            Some(shown) => {
                text.push('@');
                text.push_str(&shown);
            }
            None => text.push_str(&token[..end + 2]),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}
