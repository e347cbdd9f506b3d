//! The stages of one turn, as they come.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bandstand_llm::client::{Sent, WireTap};
use bandstand_llm::transcript::{
    Message, MidSystem, NameTable, Part, Reply, Role, ToolName, ToolResult, Transcript, Warnings, tools::WireNames,
};
use bandstand_wire::ids::{IdentityId, MessageId, RoomId};
use bandstand_wire::time::Timestamp;
use serde_json::{Value, json};

use super::writer::StepKey;
use super::{ABOUT, REPLY_STREAM, Stage, Trace};

/// What a turn begins with.
pub(crate) struct Begun<'a> {
    pub(crate) room: RoomId,
    pub(crate) message: MessageId,
    pub(crate) now: Timestamp,
    /// Whose turn it is.
    pub(crate) me: Option<IdentityId>,
    /// Rows of the room that the memory was made of in this turn.
    pub(crate) rows: Vec<Value>,
    /// What is there besides: what was remembered, and the message.
    pub(crate) client: Transcript,
    /// What the runtime made of both.
    pub(crate) normalised: &'a Transcript,
}

/// How a turn ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Why the loop stopped.
    pub(crate) outcome: &'static str,
    /// The closing text, if it was posted.
    pub(crate) said: Option<String>,
    /// Why there was a closing text that was not posted.
    pub(crate) withheld: Option<&'static str>,
    /// What the room was told of a failure.
    pub(crate) failure: Option<String>,
    /// The body in which the last reply would go back.
    pub(crate) replayed: Option<(Value, WireNames)>,
}

/// One turn.
pub(crate) struct TurnTrace {
    trace: Trace,
    room: String,
    turn: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    step: u32,
    /// Whether the present step has its first stages.
    begun: bool,
    client: Value,
    normalised: Transcript,
    about: Value,
    /// The present step's reply and results, as the room gets to see them.
    output: Transcript,
    reply: Option<Message>,
}

impl TurnTrace {
    pub(crate) fn begin(trace: &Trace, begun: Begun<'_>) -> Self {
        let Begun { room, message, now, me, rows, client, normalised } = begun;
        let time: String = now.to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let me = me.map(|me| me.to_string());
        let client = json!({ "me": me, "rows": rows, "transcript": client.to_stored() });
        let state = State { client, normalised: normalised.clone(), ..State::default() };
        let turn = format!("{time}_{message}");
        Self { trace: trace.clone(), room: room.to_string(), turn, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, step: u32, file: &'static str, content: Vec<u8>) {
        let step = StepKey { turn: self.turn.clone(), room: self.room.clone(), step };
        self.trace.writer.write(step, file, content);
    }

    fn write_json(&self, step: u32, file: &'static str, value: &Value) {
        self.write(step, file, format!("{value:#}\n").into_bytes());
    }

    /// A new step, with what it begins with.
    fn next_step(&self, state: &mut State) {
        state.step += 1;
        state.begun = true;
        state.output = Transcript::default();
        state.reply = None;
        self.write_json(state.step, Stage::ClientHistory.file(), &state.client);
        self.write_json(state.step, Stage::Normalised.file(), &state.normalised.to_stored());
    }

    fn replayed(&self, state: &mut State, body: &Value, names: &NameTable, how: &str) {
        self.write_json(state.step, Stage::ReplayedPayload.file(), body);
        state.about["replayed"] = json!(how);
        state.about["replayed_names"] = pairs(names);
        self.write_json(state.step, ABOUT, &state.about);
    }

    /// The model's reply, as it was understood.
    pub(crate) fn parsed(&self, reply: &Reply) {
        let mut state = self.state();
        if !state.begun {
            // A model that has no wire.
            self.next_step(&mut state);
        }
        state.begun = false;
        let usage = reply.usage.map(|usage| {
            json!({
                "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
                "cache_write": usage.cache_write, "reasoning": usage.reasoning,
            })
        });
        let transcript = reply.clone().into_transcript().to_stored();
        let parsed = json!({ "transcript": transcript, "usage": usage, "warnings": warnings(&reply.warnings) });
        self.write_json(state.step, Stage::Parsed.file(), &parsed);
        let calls = reply.message.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).cloned().collect();
        state.output = Transcript::default();
        state.output.push(Message::new(Role::Assistant, calls));
        state.reply = Some(reply.message.clone());
    }

    /// All calls of the reply have their results, and this is the transcript now.
    pub(crate) fn results(&self, results: &[(ToolName, ToolResult)], transcript: &Transcript) {
        let mut state = self.state();
        let results: Vec<Part> = results.iter().map(|(_, result)| Part::ToolResult(result.clone())).collect();
        let answers = Message::new(Role::Tool, results);
        // What the next step must begin with, if nothing is lost.
        let mut client = state.normalised.clone();
        if let Some(reply) = state.reply.clone() {
            client.push(reply);
        }
        client.push(answers.clone());
        state.client = json!({ "rows": [], "transcript": client.to_stored() });
        state.normalised = transcript.clone();
        state.output.push(answers);
        let output = json!({ "outcome": null, "transcript": state.output.to_stored() });
        self.write_json(state.step, Stage::Output.file(), &output);
    }

    /// The turn is over.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        if state.step == 0 {
            return;
        }
        if let (Some((body, names)), false) = (&ended.replayed, state.begun) {
            self.replayed(&mut state, body, &names.tools, "prepared");
        }
        if let Some(text) = &ended.said {
            let said = Message::text(Role::Assistant, text.as_str());
            match state.output.messages.iter_mut().find(|message| message.role == Role::Assistant) {
                // As models write it: words before calls.
                Some(message) => message.parts.splice(0..0, said.parts).for_each(drop),
                None => state.output.push(said),
            }
        }
        let output = json!({
            "outcome": ended.outcome, "transcript": state.output.to_stored(), "said": ended.said,
            "withheld": ended.withheld, "failure": ended.failure,
        });
        self.write_json(state.step, Stage::Output.file(), &output);
    }
}

impl WireTap for TurnTrace {
    fn on_request(&self, sent: Sent<'_>) {
        let mut state = self.state();
        if state.step > 0 {
            self.replayed(&mut state, sent.body, &sent.names.tools, "sent");
        }
        self.next_step(&mut state);
        self.write_json(state.step, Stage::Payload.file(), sent.body);
        let mid_system = match sent.encode.mid_system {
            MidSystem::Native => "native",
            MidSystem::Hoist => "hoist",
            MidSystem::User => "user",
        };
        state.about = json!({
            "api": sent.api.name(), "profile": sent.encode.profile.name, "mid_system": mid_system,
            "reasoning_model": sent.encode.reasoning_model, "model": sent.model,
            "names": pairs(&sent.names.tools), "arguments": arguments(sent.names),
        });
        self.write_json(state.step, ABOUT, &state.about);
    }

    fn on_response(&self, status: u16, streamed: bool, body: &[u8]) {
        let mut state = self.state();
        let file = if streamed { REPLY_STREAM } else { Stage::Reply.file() };
        self.write(state.step, file, body.to_vec());
        state.about["status"] = json!(status);
        self.write_json(state.step, ABOUT, &state.about);
    }
}

fn pairs(names: &NameTable) -> Value {
    names.pairs().iter().map(|(name, wire)| json!([name.as_str(), wire])).collect()
}

fn arguments(names: &WireNames) -> Value {
    names.keys().iter().map(|(tool, wire, key)| json!([tool.as_str(), wire, key])).collect()
}

fn warnings(warnings: &Warnings) -> Value {
    warnings.iter().map(|warning| json!({ "code": warning.code.code(), "detail": warning.detail })).collect()
}
