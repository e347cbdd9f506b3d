//! Which part of the first transcript is which part of the second.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::atoms::{Atom, Body, Side};
use crate::model::{ImageSource, ReasoningFormat, Role, ToolCall, ToolInput};

/// Two parts whose text has less than this in common, of 100, are two parts and not one that was changed.
const ALIKE: usize = 40;
/// What may stand between texts that were joined.
const SEPARATORS: [&str; 4] = ["", "\n\n", "\n", " "];

/// What belongs together.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// In the order of both sides, equal but for details.
    pub(super) in_order: Vec<(usize, usize)>,
    /// The same on both sides, elsewhere.
    pub(super) moved: Vec<(usize, usize)>,
    /// At the same place, with other content.
    pub(super) changed: Vec<(usize, usize)>,
    /// Texts that say the same in more or fewer parts.
    pub(super) regrouped: Vec<(Vec<usize>, Vec<usize>)>,
    /// Only in the first.
    pub(super) lost: Vec<usize>,
    /// Only in the second.
    pub(super) added: Vec<usize>,
}

impl Matching {
    /// All pairs, whatever they are.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.in_order.iter().chain(&self.moved).chain(&self.changed).copied()
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Text(Role, &'a str),
    Refusal(Role, &'a str),
    Image(Role, &'a str, &'a str),
    Reasoning(Role, ReasoningFormat, &'a str, Option<&'a str>),
    Foreign(Role, String),
    /// Both ends of a call that is on both sides.
    Call(usize),
    /// A call that is on one side only.
    Alone(bool, usize),
}

pub(super) fn matched<'a>(first: &Side<'a>, second: &Side<'a>) -> Matching {
    let calls = pair_calls(first, second);
    let number = |side: fn(&(usize, usize)) -> usize| -> HashMap<usize, usize> {
        calls.iter().enumerate().map(|(number, pair)| (side(pair), number)).collect()
    };
    let (first_calls, second_calls) = (number(|pair| pair.0), number(|pair| pair.1));
    let mut numbers: HashMap<Key<'a>, usize> = HashMap::new();
    let mut keys = |atoms: &[Atom<'a>], calls: &HashMap<usize, usize>, is_first: bool| -> Vec<usize> {
        let key = |(at, atom): (usize, _)| {
            let key = key_of(atom, calls.get(&at).map_or(Key::Alone(is_first, at), |number| Key::Call(*number)));
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        atoms.iter().copied().enumerate().map(key).collect()
    };
    let (first_keys, second_keys) = (keys(&first.atoms, &first_calls, true), keys(&second.atoms, &second_calls, false));
    let mut matching = Matching { in_order: common(&first_keys, &second_keys), ..Matching::default() };
    let mut left = Left::of(first, second, &matching.in_order);
    matching.moved = left.pair_by(|at| Some(first_keys[at]), |at| Some(second_keys[at]));
    let said = |atom: &Atom<'a>| match atom.body {
        Body::Call(_) => None,
        _ => Some(content_of(atom)),
    };
    let (mut here, elsewhere): (Vec<_>, Vec<_>) = left
        .pair_by(|at| said(&first.atoms[at]), |at| said(&second.atoms[at]))
        .into_iter()
        .partition(|(at, other)| left.same_gap(*at, *other));
    matching.changed.append(&mut here);
    matching.moved.extend(elsewhere);
    let refused = left.pair_by(
        |at| match first.atoms[at].body {
            Body::Refusal(text) => Some(text),
            _ => None,
        },
        |at| match second.atoms[at].body {
            Body::Text(text) if second.atoms[at].role == Role::Assistant => Some(text),
            _ => None,
        },
    );
    matching.changed.extend(refused);
    left.gaps(&mut matching);
    matching.lost = left.first;
    matching.added = left.second;
    matching
}

fn key_of<'a>(atom: Atom<'a>, call: Key<'a>) -> Key<'a> {
    let role = atom.role;
    match atom.body {
        Body::Text(text) => Key::Text(role, text),
        Body::Refusal(text) => Key::Refusal(role, text),
        Body::Image(image) => match &image.source {
            ImageSource::Base64 { media_type, data } => Key::Image(role, media_type, data),
            ImageSource::Url(url) => Key::Image(role, "", url),
        },
        Body::Reasoning(reasoning) => {
            Key::Reasoning(role, reasoning.format, &reasoning.text, reasoning.signature.as_deref())
        }
        Body::Foreign(foreign) => Key::Foreign(role, sorted_text(&foreign.block)),
        Body::Call(_) => call,
    }
}

/// What it says, whoever says it.
fn content_of<'a>(atom: &Atom<'a>) -> Key<'a> {
    key_of(Atom { role: Role::System, ..*atom }, Key::Alone(true, 0))
}

