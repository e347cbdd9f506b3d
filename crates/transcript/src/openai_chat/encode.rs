//! The canonical form to Chat Completions.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::decode::{GOOGLE_SIGNATURE, SIGNATURE_MARK};
use crate::convert::{
    EncodeOptions, Encoded, Reply, add_fields, is_custom, marked, own_fields, place_results, with_legal_ids,
};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{NameTable, ToolCallId};
use crate::model::{
    Content, ImagePart, Message, Part, ReasoningFormat, ReasoningPart, Role, StopReason, TextPart, ToolCall,
    ToolResult, Transcript,
};
use crate::profile::{EmptyContent, Profile, ReasoningField};

const FORMAT: Format = Format::OpenAiChat;

struct Writer<'a> {
    options: &'a EncodeOptions,
    warnings: Warnings,
    names: NameTable,
    messages: Vec<Value>,
    /// Signatures that go back inside the id of their call.
    packed: HashMap<String, String>,
}

/// Writes a history: `messages`.
pub fn encode_history(transcript: &Transcript, options: &EncodeOptions) -> Encoded {
    let mut warnings = Warnings::default();
    let mut copy = with_legal_ids(transcript, FORMAT, options.profile, &mut warnings);
    place_results(&mut copy);
    let mut writer = Writer::new(options, warnings);
    if options.profile.signature_in_id {
        let calls = copy.messages.iter().flat_map(Message::calls);
        writer.packed = calls.filter_map(|call| Some((call.id.as_str().to_owned(), call.signature.clone()?))).collect();
    }
    let turns = tool_turns(&copy.messages);
    for (index, message) in copy.messages.iter().enumerate() {
        match message.role {
            Role::System => writer.plain(message, options.profile.system_role),
            Role::User => writer.plain(message, "user"),
            Role::Tool => writer.results(message),
            Role::Assistant => {
                let message = writer.assistant(message, turns[index]);
                writer.messages.extend(message);
            }
        }
    }
    if !options.profile.user_after_tool {
        writer.part_user_from_results();
    }
    Encoded { payload: json!({ "messages": writer.messages }), warnings: writer.warnings, names: writer.names }
}

/// Writes a reply as the API would have: a whole completion. `created` is in seconds since 1970.
pub fn encode_reply(reply: &Reply, id: &str, model: &str, created: u64) -> (Value, Warnings) {
    let options = EncodeOptions::default();
    let mut writer = Writer::new(&options, Warnings::default());
    let empty = json!({ "role": "assistant", "content": "" });
    let mut message = writer.assistant(&reply.message, false).unwrap_or(empty);
    let usage = reply.usage.unwrap_or_default();
    // A reply has one text and one refusal, however many parts they came in.
    let (mut text, mut refusal) = (String::new(), String::new());
    for part in &reply.message.parts {
        match part {
            Part::Text(part) => text.push_str(&part.text),
            Part::Refusal(part) => refusal.push_str(&part.text),
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        message["content"] = json!(text);
    }
    message["refusal"] = if refusal.is_empty() { Value::Null } else { json!(refusal) };
    let completion = json!({
        "id": id, "object": "chat.completion", "created": created, "model": model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_label(reply.stop_reason),
        }],
        "usage": usage_value(&usage),
    });
    (completion, writer.warnings)
}

pub(super) fn usage_value(usage: &crate::convert::Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": { "cached_tokens": usage.cache_read },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

pub(super) fn finish_label(reason: StopReason) -> &'static str {
    match reason {
        StopReason::ToolUse => "tool_calls",
        StopReason::Length => "length",
        StopReason::Filter => "content_filter",
        StopReason::End | StopReason::Refusal | StopReason::Pause | StopReason::Error => "stop",
    }
}

/// For each message whether a tool was called between the user messages around it.
fn tool_turns(messages: &[Message]) -> Vec<bool> {
    let mut turns = Vec::with_capacity(messages.len());
    for turn in messages.split_inclusive(|message| message.role == Role::User) {
        let called = turn.iter().any(|message| message.calls().next().is_some());
        turns.resize(turns.len() + turn.len(), called);
    }
    turns
}

impl<'a> Writer<'a> {
    fn new(options: &'a EncodeOptions, warnings: Warnings) -> Self {
        Self { options, warnings, names: NameTable::default(), messages: Vec::new(), packed: HashMap::new() }
    }

    fn wire_id(&self, id: &ToolCallId) -> String {
        match self.packed.get(id.as_str()) {
            Some(signature) => format!("{id}{SIGNATURE_MARK}{signature}"),
            None => id.as_str().to_owned(),
        }
    }

    fn text(&mut self, text: &TextPart) -> Value {
        let mut block = json!({ "type": "text", "text": text.text });
        add_fields(&mut block, own_fields(&text.carried, FORMAT, &mut self.warnings), &[]);
        block
    }

