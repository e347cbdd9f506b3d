//! A conversation for the eye: who speaks, and which result answers which call.

use std::collections::HashMap;

use bandstand_transcript::answers::{Answers, Place};
use bandstand_transcript::model::{Content, ReasoningPart, ToolCall, ToolResult};
use bandstand_transcript::{Message, Part, Transcript};
use ratatui::crossterm::terminal;

use super::paint::Paint;
use crate::people::text::{harmless, wrapped};

/// In front of what a message says.
const INDENT: &str = "    ";
/// Columns by which further lines of a call or result stand below their first.
const BELOW: usize = 3;
/// Columns where nobody says how many there are.
const UNLIMITED: usize = usize::MAX;
/// Fewer than that are no columns to read in.
const NARROWEST: usize = 20;

/// The lines of a conversation. `moment` says when a message was, and where to find it, if that is known.
pub(super) fn lines(transcript: &Transcript, paint: &Paint, moment: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let answers = Answers::of(transcript);
    let mut numbers: HashMap<Place, usize> = HashMap::new();
    for (index, message) in transcript.messages.iter().enumerate() {
        for (part, held) in message.parts.iter().enumerate() {
            if matches!(held, Part::ToolCall(_)) {
                numbers.insert(Place { index, part }, numbers.len() + 1);
            }
        }
    }
    let view = View { paint, answers, numbers, columns: columns() };
    let mut lines = Vec::new();
    for (index, message) in transcript.messages.iter().enumerate() {
        lines.push(heading(index, message, paint, moment(index)));
        for (part, held) in message.parts.iter().enumerate() {
            lines.extend(view.part(Place { index, part }, held));
        }
    }
    if let Some(reason) = transcript.stop_reason {
        lines.push(paint.dim(&format!("ended: {}", reason.name())));
    }
    lines
}

fn columns() -> usize {
    let seen = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let size = if seen { terminal::size().ok() } else { None };
    size.map_or(UNLIMITED, |(columns, _)| usize::from(columns).saturating_sub(INDENT.len()).max(NARROWEST))
}

fn heading(index: usize, message: &Message, paint: &Paint, moment: Option<String>) -> String {
    let name = message.name.as_ref().map(|name| format!(" ({})", harmless(&one_line(name)))).unwrap_or_default();
    let moment = moment.map(|moment| format!("  {}", paint.dim(&harmless(&moment)))).unwrap_or_default();
    format!("{} {}{name}{moment}", paint.dim(&index.to_string()), paint.role(message.role, message.role.name()))
}

struct View<'a> {
    paint: &'a Paint,
    answers: Answers,
    numbers: HashMap<Place, usize>,
    columns: usize,
}

/// How a part's own words look.
#[derive(Clone, Copy)]
enum Look {
    Plain,
    Dim,
    Error,
}

