//! What of a transcript survives in a format: the losses, applied to the transcript itself.
//!
//! Encoding and decoding again gives exactly this. It is written apart from the encoders, so that each checks the other.

use crate::convert::{Decoded, EncodeOptions, MidSystem, place_results, reasoning_home, unmark, with_legal_ids};
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{NameTable, ToolName};
use crate::model::{
    Carried, Content, ImagePart, Message, Part, ReasoningFormat, RefusalPart, Role, TextPart, ToolInput, ToolOutput,
    ToolResult, Transcript,
};
use crate::profile::ReasoningField;

/// What is left of a transcript in a format, and what was lost. Tool names are as on the wire.
pub fn project(transcript: &Transcript, format: Format, options: &EncodeOptions) -> Decoded {
    let mut warnings = Warnings::default();
    let mut copy = with_legal_ids(transcript, format, options.profile, &mut warnings);
    if format != Format::OpenAiResponses {
        place_results(&mut copy);
    }
    let mut projection = Projection { format, options, warnings, names: NameTable::default(), tool_turns: Vec::new() };
    projection.tool_turns = tool_turns(&copy);
    let messages = match format {
        Format::OpenAiChat => projection.chat(copy),
        Format::OpenAiResponses => projection.responses(copy),
        Format::Anthropic => projection.anthropic(copy),
    };
    let mut left = Transcript::default();
    for message in messages {
        left.push(message);
    }
    Decoded { transcript: left, warnings: projection.warnings }
}

/// For each message whether a call was made between the user messages around it.
fn tool_turns(transcript: &Transcript) -> Vec<bool> {
    let mut turns = vec![false; transcript.messages.len()];
    let mut start = 0;
    for at in 0..=transcript.messages.len() {
        let boundary = transcript.messages.get(at).is_none_or(|message| message.role == Role::User);
        if boundary {
            let called = transcript.messages[start..at].iter().any(|message| message.calls().next().is_some());
            turns[start..at].fill(called);
            start = at;
        }
    }
    turns
}

struct Projection<'a> {
    format: Format,
    options: &'a EncodeOptions,
    warnings: Warnings,
    names: NameTable,
    tool_turns: Vec<bool>,
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.text.trim().is_empty())
        || matches!(part, Part::Refusal(refusal) if refusal.text.trim().is_empty())
}

