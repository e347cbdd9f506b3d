//! Makes a copy of a history that the provider takes. Calls that have an answer are never touched; what is legal stays.

mod fields;
mod pairing;
mod tools;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::format::Format;
use crate::lint::pairs::{Fate, Pairs, id_allowed};
use crate::lint::{Finding, LintOptions, Severity, lint};

/// What a repaired result says.
pub const INTERRUPTED: &str = "The tool call was interrupted before it gave a result.";

/// One fault may uncover another; more rounds than this never were needed.
const MAX_ROUNDS: usize = 8;

/// A repaired copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The history that can be sent.
    pub payload: Value,
    /// What was found in the original.
    pub findings: Vec<Finding>,
    /// Errors that are left; empty unless the payload is no history at all.
    pub left: Vec<Finding>,
}

/// Repairs a history. A clean one comes back as it was, and so does a repaired one.
pub fn repair(payload: &Value, options: &LintOptions) -> Repaired {
    let findings = lint(payload, options);
    let mut copy = payload.clone();
    let mut left: Vec<Finding> = errors(findings.clone());
    for _ in 0..MAX_ROUNDS {
        if left.is_empty() {
            break;
        }
        // First, so that calls are named as their tools are.
        tools::repair(&mut copy, options);
        fields::repair(&mut copy, options);
        pairing::repair(&mut copy, options);
        rename_ids(&mut copy, options);
        fields::repair_order(&mut copy, options);
        left = errors(lint(&copy, options));
    }
    Repaired { payload: copy, findings, left }
}

fn errors(findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

/// The list that holds the messages or items.
fn list_mut(payload: &mut Value, format: Format) -> Option<&mut Vec<Value>> {
    let key = if format == Format::OpenAiResponses { "input" } else { "messages" };
    payload.get_mut(key)?.as_array_mut()
}

/// Gives calls with a bad or taken id a new one, and their results the same.
fn rename_ids(payload: &mut Value, options: &LintOptions) {
    let rule = options.profile.id_rule(options.format);
    let mut renames: Vec<(String, String)> = Vec::new();
    {
        let pairs = Pairs::of(payload, options.format);
        let judged = pairs.judge();
        let mut taken: HashSet<String> = pairs.calls.iter().map(|call| call.id.to_owned()).collect();
        taken.extend(pairs.results.iter().map(|result| result.id.to_owned()));
        let mut used = HashSet::new();
        for (at, call) in pairs.calls.iter().enumerate() {
            if id_allowed(call.id, rule, options.profile) && used.insert(call.id.to_owned()) {
                continue;
            }
            let seed = if used.contains(call.id) { format!("{}#{at}", call.id) } else { call.id.to_owned() };
            let id = rule.fresh(&seed, &taken);
            taken.insert(id.clone());
            used.insert(id.clone());
            renames.push((call_pointer(call, options.format), id.clone()));
            for (result, fate) in pairs.results.iter().zip(&judged.fates) {
                if matches!(fate, Fate::Answers(answered) | Fate::Misplaced(answered) if *answered == at) {
                    renames.push((result_pointer(result, options.format), id.clone()));
                }
            }
        }
    }
    for (pointer, id) in renames {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(object) = payload.pointer_mut(parent).and_then(Value::as_object_mut) {
            object.insert(key.to_owned(), json!(id));
        }
    }
}

fn call_pointer(call: &crate::lint::pairs::CallSlot<'_>, format: Format) -> String {
    match (format, call.block) {
        (Format::OpenAiChat, _) => format!("/messages/{}/tool_calls/{}/id", call.index, call.ordinal),
        (Format::OpenAiResponses, _) => format!("/input/{}/call_id", call.index),
        (Format::Anthropic, block) => format!("/messages/{}/content/{}/id", call.index, block.unwrap_or(0)),
    }
}

fn result_pointer(result: &crate::lint::pairs::ResultSlot<'_>, format: Format) -> String {
    match (format, result.block) {
        (Format::OpenAiChat, _) => format!("/messages/{}/tool_call_id", result.index),
        (Format::OpenAiResponses, _) => format!("/input/{}/call_id", result.index),
        (Format::Anthropic, block) => format!("/messages/{}/content/{}/tool_use_id", result.index, block.unwrap_or(0)),
    }
}
