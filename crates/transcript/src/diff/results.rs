//! Results: each goes with its call, wherever it stands.

use std::collections::{HashMap, HashSet};

use super::atoms::{Body, ResultAtom, Side};
use super::matching::{Matching, sorted_text};
use super::{Difference, DifferenceCode as Code};
use crate::model::{Content, ImagePart, ToolOutput};

/// An image that left a result, or came into one.
pub(super) struct Images<'a> {
    pub(super) lost: Vec<(&'a ImagePart, Difference)>,
    pub(super) added: Vec<(&'a ImagePart, Difference)>,
}

/// What became of the results. Images are handed back: they may stand elsewhere.
pub(super) fn compare<'a>(
    first: &Side<'a>,
    second: &Side<'a>,
    matching: &Matching,
    found: &mut Vec<Difference>,
) -> Images<'a> {
    let pairs = pairs(first, second, matching);
    let mut images = Images { lost: Vec::new(), added: Vec::new() };
    let (ours, theirs): (HashSet<usize>, HashSet<usize>) = pairs.iter().copied().unzip();
    for (_, result) in first.results.iter().enumerate().filter(|(at, _)| !ours.contains(at)) {
        found.push(
            Difference::new(Code::ResultLost, Some(result.place), None)
                .id(result.result.call_id.as_str())
                .showing(Some(&shown(&result.result.output)), None),
        );
        let lost = pictures(&result.result.output).map(|image| (image, of_result(Code::ImageLost, result, None)));
        images.lost.extend(lost);
    }
    for (_, result) in second.results.iter().enumerate().filter(|(at, _)| !theirs.contains(at)) {
        found.push(
            Difference::new(Code::ResultAdded, None, Some(result.place))
                .id(result.result.call_id.as_str())
                .showing(None, Some(&shown(&result.result.output))),
        );
    }
    for (at, other) in &pairs {
        let (ours, theirs) = (&first.results[*at], &second.results[*other]);
        output(ours, theirs, found, &mut images);
    }
    places(first, second, matching, &pairs, found);
    images
}

fn of_result(code: Code, result: &ResultAtom<'_>, other: Option<&ResultAtom<'_>>) -> Difference {
    Difference::new(code, Some(result.place), other.map(|other| other.place)).id(result.result.call_id.as_str())
}

/// Results of calls that are the same, in order; then those of no call, by the id that they name.
fn pairs(first: &Side<'_>, second: &Side<'_>, matching: &Matching) -> Vec<(usize, usize)> {
    let (ours, theirs) = (first.results_by_call(), second.results_by_call());
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (call, other) in matching.pairs() {
        if let (Some(ours), Some(theirs)) = (ours.get(&call), theirs.get(&other)) {
            pairs.extend(ours.iter().copied().zip(theirs.iter().copied()));
        }
    }
    // Those that are left, by the id that they name; where the call has another one now, its result has to name that.
    let renamed: HashMap<usize, usize> = matching.pairs().collect();
    let id = |result: &ResultAtom<'_>| match result.call.and_then(|call| renamed.get(&call)) {
        Some(other) => match second.atoms[*other].body {
            Body::Call(call) => call.id.as_str().to_owned(),
            _ => result.result.call_id.as_str().to_owned(),
        },
        None => result.result.call_id.as_str().to_owned(),
    };
    let (paired, others): (HashSet<usize>, HashSet<usize>) = pairs.iter().copied().unzip();
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, result) in second.results.iter().enumerate().rev().filter(|(at, _)| !others.contains(at)) {
        waiting.entry(result.result.call_id.as_str()).or_default().push(at);
    }
    for (at, result) in first.results.iter().enumerate().filter(|(at, _)| !paired.contains(at)) {
        let other = waiting.get_mut(id(result).as_str()).and_then(Vec::pop);
        pairs.extend(other.map(|other| (at, other)));
    }
    pairs.sort_unstable();
    pairs
}

fn shown(output: &ToolOutput) -> String {
    let failed = if output.is_error { "(failed) " } else { "" };
    format!("{failed}{}", output.all_text())
}

fn pictures(output: &ToolOutput) -> impl Iterator<Item = &ImagePart> {
    output.content.iter().filter_map(|content| match content {
        Content::Image(image) => Some(image),
        Content::Text(_) | Content::Foreign(_) => None,
    })
}

/// Texts that say something.
fn texts(output: &ToolOutput) -> Vec<&str> {
    let text = |content: &'_ Content| matches!(content, Content::Text(text) if !text.text.trim().is_empty());
    let said = output.content.iter().filter(|content| text(content));
    said.filter_map(|content| match content {
        Content::Text(text) => Some(text.text.as_str()),
        Content::Image(_) | Content::Foreign(_) => None,
    })
    .collect()
}

