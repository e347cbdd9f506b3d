//! `bandstand why`.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use bandstand_wire::ids::{MessageId, RoomId};
use serde_json::json;

use super::with_client;
use crate::cli::WhyArguments;
use crate::output::{Failure, say, say_json};
use crate::people::client::{Client, PAGE, row_of, typed};
use crate::people::model::{Delivery, Room};
use crate::people::places;
use crate::people::text::{harmless, time_of_day, with_local_times};

/// Pages of a room in which one's own newest message is looked for.
const LOOKED_AT: usize = 10;

pub(crate) fn run(arguments: &WhyArguments) -> Result<ExitCode, Failure> {
    with_client(&arguments.account, async |client| {
        let (room, message) = locate(&client, arguments).await?;
        let rows = client.deliveries(room, message, arguments.participant.as_deref()).await?;
        if arguments.account.json {
            say_json(&json!({ "message_id": message, "chat_room_id": room, "deliveries": rows }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let deliveries: Vec<Delivery> = typed(rows)?;
        if deliveries.is_empty() {
            say("It was delivered to nobody: it mentions nobody who could take it.");
        }
        let answers: Vec<String> = deliveries.iter().map(explain).collect();
        if !answers.is_empty() {
            say(&answers.join("\n\n"));
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn locate(client: &Client, arguments: &WhyArguments) -> Result<(RoomId, MessageId), Failure> {
    let room = match &arguments.room {
        Some(room) => Some(places::room(client, room).await?),
        None => None,
    };
    if arguments.message == "last" {
        let room = room.ok_or_else(|| Failure::Usage("`last` needs --room".into()))?;
        return Ok((room, own_newest(client, room).await?));
    }
    let message: MessageId = arguments
        .message
        .parse()
        .map_err(|_| Failure::Usage(format!("{:?} is no id of a message; `send` prints it", arguments.message)))?;
    let room = match room {
        Some(room) => room,
        None => room_of_message(client, message).await?,
    };
    Ok((room, message))
}

async fn own_newest(client: &Client, room: RoomId) -> anyhow::Result<MessageId> {
    let me = client.me().await?;
    let mut before = None;
    for _ in 0..LOOKED_AT {
        let page = client.older(room, before, PAGE).await?;
        for row in &page.rows {
            let row = row_of(row)?;
            if row.sender_id == me.id && row.is_text() {
                return Ok(row.id);
            }
            before = Some(row.id);
        }
        if !page.has_more || page.rows.is_empty() {
            break;
        }
    }
    bail!("you said nothing in this room lately")
}

/// No operation says where a message is, so the rooms are asked one after the other.
async fn room_of_message(client: &Client, message: MessageId) -> anyhow::Result<RoomId> {
    let rooms: Vec<Room> = typed(client.rooms(None).await?)?;
    for room in &rooms {
        if client.holds(room.id, message).await? {
            return Ok(room.id);
        }
    }
    Err(anyhow!("no message {message} in your {} rooms; --room names another one", rooms.len()))
}

/// What became of a message for one participant: first why, then how it came to that, then what to do.
pub(crate) fn explain(delivery: &Delivery) -> String {
    let mut lines = vec![with_local_times(&harmless(&delivery.summary))];
    let stages: Vec<String> = delivery
        .stages
        .iter()
        .map(|stage| {
            let attempt = stage.attempt.filter(|_| delivery.attempts > 1);
            let attempt = attempt.map(|attempt| format!(" (attempt {attempt})")).unwrap_or_default();
            let note = stage.note.as_deref().map(|note| format!(": {}", harmless(note))).unwrap_or_default();
            format!("{} {}{attempt}{note}", stage.stage.replace('_', " "), time_of_day(&stage.at))
        })
        .collect();
    if !stages.is_empty() {
        lines.push(format!("  {}", stages.join(", ")));
    }
    if let Some(advice) = delivery.reason.as_ref().and_then(|reason| advice(&reason.code)) {
        lines.push(format!("  What to do: {advice}"));
    }
    lines.join("\n")
}

/// What to do about a reason, as docs/ledger.md says it.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "not_mentioned" => "mention it; an agent hears only what mentions it.",
        "not_a_participant" => "add it to the room, then send again; what is older is not delivered.",
        "stopped" => "let the room's agents go on.",
        "rate_limited" => "look at what the agent sends so often, or raise the limit.",
        "never_connected" => "start the agent's program; check its key and the server's address.",
        "offline" => "start the agent's program; it fetches what waits.",
        "superseded" => "a second program runs with the same key; stop one of them.",
        "not_taken" => "wait while it is busy; else look at its program's log.",
        "no_activity" => "its program hangs, or reports nothing while it works; look at its log, or interrupt it.",
        "expired" => "find out why it waited so long, and send it again.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_comes_first_and_then_what_to_do() {
        let delivery: Delivery = serde_json::from_value(json!({
            "participant": {"handle": "ana/writer"}, "stage": "picked_up", "verdict": "waiting",
            "reason": {"code": "offline", "since": null, "evidence": {}}, "outcome": null, "attempts": 1,
            "stages": [{"stage": "picked_up", "at": "nonsense", "attempt": 1, "note": null}],
            "summary": "@ana/writer has been offline since 10:02.",
        }))
        .unwrap();
        let want = "@ana/writer has been offline since 10:02.\n  picked up nonsense\n  \
                    What to do: start the agent's program; it fetches what waits.";
        assert_eq!(explain(&delivery), want);
    }
}
