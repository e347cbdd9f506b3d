//! Which result answers which call, for all three formats.

use std::collections::HashMap;

use serde_json::Value;

use crate::format::Format;
use crate::ids::IdRule;
use crate::json::{list, string};
use crate::model::ToolInput;
use crate::profile::Profile;

/// A call in a payload.
pub(crate) struct CallSlot<'a> {
    pub(crate) index: usize,
    pub(crate) block: Option<usize>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) bad_arguments: bool,
    /// Which of a message's calls.
    pub(crate) ordinal: usize,
    /// The turn that it belongs to.
    group: usize,
}

/// A result in a payload.
pub(crate) struct ResultSlot<'a> {
    pub(crate) index: usize,
    pub(crate) block: Option<usize>,
    pub(crate) id: &'a str,
    /// The turn whose calls it may answer where it stands; nothing in formats that pair by id alone.
    behind: Option<usize>,
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The answer to this call.
    Answers(usize),
    /// The answer to this call, in the wrong place.
    Misplaced(usize),
    /// One more answer to a call that has one.
    Again,
    /// The answer to nothing.
    Orphan,
}

pub(crate) struct Judged {
    /// For each call the result that answers it.
    pub(crate) answered: Vec<Option<usize>>,
    /// For each result what it is.
    pub(crate) fates: Vec<Fate>,
}

/// The calls and results of a payload, in order.
pub(crate) struct Pairs<'a> {
    pub(crate) calls: Vec<CallSlot<'a>>,
    pub(crate) results: Vec<ResultSlot<'a>>,
    by_id_alone: bool,
}

pub(crate) fn id_allowed(id: &str, rule: IdRule, profile: &Profile) -> bool {
    match id.split_once("__thought__") {
        Some((plain, _)) if profile.signature_in_id => rule.allows(plain),
        _ => rule.allows(id),
    }
}

/// The items of a payload: `messages`, or `input`.
pub(crate) fn items(payload: &Value, format: Format) -> &[Value] {
    list(payload, if format == Format::OpenAiResponses { "input" } else { "messages" })
}

/// Whether arguments are not in the form of the format: an object for Anthropic, the text of one elsewhere.
pub(crate) fn bad_arguments(arguments: Option<&Value>, format: Format) -> bool {
    match (format, arguments) {
        (Format::Anthropic, Some(Value::Object(_))) => false,
        (Format::Anthropic, _) => true,
        (_, Some(Value::String(text))) => match ToolInput::from_text(text) {
            (ToolInput::Object { .. }, twice) => twice,
            (ToolInput::Invalid { .. }, _) => true,
        },
        (_, None) => false,
        (_, Some(_)) => true,
    }
}

impl<'a> Pairs<'a> {
    pub(crate) fn of(payload: &'a Value, format: Format) -> Self {
        match format {
            Format::OpenAiChat => Self::chat(items(payload, format)),
            Format::OpenAiResponses => Self::responses(items(payload, format)),
            Format::Anthropic => Self::anthropic(items(payload, format)),
        }
    }

    fn new(by_id_alone: bool) -> Self {
        Self { calls: Vec::new(), results: Vec::new(), by_id_alone }
    }

    fn chat(messages: &'a [Value]) -> Self {
        let mut pairs = Self::new(false);
        let mut behind = None;
        for (index, message) in messages.iter().enumerate() {
            match string(message, "role") {
                "assistant" => {
                    behind = Some(index);
                    for (ordinal, call) in list(message, "tool_calls").iter().enumerate() {
                        let custom = call.get("custom").filter(|_| call.get("function").is_none());
                        let function = custom.or_else(|| call.get("function")).unwrap_or(&Value::Null);
                        pairs.calls.push(CallSlot {
                            index,
                            block: None,
                            id: string(call, "id"),
                            name: string(function, "name"),
                            bad_arguments: custom.is_none()
                                && bad_arguments(function.get("arguments"), Format::OpenAiChat),
                            ordinal,
                            group: index,
                        });
                    }
                }
                "tool" => {
                    let id = string(message, "tool_call_id");
                    pairs.results.push(ResultSlot { index, block: None, id, behind });
                }
                _ => behind = None,
            }
        }
        pairs
    }

