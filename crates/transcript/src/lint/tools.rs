//! Faults of what a request offers beside the history.

use std::collections::HashSet;

use serde_json::Value;

use super::pairs::Pairs;
use super::{Finding, FindingCode, LintOptions, Section, Severity, Sink};
use crate::format::Format;
use crate::ids::is_legal_tool_name;
use crate::json::{list, string};
use crate::tools::keys::is_legal_key;
use crate::tools::{ToolChoice, ToolKind, decode_offer, schema, thinks};

pub(super) fn lint(request: &Value, options: &LintOptions, sink: &mut Sink) {
    let entries = list(request, "tools");
    if options.format == Format::OpenAiChat
        && request.get("tools").is_some_and(|tools| tools.as_array().is_some_and(Vec::is_empty))
    {
        sink.in_tools(FindingCode::EmptyToolsArray, 0, "", "tools");
    }
    let mut known: HashSet<String> = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        definition(entry, at, options, &mut known, sink);
    }
    if entries.is_empty() && options.profile.tools.wanted_with_history {
        let pairs = Pairs::of(request, options.format);
        if let Some(at) =
            pairs.calls.first().map(|call| call.index).or(pairs.results.first().map(|result| result.index))
        {
            sink.add(FindingCode::ToolsMissing, at, None);
        }
    }
    choice(request, entries, options, &known, sink);
}

impl Sink {
    fn in_tools(&mut self, code: FindingCode, at: usize, name: &str, field: &str) -> &mut Finding {
        let finding = self.add(code, at, None);
        finding.section = Section::Tools;
        if !name.is_empty() {
            finding.ids.push(name.to_owned());
        }
        finding.field = Some(field.to_owned());
        finding
    }

    fn in_choice(&mut self, code: FindingCode, name: &str) -> &mut Finding {
        let finding = self.in_tools(code, 0, name, "tool_choice");
        finding.section = Section::ToolChoice;
        finding
    }
}

fn definition(entry: &Value, at: usize, options: &LintOptions, known: &mut HashSet<String>, sink: &mut Sink) {
    let format = options.format;
    let alone = serde_json::json!({ "tools": [entry] });
    let Some(tool) = decode_offer(&alone, format).offer.tools.pop() else {
        sink.in_tools(FindingCode::BadToolDefinition, at, "", "tools");
        return;
    };
    let name = tool.name.as_str();
    if !known.insert(name.to_owned()) {
        let finding = sink.in_tools(FindingCode::DuplicateTool, at, name, "name");
        if format != Format::Anthropic {
            finding.severity = Severity::Warning;
        }
    }
    let ToolKind::Function(given) = &tool.kind else {
        if matches!(tool.kind, ToolKind::FreeText(_)) && !is_legal_tool_name(name) {
            sink.in_tools(FindingCode::BadToolName, at, name, "name");
        }
        return;
    };
    if !is_legal_tool_name(name) {
        sink.in_tools(FindingCode::BadToolName, at, name, "name");
    }
    let field = if format == Format::Anthropic { "input_schema" } else { "parameters" };
    let Some(given) = given else {
        // What Anthropic wants is an empty schema, not none.
        if format == Format::Anthropic && entry.get(field).is_none_or(Value::is_null) {
            sink.in_tools(FindingCode::BadToolSchema, at, name, field);
        }
        return;
    };
    if schema::fault_at_top(given, format).is_some() {
        sink.in_tools(FindingCode::BadToolSchema, at, name, field);
    } else if tool.strict == Some(true)
        && let Some((place, keyword)) = schema::strict_fault(given, format)
    {
        sink.in_tools(FindingCode::StrictSchema, at, name, &format!("{field}{place}/{keyword}"));
    }
    let keys = given.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (key, _) in keys.filter(|(key, _)| format == Format::Anthropic && !is_legal_key(key)) {
        sink.in_tools(FindingCode::BadPropertyKey, at, name, &format!("{field}/properties/{key}"));
    }
}

fn choice(request: &Value, entries: &[Value], options: &LintOptions, known: &HashSet<String>, sink: &mut Sink) {
    let Some(given) = request.get("tool_choice").filter(|choice| !choice.is_null()) else { return };
    let decoded = decode_offer(request, options.format).offer;
    let Some(choice) = decoded.choice else { return };
    if entries.is_empty() {
        if choice != ToolChoice::None && list(request, "functions").is_empty() {
            let finding = sink.in_choice(FindingCode::ChoiceWithoutTools, "");
            let forced = matches!(choice, ToolChoice::Required | ToolChoice::One(_));
            if options.format != Format::OpenAiChat && !forced {
                finding.severity = Severity::Warning;
            }
        }
        return;
    }
    let named: Vec<&str> = match &choice {
        ToolChoice::One(name) => vec![name.as_str()],
        ToolChoice::Allowed { names, .. } => names.iter().map(|name| name.as_str()).collect(),
        _ => Vec::new(),
    };
    for name in named.into_iter().filter(|name| !known.contains(*name)) {
        sink.in_choice(FindingCode::UnknownToolChoice, name);
    }
    let forced = options.format == Format::Anthropic && matches!(string(given, "type"), "any" | "tool");
    if forced && thinks(request) {
        sink.in_choice(FindingCode::ForcedChoiceWithThinking, "");
    }
}
