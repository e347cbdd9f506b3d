//! A transcript as a sequence of what is said and asked for, and beside it the results.

use std::collections::HashMap;

use crate::answers::{Answers, Place};
use crate::model::{ForeignPart, ImagePart, Message, Part, ReasoningPart, Role, ToolCall, ToolResult, Transcript};

/// What is said or asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body<'a> {
    Text(&'a str),
    Image(&'a ImagePart),
    Call(&'a ToolCall),
    Reasoning(&'a ReasoningPart),
    Refusal(&'a str),
    Foreign(&'a ForeignPart),
}

/// One part that is no result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom<'a> {
    pub(super) place: Place,
    pub(super) role: Role,
    /// The participant's name.
    pub(super) name: Option<&'a str>,
    pub(super) body: Body<'a>,
}

/// One result.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultAtom<'a> {
    pub(super) place: Place,
    pub(super) result: &'a ToolResult,
    /// The call that it answers, among the atoms.
    pub(super) call: Option<usize>,
    /// How many atoms stand before it.
    pub(super) after: usize,
    /// Whether it stands directly behind the message with its call.
    pub(super) in_place: bool,
}

/// A transcript, taken apart. Blank text says nothing and is not in it.
pub(super) struct Side<'a> {
    pub(super) atoms: Vec<Atom<'a>>,
    pub(super) results: Vec<ResultAtom<'a>>,
}

impl<'a> Side<'a> {
    pub(super) fn of(transcript: &'a Transcript) -> Self {
        let mut side = Self { atoms: Vec::new(), results: Vec::new() };
        let answers = Answers::of(transcript);
        // Which atom a call is.
        let mut calls: HashMap<Place, usize> = HashMap::new();
        // The last message that says something.
        let mut last_other = None;
        for (index, message) in transcript.messages.iter().enumerate() {
            for (part_index, part) in message.parts.iter().enumerate() {
                let place = Place { index, part: part_index };
                match part {
                    Part::ToolResult(result) => {
                        let call = answers.call_of(place).and_then(|call| calls.get(&call).copied());
                        let in_place = call.is_some_and(|call| Some(side.atoms[call].place.index) == last_other);
                        let after = side.atoms.len();
                        side.results.push(ResultAtom { place, result, call, after, in_place });
                    }
                    part => side.atoms.extend(atom(message, place, part)),
                }
                if matches!(part, Part::ToolCall(_)) {
                    calls.insert(place, side.atoms.len() - 1);
                }
            }
            // A message that says nothing stands between nothing.
            if side.atoms.last().is_some_and(|last| last.place.index == index) {
                last_other = Some(index);
            }
        }
        side
    }

    /// The calls among the atoms.
    pub(super) fn calls(&self) -> Vec<(usize, &'a ToolCall)> {
        let call = |(at, atom): (usize, &Atom<'a>)| match atom.body {
            Body::Call(call) => Some((at, call)),
            _ => None,
        };
        self.atoms.iter().enumerate().filter_map(call).collect()
    }

    /// The results of each call, in order.
    pub(super) fn results_by_call(&self) -> HashMap<usize, Vec<usize>> {
        let mut by_call: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, result) in self.results.iter().enumerate() {
            if let Some(call) = result.call {
                by_call.entry(call).or_default().push(at);
            }
        }
        by_call
    }
}

fn atom<'a>(message: &'a Message, place: Place, part: &'a Part) -> Option<Atom<'a>> {
    let body = match part {
        Part::Text(text) if text.text.trim().is_empty() => return None,
        Part::Refusal(refusal) if refusal.text.trim().is_empty() => return None,
        Part::Text(text) => Body::Text(&text.text),
        Part::Refusal(refusal) => Body::Refusal(&refusal.text),
        Part::Image(image) => Body::Image(image),
        Part::ToolCall(call) => Body::Call(call),
        Part::Reasoning(reasoning) => Body::Reasoning(reasoning),
        Part::Foreign(foreign) => Body::Foreign(foreign),
        Part::ToolResult(_) => return None,
    };
    Some(Atom { place, role: message.role, name: message.name.as_deref(), body })
}
