//! Offers in the three formats, written.

use serde_json::{Map, Value, json};

use super::{EncodedOffer, FREE_TEXT, Offer, OfferOptions, ToolChoice, ToolDefinition, ToolKind, WireNames, schema};
use crate::convert::{add_fields, own_fields};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::ToolName;

/// Writes what a request offers. The offer itself stays as it is.
pub fn encode_offer(offer: &Offer, format: Format, options: &OfferOptions) -> EncodedOffer {
    let mut writer = Writer { format, options, warnings: Warnings::default(), names: WireNames::of(offer.names()) };
    let rules = options.profile.tools;
    // A choice among some of the tools, where there is no such choice, is a choice among fewer tools.
    let allowed = match &offer.choice {
        Some(ToolChoice::Allowed { names, .. }) if format == Format::Anthropic || !rules.subset => Some(names),
        _ => None,
    };
    let mut entries = Vec::new();
    for tool in &offer.tools {
        if allowed.is_some_and(|names| !names.contains(&tool.name)) {
            writer.warnings.add(WarningCode::ToolNotOffered, tool.name.as_str());
            continue;
        }
        entries.extend(writer.tool(tool));
    }
    let mut fields = Map::new();
    if !entries.is_empty() {
        let choice = writer.choice(offer, allowed.is_some());
        fields.insert("tools".to_owned(), Value::Array(entries));
        if let Some(choice) = choice {
            fields.insert("tool_choice".to_owned(), choice);
        }
        if let Some(parallel) = offer.parallel.filter(|_| format != Format::Anthropic) {
            fields.insert("parallel_tool_calls".to_owned(), json!(parallel));
        }
    }
    EncodedOffer { fields, warnings: writer.warnings, names: writer.names }
}

/// One definition in the form of a format, for the server as its owner documents it; nothing for a tool of another
/// provider's own kind. Its name stays as it is.
pub fn encode_tool(tool: &ToolDefinition, format: Format) -> Option<Value> {
    let options = OfferOptions::default();
    let mut writer = Writer { format, options: &options, warnings: Warnings::default(), names: WireNames::default() };
    let mut entry = writer.tool(tool)?;
    if let Some(name) = entry.pointer_mut(name_pointer(format, &tool.kind)) {
        *name = json!(tool.name.as_str());
    }
    Some(entry)
}

fn name_pointer(format: Format, kind: &ToolKind) -> &'static str {
    match (format, kind) {
        (Format::OpenAiChat, ToolKind::Function(_)) => "/function/name",
        (Format::OpenAiChat, ToolKind::FreeText(_)) => "/custom/name",
        _ => "/name",
    }
}

struct Writer<'a> {
    format: Format,
    options: &'a OfferOptions,
    warnings: Warnings,
    names: WireNames,
}