    fn image(&mut self, image: &ImagePart) -> Value {
        let fields = own_fields(&image.carried, FORMAT, &mut self.warnings);
        let mut held = json!({ "url": image.url() });
        if let Some(detail) = fields.and_then(|fields| fields.get("detail")) {
            held["detail"] = detail.clone();
        }
        let mut block = json!({ "type": "image_url", "image_url": held });
        add_fields(&mut block, fields, &["detail"]);
        block
    }

    fn foreign(&mut self, foreign: &crate::model::ForeignPart) -> Option<Value> {
        if foreign.format == FORMAT {
            return Some(foreign.block.clone());
        }
        self.warnings.add(WarningCode::ForeignBlock, foreign.kind());
        None
    }

    /// One text without fields of its own is a string; everything else a list.
    fn content(blocks: Vec<Value>) -> Value {
        match blocks.as_slice() {
            [only] if only["type"] == "text" && only.as_object().is_some_and(|fields| fields.len() == 2) => {
                only["text"].clone()
            }
            _ => Value::Array(blocks),
        }
    }

    fn plain(&mut self, message: &Message, role: &str) {
        let mut blocks = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) => blocks.push(self.text(text)),
                Part::Image(image) => blocks.push(self.image(image)),
                Part::Foreign(foreign) => blocks.extend(self.foreign(foreign)),
                _ => {}
            }
        }
        if blocks.is_empty() {
            return;
        }
        let mut object = json!({ "role": role, "content": Self::content(blocks) });
        if let Some(name) = &message.name {
            object["name"] = json!(name);
        }
        add_fields(&mut object, own_fields(&message.carried, FORMAT, &mut self.warnings), &[]);
        self.messages.push(object);
    }

    fn results(&mut self, message: &Message) {
        let mut moved = Vec::new();
        for result in message.results() {
            self.result(result, &mut moved);
        }
        if !moved.is_empty() {
            self.messages.push(json!({ "role": "user", "content": moved }));
        }
    }

    fn result(&mut self, result: &ToolResult, moved: &mut Vec<Value>) {
        let (mut blocks, mut images) = (Vec::new(), Vec::new());
        for content in &result.output.content {
            match content {
                Content::Text(text) => blocks.push(self.text(text)),
                Content::Image(image) => images.push(self.image(image)),
                Content::Foreign(foreign) => blocks.extend(self.foreign(foreign)),
            }
        }
        if result.output.is_error {
            self.warnings.add(WarningCode::ErrorFlagAsText, result.call_id.as_str());
            match blocks.iter_mut().find(|block| block["type"] == "text") {
                Some(first) => first["text"] = json!(marked(first["text"].as_str().unwrap_or_default())),
                None => blocks.insert(0, json!({ "type": "text", "text": marked("") })),
            }
        }
        if !images.is_empty() {
            self.warnings.add(WarningCode::ImageMovedToUser, result.call_id.as_str());
            let images_of = format!("Images in the result of the call {}:", result.call_id);
            moved.push(json!({ "type": "text", "text": images_of }));
            moved.extend(images);
        }
        let content = if blocks.is_empty() { json!("") } else { Self::content(blocks) };
        let mut object = json!({ "role": "tool", "tool_call_id": self.wire_id(&result.call_id), "content": content });
        let fields = own_fields(&result.carried, FORMAT, &mut self.warnings);
        let named = self.options.profile.result_name
            || (fields.is_some_and(|fields| fields.contains_key("result_name"))
                && !self.options.profile.refuses_unknown_fields);
        if let Some(name) = result.name.as_ref().filter(|_| named) {
            object["name"] = json!(self.names.to_wire(name));
        }
        add_fields(&mut object, fields, &["result_name"]);
        self.messages.push(object);
    }

    fn assistant(&mut self, message: &Message, tool_turn: bool) -> Option<Value> {
        let (mut blocks, mut calls, mut refusals, mut thoughts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in &message.parts {
            match part {
                Part::Text(text) if text.text.trim().is_empty() => {}
                Part::Text(text) => {
                    if !calls.is_empty() {
                        self.warnings.add_once(WarningCode::OrderChanged, "calls go behind the text of their message");
                    }
                    blocks.push(self.text(text));
                }
                Part::Foreign(foreign) => blocks.extend(self.foreign(foreign)),
                Part::Refusal(refusal) => refusals.push(refusal.text.as_str()),
                Part::ToolCall(call) => {
                    let first = calls.is_empty();
                    let call = self.call(call, first);
                    calls.push(call);
                }
                Part::Reasoning(reasoning) => thoughts.extend(self.reasoning(reasoning, tool_turn)),
                Part::Image(_) | Part::ToolResult(_) => {}
            }
        }
        if blocks.is_empty() && calls.is_empty() && refusals.is_empty() {
            if !thoughts.is_empty() {
                self.warnings.add(WarningCode::ReasoningDropped, "reasoning without an answer");
            }
            return None;
        }
        let mut object = json!({ "role": "assistant" });
        object["content"] = if !blocks.is_empty() {
            Self::content(blocks)
        } else if self.options.profile.empty_content == EmptyContent::Null || !refusals.is_empty() {
            Value::Null
        } else {
            json!("")
        };
        if let Some(name) = &message.name {
            object["name"] = json!(name);
        }
        if let Some((field, _, _)) = thoughts.first() {
            let text: Vec<&str> = thoughts.iter().map(|(_, reasoning, _)| reasoning.text.as_str()).collect();
            let text = text.join("\n\n");
            if !text.trim().is_empty() {
                object[*field] = json!(text);
            }
            if let Some(details) = thoughts.iter().find_map(|(_, _, details)| *details) {
                object["reasoning_details"] = details.clone();
            }
        }
        if !refusals.is_empty() {
            object["refusal"] = json!(refusals.join("\n"));
        }
        if !calls.is_empty() {
            object["tool_calls"] = Value::Array(calls);
        }
        let fields = own_fields(&message.carried, FORMAT, &mut self.warnings);
        if !self.options.profile.refuses_unknown_fields {
            add_fields(&mut object, fields, &[]);
        }
        Some(object)
    }

    fn call(&mut self, call: &ToolCall, first: bool) -> Value {
        let name = self.names.to_wire(&call.name);
        if name != call.name.as_str() {
            self.warnings.add(WarningCode::ToolNameRenamed, format!("{} became {name}", call.name));
        }
        if call.input.fields().is_none() {
            self.warnings.add(WarningCode::ArgumentsReplaced, call.id.as_str());
        }
        let fields = own_fields(&call.carried, FORMAT, &mut self.warnings);
        let custom = is_custom(&call.carried) && (fields.is_some() || self.options.profile.tools.free_text);
        let mut object = if custom {
            let input = call.input.fields().and_then(|fields| fields.get("input")).cloned().unwrap_or(json!(""));
            json!({ "id": self.wire_id(&call.id), "type": "custom", "custom": { "name": name, "input": input } })
        } else {
            json!({
                "id": self.wire_id(&call.id), "type": "function",
                "function": { "name": name, "arguments": call.input.wire_text() },
            })
        };
        let profile = self.options.profile;
        let held = fields.and_then(|fields| fields.get("extra_content"));
        // The documented filler is for calls that another model made.
        let filler = first.then_some("skip_thought_signature_validator");
        match call.signature.as_deref().or(filler) {
            Some(signature) if profile.google_signatures => {
                let mut extra = held.filter(|extra| extra.is_object()).cloned().unwrap_or(json!({}));
                if !extra["google"].is_object() {
                    extra["google"] = json!({});
                }
                extra["google"]["thought_signature"] = json!(signature);
                object["extra_content"] = extra;
            }
            _ if call.signature.is_some() && !profile.signature_in_id && !signature_stays(call, profile) => {
                self.warnings.add(WarningCode::SignatureDropped, call.id.as_str());
            }
            _ => {}
        }
        if !self.options.profile.refuses_unknown_fields {
            add_fields(&mut object, fields, &["type"]);
        }
        object
    }

    fn reasoning<'p>(
        &mut self,
        reasoning: &'p ReasoningPart,
        tool_turn: bool,
    ) -> Option<(&'static str, &'p ReasoningPart, Option<&'p Value>)> {
        let field = match self.options.profile.reasoning {
            ReasoningField::Content => Some("reasoning_content"),
            ReasoningField::ContentInToolTurns => tool_turn.then_some("reasoning_content"),
            ReasoningField::Reasoning => Some("reasoning"),
            ReasoningField::Omit => None,
        };
        match (reasoning.format, field) {
            (ReasoningFormat::ReasoningContent, Some(field)) => {
                let details = reasoning.carried.of(FORMAT).and_then(|fields| fields.get("reasoning_details"));
                Some((field, reasoning, details.filter(|_| field == "reasoning")))
            }
            (format, _) => {
                let code = if reasoning.signature.is_some() {
                    WarningCode::SignatureDropped
                } else {
                    WarningCode::ReasoningDropped
                };
                self.warnings.add(code, format.name());
                None
            }
        }
    }

    /// Puts a short assistant message between results and a user message, for servers that refuse the two side by side.
    fn part_user_from_results(&mut self) {
        let messages = std::mem::take(&mut self.messages);
        for message in messages {
            let behind_result = self.messages.last().is_some_and(|last| last["role"] == "tool");
            if behind_result && message["role"] == "user" {
                self.warnings.add(WarningCode::MessageInserted, "between results and a user message");
                self.messages.push(json!({ "role": "assistant", "content": BETWEEN }));
            }
            self.messages.push(message);
        }
    }
}

/// Whether the signature goes back in the field that it came in.
pub(crate) fn signature_stays(call: &ToolCall, profile: &Profile) -> bool {
    let field = GOOGLE_SIGNATURE.split('/').nth(1).unwrap_or_default();
    !profile.refuses_unknown_fields && call.carried.of(FORMAT).is_some_and(|fields| fields.contains_key(field))
}

/// What the assistant is made to say between results and a user message where a server wants something there.
pub(crate) const BETWEEN: &str = "I have the results.";