impl View<'_> {
    fn part(&self, place: Place, part: &Part) -> Vec<String> {
        match part {
            Part::Text(text) => self.words("", &text.text, Look::Plain),
            Part::Image(image) => self.words("", &picture(&image.url()), Look::Dim),
            Part::ToolCall(call) => self.call(place, call),
            Part::ToolResult(result) => self.result(place, result),
            Part::Reasoning(reasoning) => self.words("", &thought(reasoning), Look::Dim),
            Part::Refusal(refusal) => self.words("", &format!("(refusal) {}", refusal.text), Look::Error),
            Part::Foreign(foreign) => {
                self.words("", &format!("({} of {})", foreign.kind(), foreign.format.name()), Look::Dim)
            }
        }
    }

    fn label(&self, call: Option<Place>) -> String {
        match call.and_then(|call| self.numbers.get(&call)) {
            Some(number) => self.paint.call(*number, &format!("#{number}")),
            None => self.paint.alarm("#?"),
        }
    }

    fn call(&self, place: Place, call: &ToolCall) -> Vec<String> {
        let open = !self.answers.is_answered(place);
        let label = self.label(Some(place));
        let open = if open { format!(" {}", self.paint.alarm("no result")) } else { String::new() };
        let id = harmless(&one_line(call.id.as_str()));
        let signed = if call.signature.is_some() { " (signed)" } else { "" };
        let input = match call.input.fields() {
            Some(_) => call.input.wire_text(),
            None => format!("(arguments that are no JSON object) {}", raw(call)),
        };
        let look = if call.input.fields().is_some() { Look::Plain } else { Look::Error };
        let asked = format!("{}{signed} {}", one_line(call.name.as_str()), one_line(&input));
        self.words(&format!("{label}{open} call {} ", self.paint.dim(&id)), &asked, look)
    }

    fn result(&self, place: Place, result: &ToolResult) -> Vec<String> {
        let call = self.answers.call_of(place);
        let label = self.label(call);
        let orphan = if call.is_none() { format!(" {}", self.paint.alarm("answers no call")) } else { String::new() };
        let id = self.paint.dim(&harmless(&one_line(result.call_id.as_str())));
        let mut said = result.output.all_text();
        for content in &result.output.content {
            let other = match content {
                Content::Text(_) => continue,
                Content::Image(image) => picture(&image.url()),
                Content::Foreign(foreign) => format!("({} of {})", foreign.kind(), foreign.format.name()),
            };
            said = if said.is_empty() { other } else { format!("{said}\n{other}") };
        }
        if said.is_empty() {
            said = "(nothing)".to_owned();
        }
        let failed = result.output.is_error;
        let said = if failed { format!("(error) {said}") } else { said };
        self.words(&format!("{label}{orphan} result {id} "), &said, if failed { Look::Error } else { Look::Plain })
    }

    /// Words with something in front of them, whose colours take no columns.
    fn words(&self, front: &str, text: &str, look: Look) -> Vec<String> {
        let text = harmless(text);
        let front_columns = plain_length(front);
        let lines: Vec<String> = if self.columns == UNLIMITED {
            text.lines().map(str::to_owned).collect()
        } else {
            // The front takes its columns from the first line.
            let padded = format!("{}{text}", "\u{a0}".repeat(front_columns));
            let columns = self.columns - if front.is_empty() { 0 } else { BELOW };
            wrapped(&padded, columns).into_iter().map(|line| line.trim_start_matches('\u{a0}').to_owned()).collect()
        };
        let look = |line: &str| match look {
            Look::Plain => line.to_owned(),
            Look::Dim => self.paint.dim(line),
            Look::Error => self.paint.error(line),
        };
        // What belongs to something in front of it stands below it.
        let below = " ".repeat(if front.is_empty() { 0 } else { BELOW });
        let mut told: Vec<String> = lines.iter().map(|line| format!("{INDENT}{below}{}", look(line))).collect();
        match told.first_mut() {
            Some(first) => *first = format!("{INDENT}{front}{}", look(&lines[0])),
            None => told.push(format!("{INDENT}{front}")),
        }
        told
    }
}

/// Columns of a text in which only colours are no columns.
fn plain_length(text: &str) -> usize {
    let (mut length, mut escape) = (0, false);
    for character in text.chars() {
        match (escape, character) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (true, _) => {}
            (false, _) => length += 1,
        }
    }
    length
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn raw(call: &ToolCall) -> &str {
    match &call.input {
        bandstand_transcript::ToolInput::Invalid { raw } => raw,
        bandstand_transcript::ToolInput::Object { .. } => "",
    }
}

fn thought(reasoning: &ReasoningPart) -> String {
    let signed = if reasoning.signature.is_some() { ", signed" } else { "" };
    let text = if reasoning.text.is_empty() { "(no text)" } else { reasoning.text.as_str() };
    format!("(reasoning{signed}) {text}")
}

/// An image in words: where it is, or what it is.
fn picture(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => format!("(an image, {media_type}, {} bytes)", data.len() / 4 * 3),
        None => format!("(an image, {url})"),
    }
}
