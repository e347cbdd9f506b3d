//! The canonical form to Anthropic Messages.

use serde_json::{Value, json};

use crate::convert::{EncodeOptions, Encoded, MidSystem, Reply, add_fields, own_fields, place_results, with_legal_ids};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::NameTable;
use crate::model::{
    Content, ImagePart, ImageSource, Message, Part, ReasoningFormat, ReasoningPart, Role, StopReason, TextPart,
    ToolCall, ToolResult, Transcript,
};

const FORMAT: Format = Format::Anthropic;

/// Block types that only the provider itself may make or answer.
pub(crate) mod block_kinds {
    /// Whether the block is the call of one of the server's own tools.
    pub(crate) fn is_server_call(kind: &str) -> bool {
        kind == "server_tool_use" || kind == "mcp_tool_use"
    }

    /// Whether the block answers one.
    pub(crate) fn is_server_result(kind: &str) -> bool {
        kind.ends_with("_tool_result")
    }
}

struct Writer<'a> {
    options: &'a EncodeOptions,
    warnings: Warnings,
    names: NameTable,
    turns: Vec<(&'static str, Vec<Value>)>,
}

/// Writes a history: `messages`, and `system` where there is system text. Neighbours of one role become one turn.
pub fn encode_history(transcript: &Transcript, options: &EncodeOptions) -> Encoded {
    let mut warnings = Warnings::default();
    let mut copy = with_legal_ids(transcript, FORMAT, options.profile, &mut warnings);
    place_results(&mut copy);
    let mut writer = Writer { options, warnings, names: NameTable::default(), turns: Vec::new() };
    let leading = copy.messages.iter().take_while(|message| message.role == Role::System).count();
    let mut system: Vec<&Message> = copy.messages[..leading].iter().collect();
    let later = &copy.messages[leading..];
    for (index, message) in later.iter().enumerate() {
        if let Some(name) = &message.name {
            writer.warnings.add(WarningCode::NameDropped, name);
        }
        match message.role {
            Role::System => writer.later_system(message, &later[index + 1..], &mut system),
            Role::User => {
                let blocks = message.parts.iter().filter_map(|part| writer.user_block(part)).collect();
                writer.turn("user", blocks);
            }
            Role::Tool => {
                let blocks = message.results().map(|result| writer.result_block(result)).collect();
                writer.turn("user", blocks);
            }
            Role::Assistant => {
                let blocks = writer.assistant_blocks(message);
                writer.turn("assistant", blocks);
            }
        }
    }
    let system = writer.system_value(&system);
    let messages: Vec<Value> =
        writer.turns.iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect();
    let mut payload = json!({ "messages": messages });
    if let Some(system) = system {
        payload["system"] = system;
    }
    Encoded { payload, warnings: writer.warnings, names: writer.names }
}

/// Writes a reply as the API would have: a whole message with the given id and model.
pub fn encode_reply(reply: &Reply, id: &str, model: &str) -> (Value, Warnings) {
    let options = EncodeOptions::default();
    let mut writer =
        Writer { options: &options, warnings: Warnings::default(), names: NameTable::default(), turns: Vec::new() };
    // Nothing is sent back: the client sees the order of the reply.
    let in_order = Message { origin: Some(FORMAT), ..reply.message.clone() };
    let content = writer.assistant_blocks(&in_order);
    let usage = reply.usage.unwrap_or_default();
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_label(reply.stop_reason), "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write),
            "cache_creation_input_tokens": usage.cache_write, "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        },
    });
    (message, writer.warnings)
}

pub(super) fn stop_label(reason: StopReason) -> &'static str {
    match reason {
        StopReason::ToolUse => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Refusal | StopReason::Filter => "refusal",
        StopReason::Pause => "pause_turn",
        StopReason::End | StopReason::Error => "end_turn",
    }
}

