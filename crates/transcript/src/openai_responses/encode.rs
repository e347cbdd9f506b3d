//! The canonical form to Responses.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::convert::{EncodeOptions, Encoded, Reply, add_fields, is_custom, marked, own_fields, with_legal_ids};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::NameTable;
use crate::model::{
    Carried, Content, ImagePart, Message, Part, ReasoningFormat, ReasoningPart, Role, StopReason, ToolCall, ToolResult,
    Transcript,
};

const FORMAT: Format = Format::OpenAiResponses;

#[derive(Default)]
struct Writer {
    warnings: Warnings,
    names: NameTable,
    items: Vec<Value>,
    /// Calls of free-text tools: their outputs are of a kind of their own.
    custom: HashSet<String>,
}

/// Writes a history: `input`, and `instructions` where it begins with system text.
pub fn encode_history(transcript: &Transcript, options: &EncodeOptions) -> Encoded {
    let mut warnings = Warnings::default();
    let copy = with_legal_ids(transcript, FORMAT, options.profile, &mut warnings);
    let mut writer = Writer { warnings, ..Writer::default() };
    let leading = copy.messages.iter().take_while(|message| message.role == Role::System).count();
    let instructions: Vec<String> = copy.messages[..leading]
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Text(text) => {
                own_fields(&text.carried, FORMAT, &mut writer.warnings);
                Some(text.text.clone())
            }
            _ => None,
        })
        .collect();
    for message in &copy.messages[leading..] {
        if let Some(name) = &message.name {
            writer.warnings.add(WarningCode::NameDropped, name);
        }
        own_fields(&message.carried, FORMAT, &mut writer.warnings);
        match message.role {
            Role::System => writer.message(message, "developer"),
            Role::User => writer.message(message, "user"),
            Role::Tool => {
                for result in message.results() {
                    writer.output(result);
                }
            }
            Role::Assistant => writer.assistant(message, false),
        }
    }
    writer.drop_lonely_reasoning();
    let mut payload = json!({ "input": writer.items });
    if !instructions.is_empty() {
        payload["instructions"] = json!(instructions.join("\n\n"));
    }
    Encoded { payload, warnings: writer.warnings, names: writer.names }
}

/// Writes a reply as the API would have: a whole response. `created` is in seconds since 1970.
pub fn encode_reply(reply: &Reply, id: &str, model: &str, created: u64) -> (Value, Warnings) {
    let mut writer = Writer::default();
    writer.assistant(&reply.message, true);
    (response_value(reply, id, model, created, writer.items), writer.warnings)
}

/// The items of a part of a reply; `names` lasts for the whole reply.
pub(super) fn reply_items(message: &Message, names: &mut NameTable) -> Vec<Value> {
    let mut writer = Writer { names: std::mem::take(names), ..Writer::default() };
    writer.assistant(message, true);
    *names = writer.names;
    writer.items
}

pub(super) fn response_value(reply: &Reply, id: &str, model: &str, created: u64, output: Vec<Value>) -> Value {
    let (status, reason) = match reply.stop_reason {
        StopReason::Length => ("incomplete", Some("max_output_tokens")),
        StopReason::Filter => ("incomplete", Some("content_filter")),
        StopReason::Pause => ("incomplete", Some("steered")),
        StopReason::Error => ("failed", None),
        StopReason::End | StopReason::ToolUse | StopReason::Refusal => ("completed", None),
    };
    let usage = reply.usage.unwrap_or_default();
    let mut response = json!({
        "id": id, "object": "response", "created_at": created, "status": status, "model": model, "output": output,
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": { "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write },
            "output_tokens": usage.output, "output_tokens_details": { "reasoning_tokens": usage.reasoning },
            "total_tokens": usage.input.saturating_add(usage.output),
        },
    });
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({ "reason": reason });
    }
    response
}

/// Fields of the whole item that a text part carries.
fn item_fields(carried: &Carried) -> Option<&Map<String, Value>> {
    carried.of(FORMAT)?.get("item")?.as_object()
}

fn is_joined(carried: &Carried) -> bool {
    carried.of(FORMAT).is_some_and(|fields| fields.contains_key("joined"))
}

impl Writer {
    fn image(&mut self, image: &ImagePart, in_message: bool) -> Value {
        let mut block = json!({ "type": "input_image", "image_url": image.url() });
        add_fields(&mut block, own_fields(&image.carried, FORMAT, &mut self.warnings), &[]);
        if in_message && block.get("detail").is_none() {
            let detail = image.carried.any().and_then(|(_, fields)| fields.get("detail"));
            block["detail"] = detail.cloned().unwrap_or(json!("auto"));
        }
        block
    }

