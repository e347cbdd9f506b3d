//! A long reply as a provider streams it: a word at a time, arguments of calls in fragments.

use anyhow::{Result, anyhow, ensure};
use bandstand_transcript::model::{Carried, TextPart};
use bandstand_transcript::sse::SseEvent;
use bandstand_transcript::stream::{Delta, Encoder, StreamReader};
use bandstand_transcript::{
    Format, Message, Part, Reply, Role, StopReason, ToolCall, ToolCallId, ToolInput, ToolName, Usage, Warnings,
};
use serde_json::{Map, Value, json};

use super::history::Chance;

/// One stream, and what it says.
pub(super) struct Stream {
    pub(super) format: Format,
    pub(super) wire: String,
    pub(super) events: usize,
    pub(super) text: String,
    pub(super) arguments: Vec<Value>,
}

impl Stream {
    /// Puts it together from pieces of so many bytes, and sees that all of it is there.
    pub(super) fn assemble(&self, packet: usize) -> Result<()> {
        let mut reader = StreamReader::new(self.format);
        for piece in self.wire.as_bytes().chunks(packet) {
            reader.push(piece);
        }
        let assembled = reader.finish();
        ensure!(assembled.complete, "{}: {:?}", self.format, assembled.error);
        let message = assembled.reply.message;
        ensure!(message.plain_text().len() == self.text.len(), "{}: another text", self.format);
        ensure!(message.calls().count() == self.arguments.len(), "{}: other calls", self.format);
        Ok(())
    }
}

/// A reply of so many words, and three calls whose arguments come in about so many fragments each.
pub(super) fn make(seed: u64, format: Format, words: usize, fragments: usize) -> Result<Stream> {
    let mut chance = Chance::new(seed);
    let pieces: Vec<String> = (0..words).map(|_| chance.words(1) + " ").collect();
    let text: String = pieces.concat();
    let calls: Vec<ToolCall> = (0..3).map(|number| call(number, fragments, &mut chance)).collect();
    let mut parts = vec![Part::Text(TextPart::new(text.clone()))];
    parts.extend(calls.iter().cloned().map(Part::ToolCall));
    let reply = Reply {
        message: Message::new(Role::Assistant, parts),
        stop_reason: StopReason::ToolUse,
        usage: Some(Usage { input: 1_000, output: 5_000, ..Usage::default() }),
        warnings: Warnings::default(),
    };
    let mut encoder = Encoder::new(format, "reply_1", "m", 1_700_000_000);
    let mut events: Vec<SseEvent> = Vec::new();
    for piece in pieces {
        events.extend(encoder.delta(&Delta::Text(piece)));
    }
    events.extend(encoder.delta(&Delta::TextEnd));
    for call in &calls {
        for event in encoder.delta(&Delta::Call(call.clone())) {
            events.extend(in_fragments(format, event, fragments)?);
        }
    }
    events.extend(encoder.finish(&reply));
    let arguments = calls.iter().map(|call| call.input.wire_object()).collect();
    Ok(Stream { format, events: events.len(), wire: events.iter().map(SseEvent::to_wire).collect(), text, arguments })
}

fn call(number: usize, fragments: usize, chance: &mut Chance) -> ToolCall {
    // A fragment is about a dozen characters: a word and what is around it.
    let lines: Vec<Value> = (0..fragments / 4).map(|_| json!({ "line": chance.words(3), "at": number })).collect();
    ToolCall {
        id: ToolCallId::new(format!("call_{number}")),
        name: ToolName::new("write_log"),
        input: ToolInput::object(Map::from_iter([("lines".to_owned(), Value::Array(lines))])),
        signature: None,
        carried: Carried::default(),
    }
}

/// The event that has all arguments of a call, as so many events; any other event as it is.
fn in_fragments(format: Format, event: SseEvent, fragments: usize) -> Result<Vec<SseEvent>> {
    let place = match format {
        Format::OpenAiChat => "/choices/0/delta/tool_calls/0/function/arguments",
        Format::OpenAiResponses => "/delta",
        Format::Anthropic => "/delta/partial_json",
    };
    let mut data: Value = serde_json::from_str(&event.data)?;
    let whole: Vec<char> = match data.pointer(place).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => text.chars().collect(),
        _ => return Ok(vec![event]),
    };
    whole
        .chunks(whole.len().div_ceil(fragments))
        .map(|fragment| {
            let field = data.pointer_mut(place).ok_or_else(|| anyhow!("{place} is gone"))?;
            *field = Value::String(fragment.iter().collect());
            Ok(SseEvent { event: event.event.clone(), data: data.to_string() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_says_what_it_should() {
        for format in Format::ALL {
            let stream = make(7, format, 50, 20).unwrap();
            assert!(stream.events > 50 + 3 * 15, "{format}: {} events", stream.events);
            stream.assemble(9).unwrap();
        }
    }
}