impl Writer<'_> {
    fn turn(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some((last, held)) if *last == role => held.extend(blocks),
            _ => self.turns.push((role, blocks)),
        }
    }

    fn later_system<'m>(&mut self, message: &'m Message, rest: &[Message], system: &mut Vec<&'m Message>) {
        // Several in a row are one message, in place or not.
        let behind_user = self.turns.last().is_some_and(|(role, _)| matches!(*role, "user" | "system"));
        let next = rest.iter().find(|message| message.role != Role::System);
        let before_assistant = next.is_none_or(|next| next.role == Role::Assistant);
        match self.options.mid_system {
            MidSystem::Native if behind_user && before_assistant => {
                let blocks = message.parts.iter().filter_map(|part| self.user_block(part)).collect();
                self.turn("system", blocks);
            }
            MidSystem::User => {
                self.warnings.add(WarningCode::SystemTextMoved, "to a user message");
                let blocks = message.parts.iter().filter_map(|part| self.user_block(part)).collect();
                self.turn("user", blocks);
            }
            MidSystem::Native | MidSystem::Hoist => {
                self.warnings.add(WarningCode::SystemTextMoved, "to the front");
                system.push(message);
            }
        }
    }

    fn system_value(&mut self, messages: &[&Message]) -> Option<Value> {
        let texts: Vec<&TextPart> = messages
            .iter()
            .flat_map(|message| &message.parts)
            .filter_map(|part| match part {
                Part::Text(text) => Some(text),
                _ => None,
            })
            .collect();
        let marked = texts.iter().any(|text| text.carried.of(FORMAT).is_some());
        if texts.is_empty() {
            return None;
        }
        if marked || (messages.len() == 1 && texts.len() > 1) {
            return Some(texts.into_iter().map(|text| self.text_block(text)).collect());
        }
        for text in &texts {
            own_fields(&text.carried, FORMAT, &mut self.warnings);
        }
        Some(json!(texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>().join("\n\n")))
    }

    fn text_block(&mut self, text: &TextPart) -> Value {
        let mut block = json!({ "type": "text", "text": text.text });
        add_fields(&mut block, own_fields(&text.carried, FORMAT, &mut self.warnings), &[]);
        block
    }

    fn image_block(&mut self, image: &ImagePart) -> Value {
        let source = match &image.source {
            ImageSource::Base64 { media_type, data } => {
                json!({ "type": "base64", "media_type": media_type, "data": data })
            }
            ImageSource::Url(url) => json!({ "type": "url", "url": url }),
        };
        let mut block = json!({ "type": "image", "source": source });
        add_fields(&mut block, own_fields(&image.carried, FORMAT, &mut self.warnings), &[]);
        block
    }

    fn user_block(&mut self, part: &Part) -> Option<Value> {
        match part {
            Part::Text(text) => (!text.text.trim().is_empty()).then(|| self.text_block(text)),
            Part::Image(image) => Some(self.image_block(image)),
            Part::Foreign(foreign) if foreign.format == FORMAT => Some(foreign.block.clone()),
            Part::Foreign(foreign) => {
                self.warnings.add(WarningCode::ForeignBlock, foreign.kind());
                None
            }
            Part::ToolResult(result) => Some(self.result_block(result)),
            Part::Refusal(_) | Part::Reasoning(_) | Part::ToolCall(_) => None,
        }
    }

    fn result_block(&mut self, result: &ToolResult) -> Value {
        let mut block = json!({ "type": "tool_result", "tool_use_id": result.call_id.as_str() });
        let mut content = Vec::new();
        for part in &result.output.content {
            match part {
                Content::Text(text) if text.text.trim().is_empty() => {}
                Content::Text(text) => content.push(self.text_block(text)),
                Content::Image(image) => content.push(self.image_block(image)),
                Content::Foreign(foreign) if foreign.format == FORMAT => content.push(foreign.block.clone()),
                Content::Foreign(foreign) => self.warnings.add(WarningCode::ForeignBlock, foreign.kind()),
            }
        }
        if !content.is_empty() {
            block["content"] = Value::Array(content);
        } else if result.output.is_error {
            // A failure without a word: the API wants content with the flag.
            block["content"] = json!("The tool failed without a message.");
        }
        if result.output.is_error {
            block["is_error"] = json!(true);
        }
        add_fields(&mut block, own_fields(&result.carried, FORMAT, &mut self.warnings), &[]);
        block
    }

    fn assistant_blocks(&mut self, message: &Message) -> Vec<Value> {
        // A turn of this provider keeps its order; in one of another, calls come last: text behind a call is refused.
        let native = message.origin == Some(FORMAT)
            || message.parts.iter().any(|part| {
                matches!(part, Part::Reasoning(reasoning) if matches!(reasoning.format,
                ReasoningFormat::Anthropic | ReasoningFormat::AnthropicRedacted))
                    || matches!(part, Part::Foreign(foreign) if foreign.format == FORMAT)
            });
        let (mut blocks, mut calls) = (Vec::new(), Vec::new());
        for part in &message.parts {
            let block = match part {
                Part::Text(text) if text.text.trim().is_empty() => None,
                Part::Text(text) => Some(self.text_block(text)),
                Part::Refusal(refusal) => {
                    self.warnings.add(WarningCode::RefusalAsText, "a refusal part");
                    (!refusal.text.trim().is_empty()).then(|| json!({ "type": "text", "text": refusal.text }))
                }
                Part::ToolCall(call) => {
                    let block = self.call_block(call);
                    if native {
                        Some(block)
                    } else {
                        calls.push(block);
                        None
                    }
                }
                Part::Reasoning(reasoning) => self.reasoning_block(reasoning),
                Part::Foreign(foreign) if foreign.format == FORMAT => Some(foreign.block.clone()),
                Part::Foreign(foreign) => {
                    self.warnings.add(WarningCode::ForeignBlock, foreign.kind());
                    None
                }
                Part::Image(_) | Part::ToolResult(_) => None,
            };
            if block.is_some() && !calls.is_empty() {
                self.warnings.add_once(WarningCode::OrderChanged, "calls go behind the text of their message");
            }
            blocks.extend(block);
        }
        blocks.extend(calls);
        blocks
    }

    fn call_block(&mut self, call: &ToolCall) -> Value {
        let name = self.names.to_wire(&call.name);
        if name != call.name.as_str() {
            self.warnings.add(WarningCode::ToolNameRenamed, format!("{} became {name}", call.name));
        }
        if call.input.fields().is_none() {
            self.warnings.add(WarningCode::ArgumentsReplaced, call.id.as_str());
        }
        if call.signature.is_some() {
            self.warnings.add(WarningCode::SignatureDropped, call.id.as_str());
        }
        let mut block = json!({
            "type": "tool_use", "id": call.id.as_str(), "name": name, "input": call.input.wire_object(),
        });
        add_fields(&mut block, own_fields(&call.carried, FORMAT, &mut self.warnings), &[]);
        block
    }

    fn reasoning_block(&mut self, reasoning: &ReasoningPart) -> Option<Value> {
        let mut block = match (reasoning.format, &reasoning.signature) {
            (ReasoningFormat::Anthropic, Some(signature)) => {
                json!({ "type": "thinking", "thinking": reasoning.text, "signature": signature })
            }
            (ReasoningFormat::AnthropicRedacted, Some(data)) => json!({ "type": "redacted_thinking", "data": data }),
            (_, Some(_)) => {
                self.warnings.add(WarningCode::SignatureDropped, reasoning.format.name());
                return None;
            }
            (_, None) => {
                self.warnings.add(WarningCode::ReasoningDropped, reasoning.format.name());
                return None;
            }
        };
        add_fields(&mut block, own_fields(&reasoning.carried, FORMAT, &mut self.warnings), &[]);
        Some(block)
    }
}
