//! Offers of the three formats, read.

use serde_json::{Map, Value, json};

use super::{DecodedOffer, Offer, ToolChoice, ToolDefinition, ToolKind, schema};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::ToolName;
use crate::json::{filled, list, rest, string};
use crate::model::Carried;

/// Reads what a request offers: `tools`, `tool_choice` and what says whether calls may be parallel. Never fails: an
/// entry that is none is left out with a warning.
pub fn decode_offer(request: &Value, format: Format) -> DecodedOffer {
    let mut warnings = Warnings::default();
    let mut tools = Vec::new();
    for entry in list(request, "tools") {
        match tool(entry, format) {
            Some(tool) => tools.push(tool),
            None => warnings.add(WarningCode::Unreadable, "a tool that is in no form of this format"),
        }
    }
    if format == Format::OpenAiChat {
        // The form before there were tools.
        let old = list(request, "functions").iter().map(|function| json!({ "type": "function", "function": function }));
        tools.extend(old.filter_map(|entry| tool(&entry, format)));
    }
    let told = request.get("tool_choice").filter(|choice| !choice.is_null());
    let choice = match format {
        Format::OpenAiChat => told.map(|choice| openai_choice(choice, format)).or_else(|| {
            let old = request.get("function_call").filter(|choice| !choice.is_null())?;
            Some(match old.as_str() {
                Some(_) => openai_choice(old, format),
                None => ToolChoice::One(ToolName::new(string(old, "name"))),
            })
        }),
        Format::OpenAiResponses => told.map(|choice| openai_choice(choice, format)),
        Format::Anthropic => told.map(anthropic_choice),
    };
    let parallel = match format {
        Format::Anthropic => {
            told.and_then(|choice| choice.get("disable_parallel_tool_use")).and_then(Value::as_bool).map(|off| !off)
        }
        Format::OpenAiChat | Format::OpenAiResponses => request.get("parallel_tool_calls").and_then(Value::as_bool),
    };
    DecodedOffer { offer: Offer { tools, choice, parallel }, warnings }
}

fn tool(entry: &Value, format: Format) -> Option<ToolDefinition> {
    if !entry.is_object() {
        return None;
    }
    match (format, entry.get("type").and_then(Value::as_str)) {
        (Format::OpenAiChat, Some(kind @ ("function" | "custom"))) => chat_tool(entry, kind),
        (Format::OpenAiResponses, Some(kind @ ("function" | "custom"))) => responses_tool(entry, kind),
        (Format::Anthropic, None | Some("custom")) => anthropic_tool(entry),
        // In the form of another API.
        (_, None | Some("function")) => None,
        _ => Some(ToolDefinition {
            name: ToolName::new(filled(entry, "name").unwrap_or_else(|| string(entry, "type"))),
            description: None,
            kind: ToolKind::Foreign { format, entry: entry.clone() },
            strict: None,
            carried: Carried::default(),
        }),
    }
}

fn description(entry: &Value) -> Option<String> {
    entry.get("description").and_then(Value::as_str).map(str::to_owned)
}

fn given(entry: &Value, key: &str) -> Option<Value> {
    entry.get(key).filter(|value| !value.is_null()).cloned()
}

fn chat_tool(entry: &Value, kind: &str) -> Option<ToolDefinition> {
    let held = entry.get(kind).filter(|held| held.is_object())?;
    let mut fields = rest(entry, &["type", kind]);
    let inner = rest(held, &["name", "description", "parameters", "strict", "format"]);
    if !inner.is_empty() {
        fields.insert("function".to_owned(), Value::Object(inner));
    }
    let takes = if kind == "custom" {
        ToolKind::FreeText(given(held, "format").map(|grammar| flat_grammar(&grammar)))
    } else {
        ToolKind::Function(given(held, "parameters"))
    };
    Some(ToolDefinition {
        name: ToolName::new(string(held, "name")),
        description: description(held),
        kind: takes,
        strict: held.get("strict").and_then(Value::as_bool),
        carried: Carried::new(Format::OpenAiChat, fields),
    })
}

/// Chat has the grammar in an object of its own, Responses beside its kind.
fn flat_grammar(grammar: &Value) -> Value {
    let Some(held) = grammar.get("grammar").and_then(Value::as_object) else { return grammar.clone() };
    let mut flat = Map::from_iter([("type".to_owned(), json!("grammar"))]);
    flat.extend(held.clone());
    Value::Object(flat)
}

fn responses_tool(entry: &Value, kind: &str) -> Option<ToolDefinition> {
    entry.get("name")?;
    let mut fields = rest(entry, &["type", "name", "description", "parameters", "strict", "format"]);
    // Nothing is not the same as false there: the provider is to try.
    if entry.get("strict").is_some_and(Value::is_null) {
        fields.insert("strict".to_owned(), Value::Null);
    }
    let takes = if kind == "custom" {
        ToolKind::FreeText(given(entry, "format"))
    } else {
        ToolKind::Function(given(entry, "parameters"))
    };
    Some(ToolDefinition {
        name: ToolName::new(string(entry, "name")),
        description: description(entry),
        kind: takes,
        strict: entry.get("strict").and_then(Value::as_bool),
        carried: Carried::new(Format::OpenAiResponses, fields),
    })
}

fn anthropic_tool(entry: &Value) -> Option<ToolDefinition> {
    entry.get("input_schema").or_else(|| entry.get("name"))?;
    let mut fields = rest(entry, &["type", "name", "description", "input_schema", "strict"]);
    if entry.get("type").is_some_and(|kind| kind == "custom") {
        fields.insert("type".to_owned(), json!("custom"));
    }
    Some(ToolDefinition {
        name: ToolName::new(string(entry, "name")),
        description: description(entry),
        kind: ToolKind::Function(given(entry, "input_schema").filter(|given| *given != schema::empty())),
        strict: entry.get("strict").and_then(Value::as_bool),
        carried: Carried::new(Format::Anthropic, fields),
    })
}

fn openai_choice(choice: &Value, format: Format) -> ToolChoice {
    let foreign = || ToolChoice::Foreign { format, choice: choice.clone() };
    if let Some(word) = choice.as_str() {
        return match word {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            "none" => ToolChoice::None,
            _ => foreign(),
        };
    }
    let named = |entry: &Value| {
        let kind = string(entry, "type");
        let name = match format {
            Format::OpenAiChat => entry.get(kind).and_then(|held| filled(held, "name")),
            _ => filled(entry, "name"),
        };
        name.filter(|_| matches!(kind, "function" | "custom")).map(ToolName::new)
    };
    if string(choice, "type") == "allowed_tools" {
        let held = choice.get("allowed_tools").filter(|_| format == Format::OpenAiChat).unwrap_or(choice);
        let entries = list(held, "tools");
        let names: Vec<ToolName> = entries.iter().filter_map(named).collect();
        if names.len() != entries.len() {
            return foreign();
        }
        return ToolChoice::Allowed { required: string(held, "mode") == "required", names };
    }
    named(choice).map_or_else(foreign, ToolChoice::One)
}

fn anthropic_choice(choice: &Value) -> ToolChoice {
    match string(choice, "type") {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::One(ToolName::new(string(choice, "name"))),
        _ => ToolChoice::Foreign { format: Format::Anthropic, choice: choice.clone() },
    }
}
