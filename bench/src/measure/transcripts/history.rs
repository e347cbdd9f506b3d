//! A conversation as agents have them, the same for the same seed.

use bandstand_transcript::model::{Carried, TextPart};
use bandstand_transcript::{
    Message, Part, Role, ToolCall, ToolCallId, ToolInput, ToolName, ToolOutput, ToolResult, Transcript,
};
use serde_json::{Map, Value, json};

/// Of several scripts and lengths in UTF-8; some need escapes in JSON.
const WORDS: &[&str] = &[
    "the",
    "tide",
    "at",
    "harbour",
    "and",
    "a",
    "vessel",
    "of",
    "berth",
    "is",
    "wind",
    "in",
    "pilot",
    "to",
    "high",
    "water",
    "Kestrel",
    "Quay",
    "über",
    "façade",
    "Größe",
    "naïve",
    "São",
    "Łódź",
    "порт",
    "прилив",
    "港口",
    "潮汐",
    "ميناء",
    "🚢",
    "👩‍✈️",
    "\"quoted\"",
    "back\\slash",
    "two\nlines",
    "5.3 m",
    "06:40",
    "–",
    "≈",
];

const TOOLS: &[&str] = &["lookup_tide", "find_berth", "harbour_roster", "band_send_message", "weather"];

/// One result in so many is a failure.
const FAILURES: usize = 20;

/// Numbers that look random; xorshift64*.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// A number from 0 to below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).unwrap_or(0) % limit.max(1)
    }

    pub(super) fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn arguments(&mut self) -> Map<String, Value> {
        let fields = json!({
            "port": self.words(2), "hours": self.below(48), "exact": self.below(2) == 0,
            "around": { "note": self.words(6), "ids": [self.below(9_000), self.below(9_000)], "none": null },
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// Questions, calls (up to four beside one another), results, answers, until there is about so much of it.
pub(super) fn make(seed: u64, bytes: usize) -> Transcript {
    let mut chance = Chance::new(seed);
    let mut transcript = Transcript::new(vec![Message::text(Role::System, chance.words(400))]);
    let mut size = 0;
    let mut number = 0;
    while size < bytes {
        let mut turn = vec![said(Role::User, &mut chance, 60, &mut size)];
        for _ in 0..=chance.below(3) {
            let ids: Vec<ToolCallId> = (0..=chance.below(4))
                .map(|_| {
                    number += 1;
                    ToolCallId::new(format!("call_{number:08}"))
                })
                .collect();
            let mut asking = said(Role::Assistant, &mut chance, 20, &mut size);
            asking.parts.extend(ids.iter().map(|id| call(id, &mut chance, &mut size)));
            let results = ids.iter().map(|id| result(id, &mut chance, &mut size)).collect();
            turn.extend([asking, Message::new(Role::Tool, results)]);
        }
        turn.push(said(Role::Assistant, &mut chance, 120, &mut size));
        transcript.messages.extend(turn);
    }
    // A request ends with a question.
    transcript.messages.push(said(Role::User, &mut chance, 60, &mut size));
    transcript
}

fn said(role: Role, chance: &mut Chance, words: usize, size: &mut usize) -> Message {
    let count = 3 + chance.below(words);
    let text = chance.words(count);
    *size += text.len() + 40;
    Message::new(role, vec![Part::Text(TextPart::new(text))])
}

fn call(id: &ToolCallId, chance: &mut Chance, size: &mut usize) -> Part {
    let fields = chance.arguments();
    *size += 250;
    Part::ToolCall(ToolCall {
        id: id.clone(),
        name: ToolName::new(TOOLS[chance.below(TOOLS.len())]),
        input: ToolInput::object(fields),
        signature: None,
        carried: Carried::default(),
    })
}

fn result(id: &ToolCallId, chance: &mut Chance, size: &mut usize) -> Part {
    let rows: Vec<Value> = (0..=chance.below(12))
        .map(|row| json!({ "row": row, "at": chance.words(2), "metres": chance.below(700), "note": chance.words(9) }))
        .collect();
    let text = Value::Array(rows).to_string();
    *size += text.len() + 80;
    let output =
        if chance.below(FAILURES) == 0 { ToolOutput::error("no gauge at this port") } else { ToolOutput::text(text) };
    Part::ToolResult(ToolResult { call_id: id.clone(), name: None, output, carried: Carried::default() })
}

#[cfg(test)]
mod tests {
    use bandstand_transcript::{EncodeOptions, Format, encode_history, lint};

    use super::*;

    #[test]
    fn a_seed_gives_one_clean_history() {
        let transcript = make(7, 200_000);
        assert_eq!(transcript, make(7, 200_000));
        assert_ne!(transcript, make(8, 200_000));
        for format in Format::ALL {
            let payload = encode_history(&transcript, format, &EncodeOptions::default()).payload;
            let findings = lint::lint(&payload, &lint::LintOptions::new(format));
            assert!(findings.is_empty(), "{format}: {:?}", findings.first());
        }
    }
}
