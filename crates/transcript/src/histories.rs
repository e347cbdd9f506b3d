//! Three histories, three types: what the client sees, what the runtime keeps ([`Transcript`]), what the provider gets.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use crate::convert::{EncodeOptions, Encoded};
use crate::encode_history;
use crate::format::{Format, WarningCode, Warnings};
use crate::ids::{NameTable, ToolCallId, ToolName};
use crate::lint::{Finding, LintOptions};
use crate::model::{Part, Role, Transcript};
use crate::repair::repair;

/// One thing that a client is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEntry {
    /// Somebody said something.
    Said {
        /// Who; never the system.
        role: Role,
        /// The words.
        text: String,
    },
    /// The model used a tool.
    Used {
        /// Which.
        tool: ToolName,
        /// Whether it failed; nothing while it has not answered.
        failed: Option<bool>,
    },
    /// The model refused.
    Refused {
        /// The words.
        text: String,
    },
}

/// What a client sees of a conversation: no system text, no reasoning, no signatures, no inputs and outputs of tools.
/// It is for display: a request is never made from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientHistory {
    /// In order.
    pub entries: Vec<ClientEntry>,
}

impl ClientHistory {
    /// What of a transcript is shown.
    pub fn of(transcript: &Transcript) -> Self {
        let mut entries = Vec::new();
        let results = transcript.messages.iter().flat_map(|message| message.results());
        let failed: HashMap<&ToolCallId, bool> =
            results.map(|result| (&result.call_id, result.output.is_error)).collect();
        for message in transcript.messages.iter().filter(|message| message.role != Role::System) {
            for part in &message.parts {
                match part {
                    Part::Text(text) => {
                        entries.push(ClientEntry::Said { role: message.role, text: text.text.clone() });
                    }
                    Part::Refusal(refusal) => entries.push(ClientEntry::Refused { text: refusal.text.clone() }),
                    Part::ToolCall(call) => {
                        let failed = failed.get(&call.id).copied();
                        entries.push(ClientEntry::Used { tool: call.name.clone(), failed });
                    }
                    Part::Image(_) | Part::ToolResult(_) | Part::Reasoning(_) | Part::Foreign(_) => {}
                }
            }
        }
        Self { entries }
    }
}

/// What goes to the provider: a copy in its format, repaired so that it is taken. The transcript stays as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderHistory {
    format: Format,
    payload: Value,
    names: NameTable,
    /// What the conversion changed or lost.
    pub warnings: Warnings,
    /// What was wrong with the conversation and is repaired in this copy.
    pub repaired: Vec<Finding>,
}

impl ProviderHistory {
    /// Writes and repairs the copy.
    pub fn prepare(transcript: &Transcript, format: Format, options: &EncodeOptions) -> Self {
        Self::finish(encode_history(transcript, format, options), format, options)
    }

    /// The same, with the names that the tools of the request have on the wire
    /// ([`encode_offer`](crate::tools::encode_offer)): a call is named as its tool is, and none is renamed twice.
    pub fn prepare_with(transcript: &Transcript, format: Format, options: &EncodeOptions, names: &NameTable) -> Self {
        Self::finish(encode_history_with(transcript, format, options, names), format, options)
    }

    fn finish(encoded: Encoded, format: Format, options: &EncodeOptions) -> Self {
        let Encoded { payload, warnings, names } = encoded;
        let lint = LintOptions { format, profile: options.profile, reasoning_model: options.reasoning_model };
        let repaired = repair(&payload, &lint);
        Self { format, payload: repaired.payload, names, warnings, repaired: repaired.findings }
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// `messages`, or `input` with `instructions`, or `messages` with `system`: to be put into the request's body.
    pub fn payload(&self) -> &Value {
        &self.payload
    }

    /// Leads from names on the wire back to the registry's.
    pub fn names(&self) -> &NameTable {
        &self.names
    }
}

/// Writes a history whose calls are named as the tools of the request are
/// ([`encode_offer`](crate::tools::encode_offer)), so that no name is changed twice.
pub fn encode_history_with(
    transcript: &Transcript,
    format: Format,
    options: &EncodeOptions,
    names: &NameTable,
) -> Encoded {
    let mut names = names.clone();
    let mut warnings = Warnings::default();
    let mut copy = Cow::Borrowed(transcript);
    for (index, message) in transcript.messages.iter().enumerate() {
        for (at, part) in message.parts.iter().enumerate() {
            let name = match part {
                Part::ToolCall(call) => Some(&call.name),
                Part::ToolResult(result) => result.name.as_ref(),
                _ => None,
            };
            let Some((name, wire)) = name.map(|name| (name, names.to_wire(name))) else { continue };
            if wire == name.as_str() {
                continue;
            }
            match &mut copy.to_mut().messages[index].parts[at] {
                Part::ToolCall(call) => {
                    warnings.add(WarningCode::ToolNameRenamed, format!("{name} became {wire}"));
                    call.name = ToolName::new(wire);
                }
                Part::ToolResult(result) => result.name = Some(ToolName::new(wire)),
                _ => {}
            }
        }
    }
    let encoded = encode_history(&copy, format, options);
    warnings.extend(encoded.warnings);
    Encoded { payload: encoded.payload, warnings, names }
}
