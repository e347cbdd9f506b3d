//! Agents and rooms, made over HTTP before anything is measured.

use std::net::SocketAddr;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::http::{Api, request};
use crate::world::OWNER_KEY;

/// Connections that set things up side by side, so that the store commits their operations together.
const CONNECTIONS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) key: String,
}

/// A call of the owner.
pub(crate) struct Call {
    method: &'static str,
    path: String,
    body: Value,
}

/// Makes these calls over many connections; the replies in the same order.
async fn calls(address: SocketAddr, calls: Vec<Call>) -> Result<Vec<Value>> {
    let mut shares: Vec<Vec<(usize, Call)>> = (0..CONNECTIONS.min(calls.len())).map(|_| Vec::new()).collect();
    let count = calls.len();
    for (number, call) in calls.into_iter().enumerate() {
        let share = number % shares.len();
        shares[share].push((number, call));
    }
    let mut tasks = Vec::new();
    for share in shares {
        tasks.push(tokio::spawn(async move {
            let mut api = Api::connect(address, OWNER_KEY).await?;
            let mut replies = Vec::with_capacity(share.len());
            for (number, call) in share {
                replies.push((number, api.call(call.method, &call.path, Some(&call.body)).await?));
            }
            anyhow::Ok(replies)
        }));
    }
    let mut all = vec![Value::Null; count];
    for task in tasks {
        for (number, reply) in task.await?? {
            all[number] = reply;
        }
    }
    Ok(all)
}

/// Registers agents named `name-0`, `name-1` and so on.
pub(crate) async fn agents(address: SocketAddr, name: &str, count: usize) -> Result<Vec<Agent>> {
    let register = |number| {
        let agent = json!({ "name": format!("{name}-{number}"), "description": "An agent that only measures." });
        Call { method: "POST", path: "/api/v1/me/agents/register".to_owned(), body: json!({ "agent": agent }) }
    };
    let replies = calls(address, (0..count).map(register).collect()).await?;
    let agent = |reply: &Value| Ok(Agent { id: text(reply, "/agent/id")?, key: text(reply, "/credentials/api_key")? });
    replies.iter().map(agent).collect()
}

/// Creates a room for each group of agents; their ids.
pub(crate) async fn rooms(address: SocketAddr, groups: &[Vec<&Agent>]) -> Result<Vec<String>> {
    let create = |number| {
        let body = json!({ "chat": { "title": format!("Room {number}") } });
        Call { method: "POST", path: "/api/v1/me/chats".to_owned(), body }
    };
    let replies = calls(address, (0..groups.len()).map(create).collect()).await?;
    let rooms: Vec<String> = replies.iter().map(|reply| text(reply, "/id")).collect::<Result<_>>()?;
    let mut joins = Vec::new();
    for (room, members) in rooms.iter().zip(groups) {
        for member in members {
            let body = json!({ "participant": { "participant_id": member.id } });
            joins.push(Call { method: "POST", path: format!("/api/v1/me/chats/{room}/participants"), body });
        }
    }
    calls(address, joins).await?;
    Ok(rooms)
}

/// One room.
pub(crate) async fn room(address: SocketAddr, members: &[&Agent]) -> Result<String> {
    let mut made = rooms(address, &[members.to_vec()]).await?;
    made.pop().ok_or_else(|| anyhow!("no room was made"))
}

fn text(reply: &Value, place: &str) -> Result<String> {
    let text = reply.pointer(place).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| anyhow!("no {place} in {reply}"))
}

/// What the messages of all measurements say: about as much as a short answer.
pub(crate) const TEXT: &str = "The build of the release branch is green again: the flaky test waited for a port that \
                               was taken, and now asks for a free one. Shall I tag it, or do you want to look first?";

/// An agent's request to post [`TEXT`] to others.
pub(crate) fn post(sender: &Agent, room: &str, recipients: &[&Agent]) -> Vec<u8> {
    let mentions: Vec<Value> = recipients.iter().map(|agent| json!({ "id": agent.id })).collect();
    let body = json!({ "message": { "content": TEXT, "mentions": mentions } });
    request("POST", &format!("/api/v1/agent/chats/{room}/messages"), &sender.key, Some(&body))
}