    fn message(&mut self, message: &Message, role: &str) {
        let mut blocks = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) => {
                    let mut block = json!({ "type": "input_text", "text": text.text });
                    add_fields(&mut block, own_fields(&text.carried, FORMAT, &mut self.warnings), &["item", "joined"]);
                    blocks.push(block);
                }
                Part::Image(image) => blocks.push(self.image(image, true)),
                Part::Foreign(foreign) if foreign.format != FORMAT => {
                    self.warnings.add(WarningCode::ForeignBlock, foreign.kind());
                }
                // An item of its own, not a part of a message.
                Part::Foreign(foreign) if foreign.kind().ends_with("_output") => self.items.push(foreign.block.clone()),
                Part::Foreign(foreign) => blocks.push(foreign.block.clone()),
                _ => {}
            }
        }
        if !blocks.is_empty() {
            self.items.push(json!({ "type": "message", "role": role, "content": blocks }));
        }
    }

    fn output(&mut self, result: &ToolResult) {
        let mut blocks = Vec::new();
        for content in &result.output.content {
            match content {
                Content::Text(text) => {
                    let mut block = json!({ "type": "input_text", "text": text.text });
                    add_fields(&mut block, own_fields(&text.carried, FORMAT, &mut self.warnings), &["item", "joined"]);
                    blocks.push(block);
                }
                Content::Image(image) => blocks.push(self.image(image, false)),
                Content::Foreign(foreign) if foreign.format == FORMAT => blocks.push(foreign.block.clone()),
                Content::Foreign(foreign) => self.warnings.add(WarningCode::ForeignBlock, foreign.kind()),
            }
        }
        if result.output.is_error {
            self.warnings.add(WarningCode::ErrorFlagAsText, result.call_id.as_str());
            match blocks.iter_mut().find(|block| block["type"] == "input_text") {
                Some(first) => first["text"] = json!(marked(first["text"].as_str().unwrap_or_default())),
                None => blocks.insert(0, json!({ "type": "input_text", "text": marked("") })),
            }
        }
        let output = match blocks.as_slice() {
            [] => json!(""),
            [only] if only["type"] == "input_text" && only.as_object().is_some_and(|fields| fields.len() == 2) => {
                only["text"].clone()
            }
            _ => Value::Array(blocks),
        };
        let fields = own_fields(&result.carried, FORMAT, &mut self.warnings);
        let custom = self.custom.contains(result.call_id.as_str());
        let kind = fields.and_then(|fields| fields.get("type")).and_then(Value::as_str);
        let own = if custom { "custom_tool_call_output" } else { "function_call_output" };
        let mut item = json!({
            "type": kind.unwrap_or(own), "call_id": result.call_id.as_str(), "output": output,
        });
        if let Some(name) = fields.and_then(|fields| fields.get("result_name")) {
            item["name"] = name.clone();
        }
        add_fields(&mut item, fields, &["result_name"]);
        self.items.push(item);
    }

    /// In a reply every item has an id; in a history only those that came with one.
    fn assistant(&mut self, message: &Message, reply: bool) {
        // Whether the last item is a message that a joined part may go into.
        let mut open = false;
        for part in &message.parts {
            match part {
                Part::Text(text) if text.text.trim().is_empty() => {}
                Part::Text(text) => {
                    let fields = own_fields(&text.carried, FORMAT, &mut self.warnings);
                    let mut block = json!({ "type": "output_text", "text": text.text, "annotations": [] });
                    if let Some(held) = fields.and_then(|fields| fields.get("annotations")) {
                        block["annotations"] = held.clone();
                    }
                    add_fields(&mut block, fields, &["item", "joined"]);
                    self.assistant_part(block, &text.carried, open, reply);
                    open = true;
                }
                Part::Refusal(refusal) => {
                    own_fields(&refusal.carried, FORMAT, &mut self.warnings);
                    let block = json!({ "type": "refusal", "refusal": refusal.text });
                    self.assistant_part(block, &refusal.carried, open, reply);
                    open = true;
                }
                Part::ToolCall(call) => {
                    self.call(call, reply);
                    open = false;
                }
                Part::Reasoning(reasoning) => {
                    self.reasoning(reasoning, reply);
                    open = false;
                }
                Part::Foreign(foreign) if foreign.format == FORMAT => {
                    self.items.push(foreign.block.clone());
                    open = false;
                }
                Part::Foreign(foreign) => self.warnings.add(WarningCode::ForeignBlock, foreign.kind()),
                Part::Image(_) | Part::ToolResult(_) => {}
            }
        }
    }

    fn assistant_part(&mut self, block: Value, carried: &Carried, open: bool, reply: bool) {
        if let (true, true, Some(last)) = (open, is_joined(carried), self.items.last_mut()) {
            if let Some(text) = last["content"].as_str() {
                last["content"] = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            }
            if let Some(content) = last["content"].as_array_mut() {
                content.push(block);
                return;
            }
        }
        let fields = item_fields(carried);
        let mut item = json!({ "type": "message", "role": "assistant" });
        if let Some(fields) = fields {
            add_fields(&mut item, Some(fields), &[]);
        }
        if reply {
            let number = self.items.len();
            if item.get("id").is_none() {
                item["id"] = json!(format!("msg_{number}"));
            }
            item["status"] = json!("completed");
        }
        // Without an id the easy form is the one that server and types both take.
        let easy = item.get("id").is_none() && block["type"] == "output_text" && block["annotations"] == json!([]);
        item["content"] = if easy { block["text"].clone() } else { json!([block]) };
        self.items.push(item);
    }

    fn call(&mut self, call: &ToolCall, reply: bool) {
        let name = self.names.to_wire(&call.name);
        if name != call.name.as_str() {
            self.warnings.add(WarningCode::ToolNameRenamed, format!("{} became {name}", call.name));
        }
        if call.input.fields().is_none() && !reply {
            self.warnings.add(WarningCode::ArgumentsReplaced, call.id.as_str());
        }
        if call.signature.is_some() {
            self.warnings.add(WarningCode::SignatureDropped, call.id.as_str());
        }
        let fields = own_fields(&call.carried, FORMAT, &mut self.warnings);
        let custom = is_custom(&call.carried);
        let mut item = if custom {
            self.custom.insert(call.id.as_str().to_owned());
            let input = call.input.fields().and_then(|fields| fields.get("input")).cloned().unwrap_or(json!(""));
            json!({ "type": "custom_tool_call", "call_id": call.id.as_str(), "name": name, "input": input })
        } else {
            json!({
                "type": "function_call", "call_id": call.id.as_str(), "name": name,
                "arguments": call.input.wire_text(),
            })
        };
        add_fields(&mut item, fields, &[]);
        if reply {
            if item.get("id").is_none() {
                item["id"] = json!(format!("{}_{}", if custom { "ctc" } else { "fc" }, self.items.len()));
            }
            if item.get("status").is_none() {
                item["status"] = json!("completed");
            }
        }
        self.items.push(item);
    }

    fn reasoning(&mut self, reasoning: &ReasoningPart, reply: bool) {
        let own = reasoning.format == ReasoningFormat::OpenAiResponses;
        if !own && !reply {
            let code = if reasoning.signature.is_some() {
                WarningCode::SignatureDropped
            } else {
                WarningCode::ReasoningDropped
            };
            self.warnings.add(code, reasoning.format.name());
            return;
        }
        let summary = if reasoning.text.is_empty() {
            json!([])
        } else {
            json!([{ "type": "summary_text", "text": reasoning.text }])
        };
        let mut item = json!({ "type": "reasoning" });
        if let Some(id) = reasoning.id.as_ref().filter(|_| own) {
            item["id"] = json!(id);
        } else if reply {
            item["id"] = json!(format!("rs_{}", self.items.len()));
        }
        let fields = own_fields(&reasoning.carried, FORMAT, &mut self.warnings);
        item["summary"] = fields.and_then(|fields| fields.get("summary")).cloned().unwrap_or(summary);
        if let Some(signature) = reasoning.signature.as_ref().filter(|_| own) {
            item["encrypted_content"] = json!(signature);
        } else if reasoning.signature.is_some() {
            self.warnings.add(WarningCode::SignatureDropped, reasoning.format.name());
        }
        add_fields(&mut item, fields, &[]);
        self.items.push(item);
    }

    /// A reasoning item has to be followed by what it led to.
    fn drop_lonely_reasoning(&mut self) {
        let mut follower = false;
        let mut kept = Vec::with_capacity(self.items.len());
        for item in std::mem::take(&mut self.items).into_iter().rev() {
            let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
            if kind == "reasoning" {
                if !follower {
                    self.warnings.add(WarningCode::ReasoningDropped, "reasoning that nothing follows");
                    continue;
                }
            } else {
                follower = is_model_item(&item);
            }
            kept.push(item);
        }
        kept.reverse();
        self.items = kept;
    }
}

/// Whether the model made this item.
pub(crate) fn is_model_item(item: &Value) -> bool {
    match item.get("type").and_then(Value::as_str) {
        None | Some("message") => item["role"] == "assistant",
        Some(kind) => !kind.ends_with("_output"),
    }
}