/// A value as text, the same for every order of its keys.
pub(super) fn sorted_text(value: &Value) -> String {
    fn write(value: &Value, text: &mut String) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                text.push('{');
                for (key, value) in fields {
                    text.push_str(&Value::String(key.clone()).to_string());
                    text.push(':');
                    write(value, text);
                    text.push(',');
                }
                text.push('}');
            }
            Value::Array(items) => {
                text.push('[');
                for item in items {
                    write(item, text);
                    text.push(',');
                }
                text.push(']');
            }
            plain => text.push_str(&plain.to_string()),
        }
    }
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn input_text(input: &ToolInput) -> String {
    match input {
        ToolInput::Object { fields, .. } => sorted_text(&Value::Object(fields.clone())),
        ToolInput::Invalid { raw } => format!("!{raw}"),
    }
}

/// Calls that are the same: with everything equal and in order, then elsewhere, then by id, then by what they ask for.
fn pair_calls(first: &Side<'_>, second: &Side<'_>) -> Vec<(usize, usize)> {
    let whole = |call: &ToolCall| (call.id.clone(), call.name.clone(), input_text(&call.input));
    let first_calls: HashMap<usize, _> = first.calls().into_iter().map(|(at, call)| (at, whole(call))).collect();
    let second_calls: HashMap<usize, _> = second.calls().into_iter().map(|(at, call)| (at, whole(call))).collect();
    let mut numbers = HashMap::new();
    let mut keys = |side: &Side<'_>, calls: &HashMap<usize, _>| -> Vec<(usize, usize)> {
        let number = |(at, _)| {
            let next = numbers.len();
            Some((at, *numbers.entry(calls.get(&at).cloned()?).or_insert(next)))
        };
        side.calls().into_iter().filter_map(number).collect()
    };
    let (first_keys, second_keys) = (keys(first, &first_calls), keys(second, &second_calls));
    let only = |keys: &[(usize, usize)]| -> Vec<usize> { keys.iter().map(|(_, key)| *key).collect() };
    let mut pairs: Vec<(usize, usize)> = common(&only(&first_keys), &only(&second_keys))
        .into_iter()
        .map(|(at, other)| (first_keys[at].0, second_keys[other].0))
        .collect();
    let mut left = Left::of(first, second, &pairs);
    left.first.retain(|at| first_calls.contains_key(at));
    left.second.retain(|at| second_calls.contains_key(at));
    pairs.extend(left.pair_by(|at| first_calls.get(&at), |at| second_calls.get(&at)));
    let id = |call: &(crate::ids::ToolCallId, crate::ids::ToolName, String)| call.0.clone();
    pairs.extend(left.pair_by(|at| first_calls.get(&at).map(id), |at| second_calls.get(&at).map(id)));
    let asked = |call: &(crate::ids::ToolCallId, crate::ids::ToolName, String)| (call.1.clone(), call.2.clone());
    pairs.extend(left.pair_by(|at| first_calls.get(&at).map(asked), |at| second_calls.get(&at).map(asked)));
    pairs
}

/// The longest common part of two sequences, as pairs of positions.
fn common(first: &[usize], second: &[usize]) -> Vec<(usize, usize)> {
    // What is on one side only cannot be in common, and would only cost time.
    let (in_first, in_second): (HashSet<_>, HashSet<_>) = (first.iter().collect(), second.iter().collect());
    let shared = |keys: &[usize], other: &HashSet<&usize>| -> (Vec<usize>, Vec<usize>) {
        keys.iter().enumerate().filter(|(_, key)| other.contains(key)).map(|(at, key)| (at, *key)).unzip()
    };
    let (first_at, first) = shared(first, &in_second);
    let (second_at, second) = shared(second, &in_first);
    let mut pairs = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &first, &second) {
        if let DiffOp::Equal { old_index, new_index, len } = operation {
            pairs.extend((0..len).map(|step| (first_at[old_index + step], second_at[new_index + step])));
        }
    }
    pairs
}