    fn responses(items: &'a [Value]) -> Self {
        let mut pairs = Self::new(true);
        for (index, item) in items.iter().enumerate() {
            let id = string(item, "call_id");
            match string(item, "type") {
                kind @ ("function_call" | "custom_tool_call") => pairs.calls.push(CallSlot {
                    index,
                    block: None,
                    id,
                    name: string(item, "name"),
                    bad_arguments: kind == "function_call"
                        && bad_arguments(item.get("arguments"), Format::OpenAiResponses),
                    ordinal: 0,
                    group: index,
                }),
                "function_call_output" | "custom_tool_call_output" => {
                    pairs.results.push(ResultSlot { index, block: None, id, behind: None });
                }
                _ => {}
            }
        }
        pairs
    }

    fn anthropic(messages: &'a [Value]) -> Self {
        let mut pairs = Self::new(false);
        // Neighbours of one role are one turn: the server joins them.
        let (mut turn, mut last, mut asked) = (0_usize, "", None);
        for (index, message) in messages.iter().enumerate() {
            let role = string(message, "role");
            if role != last {
                asked = (last == "assistant" && role == "user").then_some(turn);
                turn += 1;
                last = role;
            }
            for (block_index, block) in list(message, "content").iter().enumerate() {
                match string(block, "type") {
                    "tool_use" if role == "assistant" => pairs.calls.push(CallSlot {
                        index,
                        block: Some(block_index),
                        id: string(block, "id"),
                        name: string(block, "name"),
                        bad_arguments: bad_arguments(block.get("input"), Format::Anthropic),
                        ordinal: 0,
                        group: turn,
                    }),
                    "tool_result" => pairs.results.push(ResultSlot {
                        index,
                        block: Some(block_index),
                        id: string(block, "tool_use_id"),
                        behind: asked.filter(|_| role == "user"),
                    }),
                    _ => {}
                }
            }
        }
        pairs
    }

    /// Results in their place are matched first, then the rest with the nearest call before them, then behind.
    pub(crate) fn judge(&self) -> Judged {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, call) in self.calls.iter().enumerate() {
            by_id.entry(call.id).or_default().push(at);
        }
        let mut answered: Vec<Option<usize>> = vec![None; self.calls.len()];
        let mut fates = vec![Fate::Orphan; self.results.len()];
        let mut rest = Vec::new();
        for (at, result) in self.results.iter().enumerate() {
            let Some(candidates) = by_id.get(result.id) else { continue };
            let before =
                |call: &usize| (self.calls[*call].index, self.calls[*call].block) < (result.index, result.block);
            let in_place: Vec<usize> = if self.by_id_alone {
                // The latest call before it that nothing answers yet; else the latest of all.
                let end = candidates.partition_point(before);
                let earlier = &candidates[..end];
                earlier
                    .iter()
                    .rev()
                    .find(|call| answered[**call].is_none())
                    .or(earlier.last())
                    .copied()
                    .into_iter()
                    .collect()
            } else {
                let start =
                    candidates.partition_point(|call| result.behind.is_none_or(|turn| self.calls[*call].group < turn));
                candidates[start..]
                    .iter()
                    .copied()
                    .take_while(|call| Some(self.calls[*call].group) == result.behind)
                    .collect()
            };
            match in_place.iter().find(|call| answered[**call].is_none()) {
                Some(call) => {
                    answered[*call] = Some(at);
                    fates[at] = Fate::Answers(*call);
                }
                None if in_place.is_empty() => rest.push(at),
                None => fates[at] = Fate::Again,
            }
        }
        for at in rest {
            let result = &self.results[at];
            let Some(candidates) = by_id.get(result.id) else { continue };
            let end = candidates.partition_point(|call| {
                (self.calls[*call].index, self.calls[*call].block) < (result.index, result.block)
            });
            let nearest = candidates[..end].iter().rev().chain(&candidates[end..]);
            let open = nearest.copied().find(|call| answered[*call].is_none());
            fates[at] = match open {
                Some(call) => {
                    answered[call] = Some(at);
                    Fate::Misplaced(call)
                }
                None => Fate::Again,
            };
        }
        Judged { answered, fates }
    }
}
