//! Every tool that a session offers, as MCP clients are told of it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bandstand_agent::registry::{Effect, Registry, Spec, Tool, view};
use bandstand_agent::tools::PLATFORM_TOOLS;
use rmcp::model::{JsonObject, Tool as Offer, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::choices::{Choices, Scope};
use crate::{agent, human, life, why};

/// Longest id of a room that is taken.
pub(crate) const ID_MAX: usize = 255;

/// Who carries a tool out, and whether it acts on a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An agent's tool of the platform.
    Agent { room_bound: bool },
    /// A person's.
    Human { room_bound: bool },
    /// Waits for a message, and claims it.
    Wait,
    /// Settles what is claimed.
    Finish,
    /// Asks the delivery ledger.
    Why,
    /// Says whether the server can be reached.
    Health,
}

/// What a session offers.
pub(crate) struct Catalogue {
    offers: Vec<Offer>,
    kinds: HashMap<String, Kind>,
}

impl Catalogue {
    /// Shared by all sessions that chose the same.
    pub(crate) fn of(choices: &Choices) -> Arc<Self> {
        static MADE: LazyLock<Mutex<HashMap<Choices, Arc<Catalogue>>>> = LazyLock::new(Mutex::default);
        // Which room it is changes nothing.
        let choices = Choices { room: choices.room.as_ref().map(|_| String::new()), ..choices.clone() };
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(choices).or_insert_with_key(|choices| Arc::new(Self::make(choices))))
    }

    fn make(choices: &Choices) -> Self {
        let mut it = Self { offers: Vec::new(), kinds: HashMap::new() };
        let pinned = choices.room.is_some();
        for scope in &choices.scopes {
            match scope {
                Scope::Agent => {
                    for spec in agent::registry().specs().filter(|spec| choices.include(spec.group())) {
                        let bound = PLATFORM_TOOLS.iter().any(|tool| tool.name == spec.name() && tool.room_bound);
                        it.add(spec, Kind::Agent { room_bound: bound }, bound && !pinned, false);
                    }
                    it.add(life::wait_tool().spec(), Kind::Wait, false, false);
                    it.add(life::finish_tool().spec(), Kind::Finish, false, false);
                }
                Scope::Human => {
                    for spec in human::registry().specs().filter(|spec| choices.include(spec.group())) {
                        let bound = spec.schema().as_value()["properties"].get("chat_id").is_some();
                        it.add(spec, Kind::Human { room_bound: bound }, false, bound && pinned);
                    }
                }
            }
        }
        it.add(why::tool().spec(), Kind::Why, false, pinned);
        it.add(health_tool().spec(), Kind::Health, false, false);
        it
    }

    /// Adds a tool, with a `chat_id` that its own input does not have, or without the one that it has.
    fn add(&mut self, spec: &Spec, kind: Kind, with_room: bool, without_room: bool) {
        let mut view = view::mcp(spec);
        let mut schema = match view["inputSchema"].take() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        if with_room {
            add_room(&mut schema);
        }
        if without_room {
            drop_room(&mut schema);
        }
        let mut hints = ToolAnnotations::default().read_only(spec.is_read_only());
        if spec.is_read_only() || spec.effect() != Effect::Act {
            hints = hints.destructive(false);
        }
        let offer = Offer::new(spec.name().to_owned(), spec.description().to_owned(), Arc::new(schema));
        self.kinds.insert(spec.name().to_owned(), kind);
        self.offers.push(offer.with_annotations(hints));
    }

    pub(crate) fn offers(&self) -> &[Offer] {
        &self.offers
    }

    pub(crate) fn len(&self) -> usize {
        self.offers.len()
    }

    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied()
    }
}

fn add_room(schema: &mut JsonObject) {
    let room = json!({
        "title": "Chat Id",
        "type": "string",
        "maxLength": ID_MAX,
        "description": "ID of the existing chat room whose context owns this tool call. When creating a new room, use the \
                        source room ID.",
    });
    if let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({})) {
        properties.insert("chat_id".to_owned(), room);
    }
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        required.push(json!("chat_id"));
    }
}

fn drop_room(schema: &mut JsonObject) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove("chat_id");
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "chat_id");
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

/// Test MCP server and API connectivity.
#[derive(Debug, Deserialize, JsonSchema)]
struct HealthCheck {}

/// Only its description is used: what it does needs the whole session.
fn health_tool() -> &'static Tool<()> {
    static TOOL: LazyLock<Tool<()>> =
        LazyLock::new(|| Tool::new("health_check", |(), _: HealthCheck| async move { Ok(Value::Null) }).read_only());
    &TOOL
}

/// A registry from tools whose names are known to differ.
pub(crate) fn registry_of<C: Send + 'static>(tools: Vec<Tool<C>>) -> Registry<C> {
    let mut registry = Registry::default();
    for tool in tools {
        let added = registry.add(tool);
        debug_assert!(added.is_ok(), "each name is there once");
    }
    registry
}
