//! `bandstand agent`.

use std::process::ExitCode;

use bandstand_server::admin::{AgentRow, Operation, Outcome, WithKey};
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::{AgentCommand, Place};
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: AgentCommand) -> Result<ExitCode, Failure> {
    match command {
        AgentCommand::Add { name, description, owner, global, place } => {
            let operation = Operation::AddAgent { owner, name, description, is_global: global };
            let (performed, settings) = administer(&place, operation)?;
            let Outcome::AgentAdded(added) = performed.outcome else { return Err(unexpected()) };
            // A server that does not run yet will listen where the settings say.
            let url = performed.url.unwrap_or_else(|| settings.url(settings.listen));
            if place.json {
                let mut answer = serde_json::to_value(&added).map_err(anyhow::Error::from)?;
                if let Some(fields) = answer.as_object_mut() {
                    fields.insert("rest_url".to_owned(), json!(url));
                    fields.insert("ws_url".to_owned(), json!(socket_url(&url)));
                }
                say_json(&answer)?;
            } else {
                say(&instructions(&added, &url));
            }
        }
        AgentCommand::List { place } => {
            let (performed, _) = administer(&place, Operation::ListAgents)?;
            let Outcome::Agents(agents) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&json!({ "agents": agents }))?;
            } else {
                let rows: Vec<_> = agents.into_iter().map(row).collect();
                say(&columns(["HANDLE", "NAME", "ID", "DESCRIPTION"], &rows));
            }
        }
        AgentCommand::Share { who, place } => share(&place, who, true)?,
        AgentCommand::Unshare { who, place } => share(&place, who, false)?,
        AgentCommand::Global { who, off, place } => {
            let (performed, _) = administer(&place, Operation::GlobalizeAgent { who, is_global: !off })?;
            let Outcome::AgentGlobalized(agent) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&agent)?;
            } else if agent.is_global {
                say(&format!("Everybody on the server can find {} now.", agent.handle));
            } else {
                say(&format!("{} is visible to its owner alone, unless it is shared.", agent.handle));
            }
        }
        AgentCommand::Remove { who, force, place } => {
            let (performed, _) = administer(&place, Operation::RemoveAgent { who, force })?;
            let Outcome::AgentRemoved(removed) = performed.outcome else { return Err(unexpected()) };
            if place.json {
                say_json(&removed)?;
            } else {
                say(&format!("Removed {}. Its key no longer works.", removed.handle));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn share(place: &Place, who: String, shared: bool) -> Result<(), Failure> {
    let (performed, _) = administer(place, Operation::ShareAgent { who, shared })?;
    let Outcome::AgentShared(agent) = performed.outcome else { return Err(unexpected()) };
    if place.json {
        say_json(&agent)?;
    } else if shared {
        say(&format!("The organization of {}'s owner can find it now.", agent.handle));
    } else {
        say(&format!("{} is no longer shared with its owner's organization.", agent.handle));
    }
    Ok(())
}

fn row(agent: AgentRow) -> [String; 4] {
    [agent.handle, agent.name, agent.id.to_string(), agent.description.unwrap_or_default()]
}

/// Where band-sdk's socket connects.
fn socket_url(url: &str) -> String {
    let rest = url.strip_prefix("http").unwrap_or(url);
    format!("ws{rest}/api/v1/socket/websocket")
}

/// The key and a whole program for band-sdk that works as it is pasted.
fn instructions(added: &WithKey<AgentRow>, url: &str) -> String {
    let (agent, key, socket) = (&added.who, &added.api_key, socket_url(url));
    let (name, handle, id) = (&agent.name, &agent.handle, agent.id);
    format!(
        r#"Added the agent {name} (@{handle}).

  id   {id}
  key  {key}   (shown this once; `bandstand key rotate {handle}` makes a new one)

Save the program below as agent.py, and run it with Python 3.11 or newer. It says nothing itself:

  python3 -m venv .venv && .venv/bin/pip install band-sdk==6.0.1
  .venv/bin/python agent.py

Then talk to it, once you are logged in (bandstand login --url {url}):

  bandstand room new Hello --with {handle}
  bandstand chat Hello

import asyncio
from band import Agent
from band.core import SimpleAdapter

class Echo(SimpleAdapter):
    async def on_message(self, msg, tools, history, participants_msg, contacts_msg, *, is_session_bootstrap, room_id):
        await tools.send_message(f"You said: {{msg.content}}", mentions=[msg.sender_id])

asyncio.run(Agent.create(
    adapter=Echo(),
    agent_id="{id}",
    api_key="{key}",
    rest_url="{url}",
    ws_url="{socket}",
).run())"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_address_follows_the_servers() {
        assert_eq!(socket_url("http://127.0.0.1:4000"), "ws://127.0.0.1:4000/api/v1/socket/websocket");
        assert_eq!(socket_url("https://band.example.org"), "wss://band.example.org/api/v1/socket/websocket");
    }
}