fn output<'a>(ours: &ResultAtom<'a>, theirs: &ResultAtom<'a>, found: &mut Vec<Difference>, images: &mut Images<'a>) {
    let (before, after) = (&ours.result.output, &theirs.result.output);
    let at = |code| of_result(code, ours, Some(theirs));
    match (before.is_error, after.is_error) {
        (true, false) => found.push(at(Code::ErrorFlagLost)),
        (false, true) => found.push(at(Code::ErrorFlagAdded)),
        _ => {}
    }
    let (said, says) = (texts(before), texts(after));
    if said != says {
        let (said_text, says_text) = (said.join("\n"), says.join("\n"));
        let regrouped = said_text == says_text || said.concat() == says.concat() && said.len() != says.len();
        let code = if regrouped { Code::TextRegrouped } else { Code::ResultChanged };
        found.push(at(code).showing(Some(&said_text), Some(&says_text)));
    }
    let mut left: Vec<&ImagePart> = pictures(after).collect();
    let mut same_images = true;
    for image in pictures(before) {
        match left.iter().position(|other| other.source == image.source) {
            Some(other) => {
                left.remove(other);
            }
            None => {
                same_images = false;
                images.lost.push((image, at(Code::ImageLost)));
            }
        }
    }
    same_images &= left.is_empty();
    images.added.extend(left.into_iter().map(|image| (image, at(Code::ImageAdded))));
    let blocks = |output: &ToolOutput| -> Vec<String> {
        let block = |content: &Content| match content {
            Content::Foreign(foreign) => Some(sorted_text(&foreign.block)),
            Content::Text(_) | Content::Image(_) => None,
        };
        output.content.iter().filter_map(block).collect()
    };
    let (held, holds) = (blocks(before), blocks(after));
    for block in held.iter().filter(|block| !holds.contains(block)) {
        found.push(at(Code::BlockLost).showing(Some(block), None));
    }
    for block in holds.iter().filter(|block| !held.contains(block)) {
        found.push(at(Code::BlockAdded).showing(None, Some(block)));
    }
    if said == says && same_images && held == holds && order(before) != order(after) {
        found.push(at(Code::OrderChanged));
    }
}

/// The kinds and texts of a result's content, in order.
fn order(output: &ToolOutput) -> Vec<String> {
    let word = |content: &Content| match content {
        Content::Text(text) if text.text.trim().is_empty() => None,
        Content::Text(text) => Some(format!("text {}", text.text)),
        Content::Image(image) => Some(image.url()),
        Content::Foreign(foreign) => Some(sorted_text(&foreign.block)),
    };
    output.content.iter().filter_map(word).collect()
}

/// Results that stand elsewhere. Behind the message with its call, the order among them says nothing.
fn places(
    first: &Side<'_>,
    second: &Side<'_>,
    matching: &Matching,
    pairs: &[(usize, usize)],
    found: &mut Vec<Difference>,
) {
    // For each place among the atoms, the last pair in order that stands before it.
    let (mut ours_before, mut theirs_before) = (vec![None; first.atoms.len() + 1], vec![None; second.atoms.len() + 1]);
    for (number, (at, other)) in matching.in_order.iter().enumerate() {
        ours_before[at + 1] = Some(number);
        theirs_before[other + 1] = Some(number);
    }
    for before in [&mut ours_before, &mut theirs_before] {
        for at in 1..before.len() {
            before[at] = before[at].or(before[at - 1]);
        }
    }
    let (asked_on_both, asks_on_both): (HashSet<usize>, HashSet<usize>) = matching.pairs().unzip();
    let partners: HashMap<usize, usize> = matching.pairs().collect();
    let mut last: Option<(usize, usize)> = None;
    for (at, other) in pairs {
        let (ours, theirs) = (&first.results[*at], &second.results[*other]);
        let both = ours.in_place && theirs.in_place;
        // That its call is gone, or new, is said of the call.
        let alone = ours.call.is_some_and(|call| !asked_on_both.contains(&call))
            || theirs.call.is_some_and(|call| !asks_on_both.contains(&call));
        // With ids that are used again, the answer to one call may have become a second one to an earlier call.
        let elsewhere = ours
            .call
            .zip(theirs.call)
            .is_some_and(|(call, other)| partners.get(&call).is_some_and(|partner| *partner != other));
        let place = ours.in_place != theirs.in_place || ours_before[ours.after] != theirs_before[theirs.after];
        let moved = elsewhere || (!both && !alone && place);
        if moved {
            found.push(of_result(Code::ResultMoved, ours, Some(theirs)));
        }
        // Within one turn.
        let turn = |side: &Side<'_>, result: &ResultAtom<'_>| result.call.map(|call| side.atoms[call].place.index);
        let Some(asked) = turn(first, ours).filter(|_| both) else { continue };
        let same_turn = last.filter(|(latest, _)| *latest == asked);
        if let Some((_, latest)) = same_turn
            && *other < latest
            && turn(second, theirs) == turn(second, &second.results[latest])
        {
            found.push(of_result(Code::ResultsReordered, ours, Some(theirs)));
        }
        let latest = same_turn.map_or(*other, |(_, latest)| latest.max(*other));
        last = Some((asked, latest));
    }
}