/// What is not matched yet.
struct Left<'s, 'a> {
    sides: (&'s Side<'a>, &'s Side<'a>),
    first: Vec<usize>,
    second: Vec<usize>,
    /// How many pairs in order stand before each atom.
    first_gaps: Vec<usize>,
    second_gaps: Vec<usize>,
}

impl<'s, 'a> Left<'s, 'a> {
    fn of(first: &'s Side<'a>, second: &'s Side<'a>, pairs: &[(usize, usize)]) -> Self {
        let taken = |side: fn(&(usize, usize)) -> usize| -> HashSet<usize> { pairs.iter().map(side).collect() };
        let rest = |length: usize, taken: &HashSet<usize>| (0..length).filter(|at| !taken.contains(at)).collect();
        let gaps = |length: usize, taken: &HashSet<usize>| {
            let mut before = 0;
            (0..length)
                .map(|at| {
                    before += usize::from(taken.contains(&at));
                    before
                })
                .collect()
        };
        let (in_first, in_second) = (taken(|pair| pair.0), taken(|pair| pair.1));
        Self {
            sides: (first, second),
            first: rest(first.atoms.len(), &in_first),
            second: rest(second.atoms.len(), &in_second),
            first_gaps: gaps(first.atoms.len(), &in_first),
            second_gaps: gaps(second.atoms.len(), &in_second),
        }
    }

    fn same_gap(&self, at: usize, other: usize) -> bool {
        self.first_gaps[at] == self.second_gaps[other]
    }

    fn remove(&mut self, pairs: &[(usize, usize)]) {
        let (first, second): (HashSet<usize>, HashSet<usize>) = pairs.iter().copied().unzip();
        self.first.retain(|at| !first.contains(at));
        self.second.retain(|at| !second.contains(at));
    }

    /// Pairs those with the same key, in order; what has no key stays.
    fn pair_by<K: Hash + Eq>(
        &mut self,
        first: impl Fn(usize) -> Option<K>,
        second: impl Fn(usize) -> Option<K>,
    ) -> Vec<(usize, usize)> {
        let mut waiting: HashMap<K, VecDeque<usize>> = HashMap::new();
        for at in &self.second {
            if let Some(key) = second(*at) {
                waiting.entry(key).or_default().push_back(*at);
            }
        }
        let mut pairs = Vec::new();
        for at in &self.first {
            let other = first(*at).and_then(|key| waiting.get_mut(&key)?.pop_front());
            pairs.extend(other.map(|other| (*at, other)));
        }
        self.remove(&pairs);
        pairs
    }

    /// Pairs what stands between the same neighbours: texts that were joined or parted, then what was changed.
    fn gaps(&mut self, matching: &mut Matching) {
        let mut gaps: HashMap<usize, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for at in &self.first {
            gaps.entry(self.first_gaps[*at]).or_default().0.push(*at);
        }
        for at in &self.second {
            gaps.entry(self.second_gaps[*at]).or_default().1.push(*at);
        }
        let mut gaps: Vec<_> =
            gaps.into_iter().filter(|(_, (first, second))| !first.is_empty() && !second.is_empty()).collect();
        gaps.sort_unstable_by_key(|(gap, _)| *gap);
        let (mut regrouped, mut changed) = (Vec::new(), Vec::new());
        for (_, (mut first, mut second)) in gaps {
            self.regroup(&mut first, &mut second, &mut regrouped);
            self.change(&first, &second, &mut changed);
        }
        let gone: (HashSet<usize>, HashSet<usize>) = (
            regrouped.iter().flat_map(|(first, _): &(Vec<usize>, Vec<usize>)| first.clone()).collect(),
            regrouped.iter().flat_map(|(_, second): &(Vec<usize>, Vec<usize>)| second.clone()).collect(),
        );
        self.first.retain(|at| !gone.0.contains(at));
        self.second.retain(|at| !gone.1.contains(at));
        self.remove(&changed);
        matching.regrouped = regrouped;
        matching.changed.extend(changed);
    }

