//! What differs between the parts that belong together, and what belongs to nothing.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::atoms::{Atom, Body, Side};
use super::matching::{Matching, matched, sorted_text};
use super::{Difference, DifferenceCode as Code, results};
use crate::model::{ToolCall, ToolInput, Transcript};

pub(super) fn differences(first: &Transcript, second: &Transcript) -> Vec<Difference> {
    let (ours, theirs) = (Side::of(first), Side::of(second));
    let matching = matched(&ours, &theirs);
    let mut found = Vec::new();
    for (at, other) in matching.pairs() {
        pair(&ours.atoms[at], &theirs.atoms[other], &mut found);
    }
    for (at, other) in &matching.moved {
        let (atom, moved) = (&ours.atoms[*at], &theirs.atoms[*other]);
        let code = if matches!(atom.body, Body::Image(_)) { Code::ImageMoved } else { Code::OrderChanged };
        found.push(of(code, atom, Some(moved)).showing(shown(atom).as_deref(), None));
    }
    for (parts, others) in &matching.regrouped {
        if let (Some(at), Some(other)) = (parts.first(), others.first()) {
            found.push(of(Code::TextRegrouped, &ours.atoms[*at], Some(&theirs.atoms[*other])));
        }
    }
    lost_and_added(&ours, &theirs, &matching, &mut found);
    boundaries(&ours, &theirs, &matching, &mut found);
    names(&ours, &theirs, &matching, &mut found);
    if first.stop_reason != second.stop_reason {
        let (before, after) = (first.stop_reason.map(|it| it.name()), second.stop_reason.map(|it| it.name()));
        let mut difference = Difference::new(Code::StopReasonDiffers, None, None);
        difference.before = Some(before.unwrap_or("none").to_owned());
        difference.after = Some(after.unwrap_or("none").to_owned());
        found.push(difference);
    }
    let place = |difference: &Difference| difference.first.or(difference.second);
    // What is of the whole comes last.
    found.sort_by_key(|difference| (place(difference).is_none(), place(difference)));
    found
}

fn of(code: Code, atom: &Atom<'_>, other: Option<&Atom<'_>>) -> Difference {
    let difference = Difference::new(code, Some(atom.place), other.map(|other| other.place));
    match atom.body {
        Body::Call(call) => difference.id(call.id.as_str()),
        _ => difference,
    }
}

/// What is shown of a part.
fn shown(atom: &Atom<'_>) -> Option<String> {
    match atom.body {
        Body::Text(text) | Body::Refusal(text) => Some(text.to_owned()),
        Body::Reasoning(reasoning) if reasoning.text.is_empty() => None,
        Body::Reasoning(reasoning) => Some(reasoning.text.clone()),
        Body::Call(call) => Some(format!("{} {}", call.name, input_shown(&call.input))),
        Body::Foreign(foreign) => Some(sorted_text(&foreign.block)),
        Body::Image(image) => Some(image.url()),
    }
}

fn input_shown(input: &ToolInput) -> String {
    match input {
        ToolInput::Object { fields, .. } => sorted_shown(fields),
        ToolInput::Invalid { raw } => raw.clone(),
    }
}

/// Arguments with their keys in one order, so that what differs is what is shown.
fn sorted_shown(fields: &serde_json::Map<String, Value>) -> String {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect()).to_string()
}

