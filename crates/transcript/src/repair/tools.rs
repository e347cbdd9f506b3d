//! Faults of what a request offers beside the history.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::format::Format;
use crate::ids::{ToolName, is_legal_tool_name};
use crate::json::{list, string};
use crate::lint::LintOptions;
use crate::tools::{ToolChoice, ToolDefinition, ToolKind, WireNames, decode_offer, schema, thinks};

pub(super) fn repair(request: &mut Value, options: &LintOptions) {
    let format = options.format;
    if let Some(entries) = request.get_mut("tools").and_then(Value::as_array_mut) {
        entries.retain(|entry| read(entry, format).is_some());
    }
    let tools: Vec<ToolDefinition> = list(request, "tools").iter().filter_map(|entry| read(entry, format)).collect();
    let called = tools.iter().filter(|tool| !matches!(tool.kind, ToolKind::Foreign { .. })).map(|tool| &tool.name);
    let mut names = WireNames::of(called);
    if let Some(entries) = request.get_mut("tools").and_then(Value::as_array_mut) {
        for (entry, tool) in entries.iter_mut().zip(&tools) {
            mend(entry, tool, format, &mut names);
        }
        if format == Format::Anthropic {
            let mut seen = HashSet::new();
            let mut kept = tools.iter().map(|tool| seen.insert(tool.name.clone()));
            entries.retain(|_| kept.next().unwrap_or(true));
        }
    }
    if tools.is_empty()
        && format == Format::OpenAiChat
        && let Some(fields) = request.as_object_mut()
        && fields.get("tools").is_some_and(Value::is_array)
    {
        fields.remove("tools");
    }
    choice(request, &tools, &mut names, format);
    rename_calls(request, &names, format);
}

fn read(entry: &Value, format: Format) -> Option<ToolDefinition> {
    decode_offer(&json!({ "tools": [entry] }), format).offer.tools.pop()
}

fn mend(entry: &mut Value, tool: &ToolDefinition, format: Format, names: &mut WireNames) {
    let holder = match (format, &tool.kind) {
        (_, ToolKind::Foreign { .. }) => return,
        (Format::OpenAiChat, ToolKind::FreeText(_)) => entry.get_mut("custom"),
        (Format::OpenAiChat, ToolKind::Function(_)) => entry.get_mut("function"),
        (Format::OpenAiResponses | Format::Anthropic, _) => Some(entry),
    };
    let Some(holder) = holder.filter(|holder| holder.is_object()) else { return };
    if !is_legal_tool_name(tool.name.as_str()) {
        holder["name"] = json!(names.tools.to_wire(&tool.name));
    }
    if !matches!(tool.kind, ToolKind::Function(_)) {
        return;
    }
    let field = if format == Format::Anthropic { "input_schema" } else { "parameters" };
    let missing = holder.get(field).is_none_or(Value::is_null);
    if missing && format == Format::Anthropic {
        holder[field] = schema::empty();
    }
    let Some(given) = holder.get_mut(field).filter(|_| !missing) else { return };
    if schema::fault_at_top(given, format).is_some() {
        *given = schema::settled(given, format);
    }
    if format == Format::Anthropic {
        names.mend_keys(&tool.name, given);
    }
    if tool.strict == Some(true) && schema::strict_fault(given, format).is_some() {
        holder["strict"] = json!(false);
    }
}

fn choice(request: &mut Value, tools: &[ToolDefinition], names: &mut WireNames, format: Format) {
    let Some(choice) = decode_offer(request, format).offer.choice else { return };
    if request.get("tool_choice").is_none_or(Value::is_null) {
        return;
    }
    let offered = |name: &ToolName| tools.iter().any(|tool| tool.name == *name);
    let wire = |name: &ToolName, names: &mut WireNames| names.tools.to_wire(name);
    let thinking = format == Format::Anthropic && thinks(request);
    let Some(fields) = request.as_object_mut() else { return };
    if tools.is_empty() {
        if choice != ToolChoice::None {
            fields.remove("tool_choice");
        }
        return;
    }
    let let_choose = match &choice {
        ToolChoice::One(name) => thinking || !offered(name),
        ToolChoice::Required => thinking,
        ToolChoice::Allowed { names, .. } => !names.iter().all(offered),
        _ => false,
    };
    let Some(given) = fields.get_mut("tool_choice") else { return };
    if let_choose {
        *given = match format {
            Format::Anthropic => {
                let mut chosen = json!({ "type": "auto" });
                if let Some(off) = given.get("disable_parallel_tool_use") {
                    chosen["disable_parallel_tool_use"] = off.clone();
                }
                chosen
            }
            Format::OpenAiChat | Format::OpenAiResponses => json!("auto"),
        };
        return;
    }
    // A tool that was renamed is chosen by its new name.
    let mut rename = |entry: &mut Value| {
        let kind = string(entry, "type").to_owned();
        let holder = if format == Format::OpenAiChat { entry.get_mut(&kind) } else { Some(entry) };
        if let Some(holder) = holder.filter(|holder| holder.get("name").is_some_and(Value::is_string)) {
            let name = wire(&ToolName::new(string(holder, "name")), names);
            holder["name"] = json!(name);
        }
    };
    match choice {
        ToolChoice::One(_) => rename(given),
        ToolChoice::Allowed { .. } => {
            let held = if format == Format::OpenAiChat { given.get_mut("allowed_tools") } else { Some(given) };
            let entries = held.and_then(|held| held.get_mut("tools")?.as_array_mut());
            entries.into_iter().flatten().for_each(rename);
        }
        _ => {}
    }
}

/// Calls of tools that were renamed.
fn rename_calls(request: &mut Value, names: &WireNames, format: Format) {
    if names.tools.pairs().is_empty() {
        return;
    }
    let rename = |holder: Option<&mut Value>| {
        let Some(holder) = holder.filter(|holder| holder.get("name").is_some_and(Value::is_string)) else { return };
        let name = string(holder, "name").to_owned();
        if let Some((_, wire)) = names.tools.pairs().iter().find(|(known, _)| known.as_str() == name) {
            holder["name"] = json!(wire);
        }
    };
    let key = if format == Format::OpenAiResponses { "input" } else { "messages" };
    for item in request.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
        match format {
            Format::OpenAiChat => {
                for call in item.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                    rename(call.get_mut("function"));
                    rename(call.get_mut("custom"));
                }
            }
            Format::OpenAiResponses => {
                if matches!(string(item, "type"), "function_call" | "custom_tool_call") {
                    rename(Some(item));
                }
            }
            Format::Anthropic => {
                for block in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                    if string(block, "type") == "tool_use" {
                        rename(Some(block));
                    }
                }
            }
        }
    }
}