impl Projection<'_> {
    /// What is lost of one part; nothing is left of some.
    fn part(&mut self, part: Part, tool_turn: bool) -> Option<Part> {
        if is_blank(&part) {
            return None;
        }
        Some(match part {
            Part::Text(text) => Part::Text(TextPart::new(text.text)),
            Part::Image(image) => Part::Image(ImagePart { carried: Carried::default(), ..image }),
            Part::Refusal(refusal) if self.format == Format::Anthropic => {
                self.warnings.add(WarningCode::RefusalAsText, "a refusal part");
                Part::Text(TextPart::new(refusal.text))
            }
            Part::Refusal(refusal) => Part::Refusal(RefusalPart { text: refusal.text, carried: Carried::default() }),
            Part::ToolCall(mut call) => {
                let name = self.names.to_wire(&call.name);
                if name != call.name.as_str() {
                    self.warnings.add(WarningCode::ToolNameRenamed, name.as_str());
                }
                call.name = ToolName::new(name);
                if call.input.fields().is_none() {
                    self.warnings.add(WarningCode::ArgumentsReplaced, call.id.as_str());
                    call.input = ToolInput::object(serde_json::Map::new());
                }
                let profile = self.options.profile;
                let kept = self.format == Format::OpenAiChat
                    && (profile.google_signatures
                        || profile.signature_in_id
                        || crate::openai_chat::signature_stays(&call, profile));
                if call.signature.is_some() && !kept {
                    self.warnings.add(WarningCode::SignatureDropped, call.id.as_str());
                    call.signature = None;
                }
                Part::ToolCall(call)
            }
            Part::ToolResult(result) => Part::ToolResult(result),
            Part::Reasoning(reasoning) => {
                let own = reasoning_home(reasoning.format) == self.format;
                let kept = own
                    && match self.format {
                        Format::Anthropic => reasoning.signature.is_some(),
                        Format::OpenAiResponses => true,
                        Format::OpenAiChat => match self.options.profile.reasoning {
                            ReasoningField::Omit => false,
                            ReasoningField::Content | ReasoningField::Reasoning => true,
                            ReasoningField::ContentInToolTurns => tool_turn,
                        },
                    };
                if !kept {
                    let code = if reasoning.signature.is_some() {
                        WarningCode::SignatureDropped
                    } else {
                        WarningCode::ReasoningDropped
                    };
                    self.warnings.add(code, reasoning.format.name());
                    return None;
                }
                Part::Reasoning(reasoning)
            }
            Part::Foreign(foreign) if foreign.format == self.format => Part::Foreign(foreign),
            Part::Foreign(foreign) => {
                self.warnings.add(WarningCode::ForeignBlock, foreign.kind());
                return None;
            }
        })
    }

    fn parts(&mut self, parts: Vec<Part>, tool_turn: bool) -> Vec<Part> {
        parts.into_iter().filter_map(|part| self.part(part, tool_turn)).collect()
    }

    /// A result; images that have to move are put into `moved`.
    fn result(&mut self, result: ToolResult, moved: &mut Vec<Part>) -> Part {
        let mut images = Vec::new();
        let mut content = Vec::new();
        for part in result.output.content {
            match part {
                Content::Text(text) if text.text.trim().is_empty() => {}
                Content::Text(text) => content.push(Content::Text(TextPart::new(text.text))),
                Content::Image(image) if self.format == Format::OpenAiChat => {
                    images.push(Part::Image(ImagePart { carried: Carried::default(), ..image }));
                }
                Content::Image(image) => {
                    content.push(Content::Image(ImagePart { carried: Carried::default(), ..image }));
                }
                Content::Foreign(foreign) if foreign.format == self.format => content.push(Content::Foreign(foreign)),
                Content::Foreign(foreign) => self.warnings.add(WarningCode::ForeignBlock, foreign.kind()),
            }
        }
        if !images.is_empty() {
            self.warnings.add(WarningCode::ImageMovedToUser, result.call_id.as_str());
            let intro = format!("Images in the result of the call {}:", result.call_id);
            moved.push(Part::Text(TextPart::new(intro)));
            moved.extend(images);
        }
        let mut output = ToolOutput { content, is_error: result.output.is_error };
        if self.format == Format::Anthropic {
            if output.is_error && output.content.is_empty() {
                output = ToolOutput::error("The tool failed without a message.");
            }
        } else if output.is_error {
            self.warnings.add(WarningCode::ErrorFlagAsText, result.call_id.as_str());
        } else {
            // Text that looks like a failure is read as one.
            unmark(&mut output);
        }
        Part::ToolResult(ToolResult { call_id: result.call_id, name: None, output, carried: Carried::default() })
    }

    fn results(&mut self, message: Message, moved: &mut Vec<Part>) -> Message {
        let parts = message
            .parts
            .into_iter()
            .filter_map(|part| match part {
                Part::ToolResult(result) => Some(self.result(result, moved)),
                _ => None,
            })
            .collect();
        Message::new(Role::Tool, parts)
    }

    fn chat(&mut self, transcript: Transcript) -> Vec<Message> {
        let mut left = Vec::new();
        let turns = std::mem::take(&mut self.tool_turns);
        for (at, message) in transcript.messages.into_iter().enumerate() {
            match message.role {
                Role::Tool => {
                    let mut moved = Vec::new();
                    let results = self.results(message, &mut moved);
                    left.push(results);
                    left.push(Message::new(Role::User, moved));
                }
                Role::Assistant => {
                    let name = message.name;
                    let parts = self.parts(message.parts, turns[at]);
                    let parts = self.chat_order(parts);
                    left.push(Message { name, ..Message::new(Role::Assistant, parts) });
                }
                role => {
                    let parts = self.parts(message.parts, false);
                    left.push(Message { name: message.name, ..Message::new(role, parts) });
                }
            }
        }
        if !self.options.profile.user_after_tool {
            left.retain(|message| !message.parts.is_empty());
            let mut parted: Vec<Message> = Vec::new();
            for message in left {
                let behind = parted.last().is_some_and(|last| last.role == Role::Tool);
                if behind && message.role == Role::User {
                    self.warnings.add(WarningCode::MessageInserted, "between results and a user message");
                    parted.push(Message::text(Role::Assistant, crate::openai_chat::BETWEEN));
                }
                parted.push(message);
            }
            left = parted;
        }
        left
    }

    /// Reasoning as one text, then text, then the refusal as one text, then calls.
    fn chat_order(&mut self, parts: Vec<Part>) -> Vec<Part> {
        let (mut thoughts, mut texts, mut refusals, mut calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Reasoning(reasoning) => thoughts.push(reasoning),
                Part::Refusal(refusal) => refusals.push(refusal.text),
                Part::ToolCall(_) => calls.push(part),
                Part::Text(_) => {
                    if !calls.is_empty() {
                        self.warnings.add_once(WarningCode::OrderChanged, "");
                    }
                    texts.push(part);
                }
                other => texts.push(other),
            }
        }
        if texts.is_empty() && refusals.is_empty() && calls.is_empty() {
            if !thoughts.is_empty() {
                self.warnings.add(WarningCode::ReasoningDropped, "");
            }
            return Vec::new();
        }
        let mut ordered = Vec::new();
        if let Some(first) = thoughts.first().cloned() {
            let text: Vec<String> = thoughts.into_iter().map(|reasoning| reasoning.text).collect();
            let joined = text.join("\n\n");
            if !joined.trim().is_empty() {
                ordered.push(Part::Reasoning(crate::model::ReasoningPart {
                    text: joined,
                    signature: None,
                    id: None,
                    carried: Carried::default(),
                    ..first
                }));
            }
        }
        ordered.extend(texts);
        if !refusals.is_empty() {
            let text = refusals.join("\n");
            ordered.push(Part::Refusal(RefusalPart { text, carried: Carried::default() }));
        }
        ordered.extend(calls);
        ordered
    }

    fn responses(&mut self, transcript: Transcript) -> Vec<Message> {
        let mut left: Vec<Message> = Vec::new();
        let leading = transcript.messages.iter().take_while(|message| message.role == Role::System).count();
        let mut instructions = Vec::new();
        for (at, message) in transcript.messages.into_iter().enumerate() {
            if at < leading {
                instructions.extend(message.parts);
                continue;
            }
            if let Some(name) = &message.name {
                self.warnings.add(WarningCode::NameDropped, name);
            }
            match message.role {
                Role::Tool => {
                    let mut nothing = Vec::new();
                    let results = self.results(message, &mut nothing);
                    left.push(results);
                }
                role => {
                    let parts = self.parts(message.parts, false);
                    match left.last_mut() {
                        Some(last) if role == Role::Assistant && last.role == Role::Assistant => {
                            last.parts.extend(parts)
                        }
                        _ if parts.is_empty() => {}
                        _ => left.push(Message::new(role, parts)),
                    }
                }
            }
        }
        self.drop_lonely_reasoning(&mut left);
        if let Some(text) = joined_text(&instructions) {
            left.insert(0, Message::text(Role::System, text));
        }
        left
    }

    /// Reasoning that ends its turn led to nothing.
    fn drop_lonely_reasoning(&mut self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| message.role == Role::Assistant) {
            while matches!(message.parts.last(), Some(Part::Reasoning(_))) {
                message.parts.pop();
                self.warnings.add(WarningCode::ReasoningDropped, "reasoning that nothing follows");
            }
        }
    }

    fn anthropic(&mut self, transcript: Transcript) -> Vec<Message> {
        let leading = transcript.messages.iter().take_while(|message| message.role == Role::System).count();
        let mut system: Vec<Vec<Part>> = Vec::new();
        let mut left: Vec<Message> = Vec::new();
        let later: Vec<Message> = transcript.messages.into_iter().collect();
        for at in 0..later.len() {
            let message = later[at].clone();
            if at < leading {
                system.push(message.parts);
                continue;
            }
            if let Some(name) = &message.name {
                self.warnings.add(WarningCode::NameDropped, name);
            }
            match message.role {
                Role::System => {
                    let behind = left.last().is_some_and(|last| last.role != Role::Assistant);
                    let next = later[at + 1..].iter().find(|message| message.role != Role::System);
                    let before = next.is_none_or(|next| next.role == Role::Assistant);
                    match self.options.mid_system {
                        MidSystem::Native if behind && before => {
                            let parts = self.parts(message.parts, false);
                            join(&mut left, Message::new(Role::System, parts));
                        }
                        MidSystem::User => {
                            self.warnings.add(WarningCode::SystemTextMoved, "");
                            let parts = self.parts(message.parts, false);
                            join(&mut left, Message::new(Role::User, parts));
                        }
                        MidSystem::Native | MidSystem::Hoist => {
                            self.warnings.add(WarningCode::SystemTextMoved, "");
                            system.push(message.parts);
                        }
                    }
                }
                Role::Tool => {
                    let mut nothing = Vec::new();
                    let results = self.results(message, &mut nothing);
                    join(&mut left, results);
                }
                Role::User => {
                    let parts = self.parts(message.parts, false);
                    join(&mut left, Message::new(Role::User, parts));
                }
                Role::Assistant => {
                    let native = message.origin == Some(Format::Anthropic)
                        || message.parts.iter().any(|part| match part {
                            Part::Reasoning(reasoning) => matches!(
                                reasoning.format,
                                ReasoningFormat::Anthropic | ReasoningFormat::AnthropicRedacted
                            ),
                            Part::Foreign(foreign) => foreign.format == Format::Anthropic,
                            _ => false,
                        });
                    let mut parts = self.parts(message.parts, false);
                    if !native {
                        let first_call = parts.iter().position(|part| matches!(part, Part::ToolCall(_)));
                        let last_other = parts.iter().rposition(|part| !matches!(part, Part::ToolCall(_)));
                        if first_call.is_some_and(|call| last_other.is_some_and(|other| other > call)) {
                            self.warnings.add_once(WarningCode::OrderChanged, "");
                        }
                        let (calls, others): (Vec<Part>, Vec<Part>) =
                            parts.into_iter().partition(|part| matches!(part, Part::ToolCall(_)));
                        parts = others;
                        parts.extend(calls);
                    }
                    join(&mut left, Message::new(Role::Assistant, parts));
                }
            }
        }
        left.retain(|message| !message.parts.is_empty());
        let several = system.len() == 1;
        let flat: Vec<Part> = system.into_iter().flatten().collect();
        if several && flat.iter().filter(|part| matches!(part, Part::Text(_))).count() > 1 {
            let parts = self.parts(flat, false);
            left.insert(0, Message::new(Role::System, parts));
        } else if let Some(text) = joined_text(&flat) {
            left.insert(0, Message::text(Role::System, text));
        }
        left
    }
}

/// A user turn with results first is two messages in the canonical form; other neighbours of one role are one.
fn join(left: &mut Vec<Message>, message: Message) {
    if message.parts.is_empty() {
        return;
    }
    match left.last_mut() {
        Some(last) if last.role == message.role => last.parts.extend(message.parts),
        _ => left.push(message),
    }
}

fn joined_text(parts: &[Part]) -> Option<String> {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