/// Two parts that belong together.
fn pair(ours: &Atom<'_>, theirs: &Atom<'_>, found: &mut Vec<Difference>) {
    let at = |code| of(code, ours, Some(theirs));
    if ours.role != theirs.role {
        let mut difference = at(Code::RoleChanged);
        difference.before = Some(ours.role.name().to_owned());
        difference.after = Some(theirs.role.name().to_owned());
        found.push(difference);
    }
    match (ours.body, theirs.body) {
        (Body::Text(before), Body::Text(after)) if before != after => {
            found.push(at(Code::TextChanged).showing(Some(before), Some(after)));
        }
        (Body::Refusal(before), Body::Refusal(after)) if before != after => {
            found.push(at(Code::RefusalChanged).showing(Some(before), Some(after)));
        }
        (Body::Refusal(text), Body::Text(_)) => found.push(at(Code::RefusalAsText).showing(Some(text), None)),
        (Body::Image(before), Body::Image(after)) if before.source != after.source => {
            found.push(at(Code::ImageChanged).showing(Some(&before.url()), Some(&after.url())));
        }
        (Body::Foreign(before), Body::Foreign(after)) if before != after => {
            let (before, after) = (sorted_text(&before.block), sorted_text(&after.block));
            found.push(at(Code::BlockChanged).showing(Some(&before), Some(&after)));
        }
        (Body::Call(before), Body::Call(after)) => call(before, after, at, found),
        (Body::Reasoning(before), Body::Reasoning(after)) => {
            if before.text != after.text || before.format != after.format {
                let told = |text: &str, format: &str| format!("{format}: {text}");
                let (before, after) =
                    (told(&before.text, before.format.name()), told(&after.text, after.format.name()));
                found.push(at(Code::ReasoningChanged).showing(Some(&before), Some(&after)));
            }
            found.extend(signature(before.signature.as_deref(), after.signature.as_deref(), at));
            if before.id != after.id {
                found.push(at(Code::ReasoningIdDiffers).showing(before.id.as_deref(), after.id.as_deref()));
            }
        }
        _ => {}
    }
}

fn call(before: &ToolCall, after: &ToolCall, at: impl Fn(Code) -> Difference, found: &mut Vec<Difference>) {
    if before.id != after.id {
        found.push(at(Code::CallIdRenamed).showing(Some(before.id.as_str()), Some(after.id.as_str())));
    }
    if before.name != after.name {
        found.push(at(Code::ToolNameDiffers).showing(Some(before.name.as_str()), Some(after.name.as_str())));
    }
    if !same_input(&before.input, &after.input) {
        let (before, after) = (input_shown(&before.input), input_shown(&after.input));
        found.push(at(Code::ArgumentsDiffer).showing(Some(&before), Some(&after)));
    }
    found.extend(signature(before.signature.as_deref(), after.signature.as_deref(), at));
}

fn signature(before: Option<&str>, after: Option<&str>, at: impl Fn(Code) -> Difference) -> Option<Difference> {
    match (before, after) {
        _ if before == after => None,
        (Some(_), None) => Some(at(Code::SignatureLost)),
        _ => Some(at(Code::SignatureChanged).showing(before, after)),
    }
}

fn same_input(first: &ToolInput, second: &ToolInput) -> bool {
    match (first, second) {
        (ToolInput::Object { fields: first, .. }, ToolInput::Object { fields: second, .. }) => {
            first.len() == second.len()
                && first.iter().all(|(key, value)| second.get(key).is_some_and(|other| same_value(value, other)))
        }
        (ToolInput::Invalid { raw: first }, ToolInput::Invalid { raw: second }) => first == second,
        _ => false,
    }
}

/// Equal as JSON, where 1 and 1.0 are one number: some languages have only one kind.
fn same_value(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Number(first), Value::Number(second)) => first == second || same_number(first, second),
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len() && first.iter().zip(second).all(|(first, second)| same_value(first, second))
        }
        (Value::Object(first), Value::Object(second)) => {
            first.len() == second.len()
                && first.iter().all(|(key, value)| second.get(key).is_some_and(|other| same_value(value, other)))
        }
        _ => first == second,
    }
}

fn same_number(first: &Number, second: &Number) -> bool {
    /// Above it a fraction cannot tell neighbouring whole numbers apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    first.is_f64() != second.is_f64()
        && first.as_f64().zip(second.as_f64()).is_some_and(|(first, second)| first == second && first.abs() < EXACT)
}