    fn regroup(&self, first: &mut Vec<usize>, second: &mut Vec<usize>, found: &mut Vec<(Vec<usize>, Vec<usize>)>) {
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            let texts = |side: &Side<'a>, left: &[usize]| -> Vec<(usize, &'a str)> {
                let text = |at: &usize| match side.atoms[*at] {
                    Atom { body: Body::Text(text), role: whose, .. } if whose == role => Some((*at, text)),
                    _ => None,
                };
                left.iter().filter_map(text).collect()
            };
            for (at, whole) in texts(self.sides.1, second) {
                if let Some(run) = run_of(&texts(self.sides.0, first), whole) {
                    first.retain(|other| !run.contains(other));
                    second.retain(|other| *other != at);
                    found.push((run, vec![at]));
                }
            }
            for (at, whole) in texts(self.sides.0, first) {
                if let Some(run) = run_of(&texts(self.sides.1, second), whole) {
                    second.retain(|other| !run.contains(other));
                    first.retain(|other| *other != at);
                    found.push((vec![at], run));
                }
            }
        }
    }

    /// Pairs parts of one kind: in order where there are as many on both sides, else those that are alike.
    fn change(&self, first: &[usize], second: &[usize], found: &mut Vec<(usize, usize)>) {
        let mut kinds: Vec<(Role, u8, &str)> = Vec::new();
        for at in first {
            let kind = kind_of(&self.sides.0.atoms[*at]);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for kind in kinds {
            let of = |side: &Side<'_>, left: &[usize]| -> Vec<usize> {
                left.iter().copied().filter(|at| kind_of(&side.atoms[*at]) == kind).collect()
            };
            let (ours, theirs) = (of(self.sides.0, first), of(self.sides.1, second));
            if ours.len() == theirs.len() {
                found.extend(ours.into_iter().zip(theirs));
                continue;
            }
            let mut start = 0;
            for at in ours {
                let alike = |other: &usize| alike(&self.sides.0.atoms[at], &self.sides.1.atoms[*other]);
                if let Some(step) = theirs[start..].iter().position(alike) {
                    found.push((at, theirs[start + step]));
                    start += step + 1;
                }
            }
        }
    }
}

/// Neighbouring texts that together are `whole`.
fn run_of(texts: &[(usize, &str)], whole: &str) -> Option<Vec<usize>> {
    for start in 0..texts.len() {
        if !whole.starts_with(texts[start].1) {
            continue;
        }
        for separator in SEPARATORS {
            let mut joined = texts[start].1.to_owned();
            for (end, (_, text)) in texts.iter().enumerate().skip(start + 1) {
                joined.push_str(separator);
                joined.push_str(text);
                if joined == whole {
                    return Some(texts[start..=end].iter().map(|(at, _)| *at).collect());
                }
                if !whole.starts_with(&joined) {
                    break;
                }
            }
        }
    }
    None
}

fn kind_of<'a>(atom: &Atom<'a>) -> (Role, u8, &'a str) {
    let (kind, name) = match atom.body {
        Body::Text(_) => (0, ""),
        Body::Image(_) => (1, ""),
        Body::Call(call) => (2, call.name.as_str()),
        Body::Reasoning(_) => (3, ""),
        Body::Refusal(_) => (4, ""),
        Body::Foreign(foreign) => (5, foreign.kind()),
    };
    (atom.role, kind, name)
}

fn alike(first: &Atom<'_>, second: &Atom<'_>) -> bool {
    let (Some(first), Some(second)) = (words_of(first), words_of(second)) else { return false };
    let front = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    let (first_length, second_length) = (first.chars().count(), second.chars().count());
    let rest = first_length.min(second_length) - front;
    let back = first.chars().rev().zip(second.chars().rev()).take(rest).take_while(|(a, b)| a == b).count();
    (front + back) * 100 >= ALIKE * first_length.max(second_length)
}

fn words_of(atom: &Atom<'_>) -> Option<String> {
    match atom.body {
        Body::Text(text) | Body::Refusal(text) => Some(text.to_owned()),
        Body::Reasoning(reasoning) => Some(reasoning.text.clone()),
        Body::Call(call) => Some(input_text(&call.input)),
        Body::Image(_) | Body::Foreign(_) => None,
    }
}