impl Writer<'_> {
    fn tool(&mut self, tool: &ToolDefinition) -> Option<Value> {
        if let ToolKind::Foreign { format, entry } = &tool.kind {
            if *format == self.format {
                return Some(entry.clone());
            }
            self.warnings.add(WarningCode::ForeignBlock, tool.name.as_str());
            return None;
        }
        let name = self.names.tools.to_wire(&tool.name);
        if name != tool.name.as_str() {
            self.warnings.add(WarningCode::ToolNameRenamed, format!("{} became {name}", tool.name));
        }
        let fields = own_fields(&tool.carried, self.format, &mut self.warnings);
        if let ToolKind::FreeText(grammar) = &tool.kind
            && self.format != Format::Anthropic
            && self.options.profile.tools.free_text
        {
            return Some(self.free_text(tool, &name, grammar.as_ref(), fields));
        }
        let schema = self.schema(tool);
        let strict = self.strict(tool, schema.as_ref());
        let described = tool.description.as_deref();
        Some(match self.format {
            Format::OpenAiChat => {
                let mut function = json!({ "name": name });
                set(&mut function, "description", described.map(Value::from));
                set(&mut function, "parameters", schema);
                set(&mut function, "strict", strict.map(Value::from));
                add_fields(&mut function, fields.and_then(|fields| fields.get("function")?.as_object()), &[]);
                let mut entry = json!({ "type": "function", "function": function });
                add_fields(&mut entry, fields, &["function"]);
                entry
            }
            Format::OpenAiResponses => {
                let mut entry = json!({ "type": "function", "name": name });
                set(&mut entry, "description", described.map(Value::from));
                entry["parameters"] = schema.unwrap_or_default();
                let left = fields.is_some_and(|fields| fields.contains_key("strict"));
                entry["strict"] = match strict {
                    None if left => Value::Null,
                    // What is not said is true there, and would change the schema.
                    strict => json!(strict.unwrap_or(false)),
                };
                add_fields(&mut entry, fields, &["strict"]);
                entry
            }
            Format::Anthropic => {
                let mut entry = json!({ "name": name });
                set(&mut entry, "description", described.map(Value::from));
                entry["input_schema"] = schema.unwrap_or_else(schema::empty);
                set(&mut entry, "strict", strict.map(Value::from));
                add_fields(&mut entry, fields, &[]);
                entry
            }
        })
    }

    fn free_text(
        &mut self,
        tool: &ToolDefinition,
        name: &str,
        grammar: Option<&Value>,
        fields: Option<&Map<String, Value>>,
    ) -> Value {
        let mut held = json!({ "name": name });
        set(&mut held, "description", tool.description.as_deref().map(Value::from));
        if self.format == Format::OpenAiResponses {
            held["type"] = json!("custom");
            set(&mut held, "format", grammar.cloned());
            add_fields(&mut held, fields, &["strict"]);
            return held;
        }
        let nested = grammar.map(|grammar| match grammar.get("type").and_then(Value::as_str) {
            Some("grammar") => {
                let held: Map<String, Value> = grammar
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| *key != "type")
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                json!({ "type": "grammar", "grammar": held })
            }
            _ => grammar.clone(),
        });
        set(&mut held, "format", nested);
        add_fields(&mut held, fields.and_then(|fields| fields.get("function")?.as_object()), &[]);
        let mut entry = json!({ "type": "custom", "custom": held });
        add_fields(&mut entry, fields, &["function"]);
        entry
    }

    fn schema(&mut self, tool: &ToolDefinition) -> Option<Value> {
        let given = match &tool.kind {
            ToolKind::FreeText(_) => {
                self.warnings.add(WarningCode::ToolWrapped, tool.name.as_str());
                return Some(json!({
                    "type": "object", "properties": { FREE_TEXT: { "type": "string" } }, "required": [FREE_TEXT],
                }));
            }
            ToolKind::Function(None) if self.options.profile.tools.empty_schema => return Some(schema::empty()),
            ToolKind::Function(given) => given.as_ref()?,
            ToolKind::Foreign { .. } => return None,
        };
        let mut settled = given.clone();
        if let Some(keyword) = schema::fault_at_top(given, self.format) {
            self.warnings.add(WarningCode::SchemaChanged, format!("{}: {keyword}", tool.name));
            settled = schema::settled(given, self.format);
        }
        if self.format == Format::Anthropic && self.names.mend_keys(&tool.name, &mut settled) {
            self.warnings.add(WarningCode::SchemaChanged, format!("{}: keys of properties", tool.name));
        }
        Some(settled)
    }

    fn strict(&mut self, tool: &ToolDefinition, schema: Option<&Value>) -> Option<bool> {
        let Some(true) = tool.strict else {
            return tool.strict.filter(|_| self.format != Format::Anthropic && self.options.profile.tools.strict);
        };
        if !self.options.profile.tools.strict {
            self.warnings.add(WarningCode::StrictDropped, tool.name.as_str());
            return None;
        }
        let empty = schema::empty();
        match schema::strict_fault(schema.unwrap_or(&empty), self.format) {
            // No arguments: nothing can be wrong with them.
            _ if schema.is_none() => Some(true),
            None => Some(true),
            Some((at, keyword)) => {
                self.warnings.add(WarningCode::StrictDropped, format!("{}: {keyword} at {at:?}", tool.name));
                (self.format != Format::Anthropic).then_some(false)
            }
        }
    }

    fn choice(&mut self, offer: &Offer, narrowed: bool) -> Option<Value> {
        let choice = match &offer.choice {
            Some(ToolChoice::Foreign { format, choice }) if *format == self.format => return Some(choice.clone()),
            Some(ToolChoice::Foreign { .. }) => {
                self.warnings.add(WarningCode::ChoiceWeakened, "a choice of another provider's own kind");
                None
            }
            Some(ToolChoice::Allowed { required, .. }) if narrowed => {
                Some(if *required { ToolChoice::Required } else { ToolChoice::Auto })
            }
            other => other.clone(),
        };
        if self.format == Format::Anthropic {
            return self.anthropic_choice(choice, offer.parallel);
        }
        let (format, free_text) = (self.format, self.options.profile.tools.free_text);
        let one = |name: &ToolName, wire: String| {
            let named = offer.tools.iter().find(|tool| tool.name == *name);
            let free = named.is_some_and(|tool| matches!(tool.kind, ToolKind::FreeText(_)));
            let kind = if free && free_text { "custom" } else { "function" };
            match format {
                Format::OpenAiChat => json!({ "type": kind, kind: { "name": wire } }),
                _ => json!({ "type": kind, "name": wire }),
            }
        };
        Some(match choice? {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::Required => json!("required"),
            ToolChoice::None => json!("none"),
            ToolChoice::One(name) => {
                let wire = self.names.tools.to_wire(&name);
                one(&name, wire)
            }
            ToolChoice::Allowed { required, names } => {
                let wires: Vec<String> = names.iter().map(|name| self.names.tools.to_wire(name)).collect();
                let tools: Vec<Value> = names.iter().zip(wires).map(|(name, wire)| one(name, wire)).collect();
                let mode = if required { "required" } else { "auto" };
                match self.format {
                    Format::OpenAiChat => {
                        json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
                    }
                    _ => json!({ "type": "allowed_tools", "mode": mode, "tools": tools }),
                }
            }
            ToolChoice::Foreign { .. } => return None,
        })
    }

    fn anthropic_choice(&mut self, choice: Option<ToolChoice>, parallel: Option<bool>) -> Option<Value> {
        let forced = matches!(choice, Some(ToolChoice::Required | ToolChoice::One(_)));
        let choice = if forced && self.options.thinking {
            self.warnings.add(WarningCode::ChoiceWeakened, "a forced choice is refused while thinking is on");
            Some(ToolChoice::Auto)
        } else {
            choice
        };
        let mut written = match &choice {
            None if parallel == Some(false) => json!({ "type": "auto" }),
            None | Some(ToolChoice::Foreign { .. } | ToolChoice::Allowed { .. }) => return None,
            Some(ToolChoice::Auto) => json!({ "type": "auto" }),
            Some(ToolChoice::Required) => json!({ "type": "any" }),
            Some(ToolChoice::None) => return Some(json!({ "type": "none" })),
            Some(ToolChoice::One(name)) => json!({ "type": "tool", "name": self.names.tools.to_wire(name) }),
        };
        if let Some(parallel) = parallel {
            written["disable_parallel_tool_use"] = json!(!parallel);
        }
        Some(written)
    }
}

fn set(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[key] = value;
    }
}