/// What belongs to nothing. An image that is gone from one place and is new at another has moved.
fn lost_and_added(ours: &Side<'_>, theirs: &Side<'_>, matching: &Matching, found: &mut Vec<Difference>) {
    let images = results::compare(ours, theirs, matching, found);
    let (mut lost, mut added) = (images.lost, images.added);
    for at in &matching.lost {
        let atom = &ours.atoms[*at];
        let difference = of(lost_code(atom), atom, None).showing(shown(atom).as_deref(), None);
        match atom.body {
            Body::Image(image) => lost.push((image, difference)),
            _ => found.push(difference),
        }
    }
    for at in &matching.added {
        let atom = &theirs.atoms[*at];
        let mut difference =
            Difference::new(added_code(atom), None, Some(atom.place)).showing(None, shown(atom).as_deref());
        match atom.body {
            Body::Image(image) => added.push((image, difference)),
            Body::Call(call) => {
                difference.id = Some(call.id.as_str().to_owned());
                found.push(difference);
            }
            _ => found.push(difference),
        }
    }
    for (image, difference) in lost {
        match added.iter().position(|(other, _)| other.source == image.source) {
            Some(at) => {
                let (_, arrived) = added.remove(at);
                found.push(Difference { code: Code::ImageMoved, second: arrived.second, ..difference });
            }
            None => found.push(difference.showing(Some(&image.url()), None)),
        }
    }
    found.extend(
        added
            .into_iter()
            .map(|(image, difference)| Difference { first: None, ..difference }.showing(None, Some(&image.url()))),
    );
}

fn lost_code(atom: &Atom<'_>) -> Code {
    match atom.body {
        Body::Text(_) => Code::TextLost,
        Body::Image(_) => Code::ImageLost,
        Body::Call(_) => Code::CallLost,
        Body::Reasoning(_) => Code::ReasoningLost,
        Body::Refusal(_) => Code::RefusalLost,
        Body::Foreign(_) => Code::BlockLost,
    }
}

fn added_code(atom: &Atom<'_>) -> Code {
    match atom.body {
        Body::Text(_) => Code::TextAdded,
        Body::Image(_) => Code::ImageAdded,
        Body::Call(_) => Code::CallAdded,
        Body::Reasoning(_) => Code::ReasoningAdded,
        Body::Refusal(_) => Code::RefusalAdded,
        Body::Foreign(_) => Code::BlockAdded,
    }
}

/// Where messages begin and end, between parts that are neighbours on both sides.
fn boundaries(ours: &Side<'_>, theirs: &Side<'_>, matching: &Matching, found: &mut Vec<Difference>) {
    // What stands at the same place with other content is a neighbour too.
    let mut pairs: Vec<(usize, usize)> = matching.in_order.iter().chain(&matching.changed).copied().collect();
    pairs.sort_unstable();
    for neighbours in pairs.windows(2) {
        let [(at, other), (next, other_next)] = *neighbours else { continue };
        if other_next <= other {
            continue;
        }
        let together = ours.atoms[at].place.index == ours.atoms[next].place.index;
        let now_together = theirs.atoms[other].place.index == theirs.atoms[other_next].place.index;
        let role = (ours.atoms[at].role, theirs.atoms[other].role);
        if together == now_together || role != (ours.atoms[next].role, theirs.atoms[other_next].role) {
            continue;
        }
        let results = |side: &Side<'_>, from: usize, to: usize| {
            side.results.iter().any(|result| result.after > from && result.after <= to)
        };
        let code = match (together, results(ours, at, next), results(theirs, other, other_next)) {
            (false, true, _) => Code::TurnsJoined,
            (true, _, true) => Code::TurnSplit,
            (false, false, _) => Code::MessagesJoined,
            (true, _, false) => Code::MessageSplit,
        };
        found.push(of(code, &ours.atoms[next], Some(&theirs.atoms[other_next])));
    }
}

/// Names of participants, once for each message.
fn names(ours: &Side<'_>, theirs: &Side<'_>, matching: &Matching, found: &mut Vec<Difference>) {
    let mut told: HashSet<usize> = HashSet::new();
    for (at, other) in matching.pairs() {
        let (atom, now) = (&ours.atoms[at], &theirs.atoms[other]);
        if atom.name != now.name && told.insert(atom.place.index) {
            let mut difference = Difference::new(Code::NameDiffers, Some(atom.place), Some(now.place));
            difference.before = Some(atom.name.unwrap_or("none").to_owned());
            difference.after = Some(now.name.unwrap_or("none").to_owned());
            found.push(difference);
        }
    }
}
