//! Names on the wire, and the way back.

use serde_json::{Map, Value};

use crate::convert::Reply;
use crate::ids::{MAX_TOOL_NAME, NameTable, ToolName};
use crate::model::{Part, ToolCall, ToolInput};

/// What tools and their arguments are called on the wire, where that is not what the registry calls them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireNames {
    /// Names of tools.
    pub tools: NameTable,
    /// Argument keys that had to change: the tool, the key on the wire, the key of its schema.
    keys: Vec<(ToolName, String, String)>,
}

impl WireNames {
    /// For tools of these names. A name that providers take stays itself whatever the others are.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a ToolName>) -> Self {
        Self { tools: NameTable::for_tools(names), keys: Vec::new() }
    }

    /// The registry's name of a tool on the wire.
    pub fn tool(&self, wire: &str) -> ToolName {
        self.tools.from_wire(wire)
    }

    /// Argument keys that had to change: the tool, the key on the wire, the key of its schema.
    pub fn keys(&self) -> &[(ToolName, String, String)] {
        &self.keys
    }

    /// Gives a call its names of the registry: the tool's, and those of its arguments.
    pub fn restore(&self, call: &mut ToolCall) {
        call.name = self.tools.from_wire(call.name.as_str());
        if !self.keys.iter().any(|(tool, _, _)| *tool == call.name) {
            return;
        }
        let ToolInput::Object { fields, text } = &mut call.input else { return };
        let key = |wire: String| {
            let known = self.keys.iter().find(|(tool, known, _)| *tool == call.name && *known == wire);
            known.map_or(wire, |(_, _, key)| key.clone())
        };
        *fields = std::mem::take(fields).into_iter().map(|(wire, value)| (key(wire), value)).collect();
        // The text says the names of the wire.
        *text = None;
    }

    /// The same for all calls of a reply.
    pub fn restore_reply(&self, reply: &mut Reply) {
        for part in &mut reply.message.parts {
            if let Part::ToolCall(call) = part {
                self.restore(call);
            }
        }
    }

    /// Gives the properties of a tool's schema keys that Anthropic takes, and keeps the way back.
    pub(crate) fn mend_keys(&mut self, tool: &ToolName, schema: &mut Value) -> bool {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
        if properties.keys().all(|key| is_legal_key(key)) {
            return false;
        }
        let mut renamed: Vec<(String, String)> = Vec::new();
        for key in properties.keys().filter(|key| !is_legal_key(key)) {
            let plain = legal_key(key);
            let mut wire = plain.clone();
            let mut number = 2;
            while properties.contains_key(&wire) || renamed.iter().any(|(_, taken)| *taken == wire) {
                let suffix = format!("_{number}");
                wire = plain.chars().take(MAX_TOOL_NAME - suffix.len()).collect::<String>() + &suffix;
                number += 1;
            }
            renamed.push((key.clone(), wire));
        }
        let new = |key: &str| renamed.iter().find(|(old, _)| old == key).map(|(_, wire)| wire.clone());
        let mended: Map<String, Value> =
            properties.iter().map(|(key, value)| (new(key).unwrap_or_else(|| key.clone()), value.clone())).collect();
        schema["properties"] = Value::Object(mended);
        for name in schema.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(wire) = name.as_str().and_then(new) {
                *name = Value::String(wire);
            }
        }
        self.keys.extend(renamed.into_iter().map(|(key, wire)| (tool.clone(), wire, key)));
        true
    }
}

/// Whether Anthropic takes a key of a schema's properties, at the top: below it nothing is checked.
pub(crate) fn is_legal_key(key: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !key.is_empty() && key.len() <= MAX_TOOL_NAME && key.bytes().all(legal)
}

fn legal_key(key: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    let key: String = key.chars().take(MAX_TOOL_NAME).map(legal).collect();
    if key.is_empty() { "unnamed".to_owned() } else { key }
}
