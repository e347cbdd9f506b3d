//! What a server lists, as tools of the agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::server::Server;
use crate::registry::Tool;
use crate::tools::AgentTools;

/// The longest name of a tool, in bytes: longer ones are no names.
const NAME_MAX: usize = 256;

/// What of a server's tools the agent has.
#[derive(Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Tool<AgentTools>>,
    /// Tools that cannot be offered, and why.
    pub(super) left_out: Vec<(String, String)>,
    /// Names in the options that the server does not have.
    pub(super) unknown: Vec<String>,
}

/// Makes tools of a list. One that cannot be used is left out: a provider refuses all for the sake of one.
pub(super) fn offer(server: &Arc<Server>, listed: Vec<rmcp::model::Tool>) -> Offer {
    let options = &server.options;
    let mut offer = Offer::default();
    let mut names = BTreeSet::new();
    for tool in listed {
        let name = tool.name.to_string();
        if name.is_empty() || name.len() > NAME_MAX {
            offer.left_out.push((name.chars().take(40).collect(), "it has no usable name".to_owned()));
            continue;
        }
        if !names.insert(name.clone()) {
            offer.left_out.push((name, "the server has two of this name".to_owned()));
            continue;
        }
        if !options.admits(&name) {
            continue;
        }
        match made(server, &tool) {
            Ok(tool) => offer.tools.push(tool),
            Err(why) => offer.left_out.push((name, why)),
        }
    }
    let named = options.allow.iter().flatten().chain(&options.deny).chain(options.tools.keys());
    let unknown: BTreeSet<&String> = named.filter(|name| !names.contains(*name)).collect();
    offer.unknown = unknown.into_iter().cloned().collect();
    offer
}

fn made(server: &Arc<Server>, listed: &rmcp::model::Tool) -> Result<Tool<AgentTools>, String> {
    let options = &server.options;
    let name = listed.name.to_string();
    let policy = options.policy(&name);
    let hints = listed.annotations.as_ref();
    let title = listed.title.as_deref().or_else(|| hints.and_then(|hints| hints.title.as_deref()));
    let description = listed.description.as_deref().or(title).unwrap_or_default().to_owned();
    let schema = Value::Object((*listed.input_schema).clone());
    let registered = format!("{}{name}", options.prefix);
    let handler = {
        // A tool that is still held by a turn must not keep the connection's keeper alive.
        let server = Arc::downgrade(server);
        move |_: AgentTools, arguments: Map<String, Value>| {
            let (server, name) = (server.clone(), name.clone());
            async move {
                match server.upgrade() {
                    Some(server) => server.call(&name, arguments).await,
                    None => Err(crate::registry::ToolError::failed("its MCP server was ended")),
                }
            }
        }
    };
    let mut tool = Tool::dynamic(registered, description, schema, handler).map_err(|error| error.to_string())?;
    tool = tool.group(format!("mcp:{}", options.name));
    if let Some(effect) = policy.effect {
        tool = tool.effect(effect);
    }
    if let Some(approval) = policy.approval {
        tool = tool.approval(approval);
    }
    if let Some(limit) = policy.time_limit {
        tool = tool.time_limit(limit);
    }
    // Only a hint, so it decides nothing but whether calls may run beside one another.
    if hints.and_then(|hints| hints.read_only_hint) == Some(true) {
        tool = tool.read_only();
    }
    Ok(tool)
}
