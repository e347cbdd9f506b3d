//! The loop between a model and its tools, as a state machine without I/O: it is told what happened and says what to do
//! next. Whoever drives it calls the model, runs the tools, keeps the time and asks for approvals.
//!
//! Every call gets exactly one result before the model is called again, also a call that was not run. Results are
//! recorded in the order of the calls, whatever order they came in.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bandstand_transcript::repair::INTERRUPTED;
use bandstand_transcript::{
    Message, Part, ProviderError, Reply, Role, StopReason, ToolCall, ToolCallId, ToolName, ToolOutput, ToolResult,
    Transcript, WarningCode, Warnings,
};
use serde_json::{Map, Value};

/// What the loop asks of a registry of tools.
pub trait Tools {
    /// The names of all tools, as a model may use them.
    fn names(&self) -> Vec<ToolName>;

    /// Whether there is a tool of exactly this name.
    fn has(&self, name: &ToolName) -> bool;

    /// Whether these arguments are valid; if not, why, in words for the model.
    fn check(&self, name: &ToolName, arguments: &Map<String, Value>) -> Result<(), String>;

    /// Whether the tool may run beside others.
    fn may_run_in_parallel(&self, name: &ToolName) -> bool;

    /// Whether a successful call of the tool ends the loop.
    fn is_terminal(&self, name: &ToolName) -> bool;

    /// Whether a successful call of the tool ends the loop once all calls of its turn have succeeded. They all run.
    fn concludes(&self, name: &ToolName) -> bool {
        let _ = name;
        false
    }
}

/// What is done with calls of a turn that hit the token limit. They are never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLength {
    /// The loop stops.
    #[default]
    Stop,
    /// Each call is answered with an error that names the limit, and the model goes on.
    ReportError,
}

/// What is done when an approval is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDenied {
    /// The loop stops.
    #[default]
    Stop,
    /// The model is told, and goes on.
    ReportError,
}

/// How far a loop may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Replies of the model.
    pub max_steps: u32,
    /// Tokens of all replies together, read and written; none without a limit.
    pub max_tokens: Option<u64>,
    /// How many turns running may hold the same invalid call.
    pub max_invalid: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 50, max_tokens: None, max_invalid: 3 }
    }
}

/// How to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// At the token limit.
    pub on_length: OnLength,
    /// When an approval is denied.
    pub on_denied: OnDenied,
    /// How far to go.
    pub limits: Limits,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The model replied.
    Reply(Box<Reply>),
    /// The model could not be reached, or its stream broke: nothing of the turn counts.
    ModelFailed(ProviderError),
    /// A tool answered, or failed.
    ToolDone {
        /// Which call.
        id: ToolCallId,
        /// With what.
        output: ToolOutput,
    },
    /// A call was not allowed to run.
    Denied {
        /// Which call.
        id: ToolCallId,
        /// Why, in words for the model.
        reason: String,
    },
    /// Somebody said something meanwhile; it goes behind the results of the calls that are running.
    UserMessage(Message),
    /// The run was interrupted.
    Cancelled,
    /// The time is up.
    TimeUp,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Send the transcript to the model.
    CallModel,
    /// Run this call; the calls of one step may run at once.
    RunTool(ToolCall),
    /// Stop; the transcript is valid as it is.
    Finish(Outcome),
}

/// Why a loop stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The model answered without calls.
    Answer {
        /// Its words.
        text: String,
    },
    /// A tool that ends the loop succeeded.
    TerminalTool {
        /// The call.
        id: ToolCallId,
        /// The tool.
        name: ToolName,
    },
    /// So many replies were allowed.
    StepLimit,
    /// So many tokens were allowed.
    TokenLimit,
    /// The time was up.
    TimeLimit,
    /// A call was not allowed.
    ApprovalDenied {
        /// The call.
        id: ToolCallId,
    },
    /// The model refused.
    Refusal {
        /// Its words.
        text: String,
    },
    /// A filter cut the answer.
    Filter {
        /// What there was of it.
        text: String,
    },
    /// The reply hit the token limit.
    Length {
        /// What there was of it.
        text: String,
    },
    /// The run was interrupted.
    Cancelled,
    /// The model made the same invalid call again and again.
    Unrecoverable {
        /// The last such call.
        id: ToolCallId,
        /// The tool it named.
        name: ToolName,
    },
    /// The model failed.
    ModelFailed(ProviderError),
}

impl Outcome {
    /// A short name, as in logs and test cases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answer { .. } => "end",
            Self::TerminalTool { .. } => "terminal_tool",
            Self::StepLimit => "max_steps",
            Self::TokenLimit => "max_tokens",
            Self::TimeLimit => "time_limit",
            Self::ApprovalDenied { .. } => "approval_denied",
            Self::Refusal { .. } => "refusal",
            Self::Filter { .. } => "filter",
            Self::Length { .. } => "length",
            Self::Cancelled => "cancelled",
            Self::Unrecoverable { .. } => "unrecoverable_call",
            Self::ModelFailed(_) => "error",
        }
    }

    /// The words that the model ended with, where it ended with words.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Answer { text } | Self::Refusal { text } | Self::Filter { text } | Self::Length { text } => {
                Some(text)
            }
            _ => None,
        }
    }
}

/// The calls of one reply on their way to results.
#[derive(Debug, Default)]
struct Batch {
    order: Vec<ToolCall>,
    results: BTreeMap<usize, ToolOutput>,
    /// Calls that have not started, by their place in `order`.
    waiting: VecDeque<usize>,
    running: Vec<usize>,
    /// Why the loop ends when the batch is done, whatever else.
    ends: Option<Outcome>,
}

/// One run of the loop.
#[derive(Debug)]
pub struct ToolLoop {
    transcript: Transcript,
    policy: Policy,
    steps: u32,
    tokens: u64,
    batch: Option<Batch>,
    queued: Vec<Message>,
    /// How many turns running held each invalid call.
    invalid: HashMap<(ToolName, String), u32>,
    finished: Option<Outcome>,
    /// What conversions and the loop itself had to guess.
    pub warnings: Warnings,
}

impl ToolLoop {
    /// A run that goes on from a conversation.
    pub fn new(transcript: Transcript, policy: Policy) -> Self {
        Self {
            transcript,
            policy,
            steps: 0,
            tokens: 0,
            batch: None,
            queued: Vec::new(),
            invalid: HashMap::new(),
            finished: None,
            warnings: Warnings::default(),
        }
    }

    /// The conversation so far. Between steps it may hold calls without results; at the end it does not.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The conversation, for keeping.
    pub fn into_transcript(self) -> Transcript {
        self.transcript
    }

    /// Replies of the model so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Tokens so far, read and written.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Why it stopped, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.finished.as_ref()
    }

    /// Begins. Calls that an interruption left open are closed with failed results first.
    pub fn start(&mut self) -> Vec<Command> {
        self.close_open_calls(INTERRUPTED);
        vec![Command::CallModel]
    }

    /// Begins where a run stopped to wait for approvals: the open calls of the last turn are run.
    pub fn resume(&mut self, tools: &dyn Tools) -> Vec<Command> {
        let open: Vec<ToolCallId> = self.transcript.open_calls().into_iter().map(|call| call.id.clone()).collect();
        let last = self.transcript.messages.iter().rposition(|message| message.role == Role::Assistant);
        let calls: Vec<ToolCall> = last
            .map(|at| self.transcript.messages[at].calls().filter(|call| open.contains(&call.id)).cloned().collect())
            .unwrap_or_default();
        if calls.is_empty() { self.start() } else { self.run(calls, tools) }
    }

    /// Takes what happened; says what to do next. Once finished, nothing more.
    pub fn step(&mut self, input: Input, tools: &dyn Tools) -> Vec<Command> {
        if self.finished.is_some() {
            return Vec::new();
        }
        match input {
            Input::Reply(reply) => self.reply(*reply, tools),
            Input::ModelFailed(error) => self.finish(Outcome::ModelFailed(error)),
            Input::ToolDone { id, output } => self.answered(&id, output, None, tools),
            Input::Denied { id, reason } => {
                let ends =
                    (self.policy.on_denied == OnDenied::Stop).then(|| Outcome::ApprovalDenied { id: id.clone() });
                self.answered(&id, ToolOutput::error(format!("Not run: {reason}")), ends, tools)
            }
            Input::UserMessage(message) => {
                if self.batch.is_some() {
                    self.queued.push(message);
                } else {
                    self.transcript.push(message);
                }
                Vec::new()
            }
            Input::Cancelled => self.finish(Outcome::Cancelled),
            Input::TimeUp => self.finish(Outcome::TimeLimit),
        }
    }

    fn reply(&mut self, reply: Reply, tools: &dyn Tools) -> Vec<Command> {
        self.steps += 1;
        if let Some(usage) = reply.usage {
            self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
        }
        self.warnings.extend(reply.warnings);
        let text = reply.message.plain_text();
        let calls: Vec<ToolCall> = reply.message.calls().cloned().collect();
        if reply.stop_reason == StopReason::Error {
            return self.finish(Outcome::ModelFailed(ProviderError {
                kind: "error".to_owned(),
                message: "the reply is marked as failed".to_owned(),
                retryable: true,
            }));
        }
        // As it was received, not as it is displayed.
        self.transcript.push(reply.message);
        self.transcript.stop_reason = Some(reply.stop_reason);
        match reply.stop_reason {
            StopReason::Length => self.length(&calls, text),
            StopReason::Filter => self.finish(Outcome::Filter { text }),
            StopReason::Refusal => self.finish(Outcome::Refusal { text }),
            _ if !calls.is_empty() => self.run(calls, tools),
            StopReason::Pause => self.go_on(None),
            StopReason::End | StopReason::ToolUse | StopReason::Error => self.finish(Outcome::Answer { text }),
        }
    }

    /// Nothing of a turn at the token limit is run, not even calls that parse: the last may be valid and incomplete.
    fn length(&mut self, calls: &[ToolCall], text: String) -> Vec<Command> {
        if let Some(call) = calls.last() {
            if !self.warnings.has(WarningCode::TruncatedToolCall) {
                self.warnings.add(WarningCode::TruncatedToolCall, call.id.as_str());
            }
            self.close_open_calls(
                "Not run: the reply hit its token limit, so the call may be incomplete. Make it again, with less in one reply.",
            );
        }
        match self.policy.on_length {
            OnLength::ReportError if !calls.is_empty() => self.go_on(None),
            _ => self.finish(Outcome::Length { text }),
        }
    }

    /// Judges the calls of a reply: what cannot be run is answered at once, the rest is started in order.
    fn run(&mut self, calls: Vec<ToolCall>, tools: &dyn Tools) -> Vec<Command> {
        let mut batch = Batch::default();
        let mut invalid = HashMap::new();
        for (at, call) in calls.iter().enumerate() {
            match refusal(call, tools) {
                None => batch.waiting.push_back(at),
                Some(why) => {
                    let key = (call.name.clone(), call_text(call));
                    let times = self.invalid.get(&key).copied().unwrap_or(0) + 1;
                    if times >= self.policy.limits.max_invalid {
                        batch.ends = Some(Outcome::Unrecoverable { id: call.id.clone(), name: call.name.clone() });
                    }
                    invalid.insert(key, times);
                    batch.results.insert(at, ToolOutput::error(why));
                }
            }
        }
        self.invalid = invalid;
        batch.order = calls;
        self.batch = Some(batch);
        self.advance(tools)
    }

    fn answered(
        &mut self,
        id: &ToolCallId,
        output: ToolOutput,
        ends: Option<Outcome>,
        tools: &dyn Tools,
    ) -> Vec<Command> {
        let Some(batch) = &mut self.batch else { return Vec::new() };
        // A second answer of one call, or one of another run, changes nothing.
        let Some(running) = batch.running.iter().position(|at| batch.order[*at].id == *id) else { return Vec::new() };
        let at = batch.running.remove(running);
        let call = &batch.order[at];
        let ends = ends.or_else(|| {
            (tools.is_terminal(&call.name) && !output.is_error)
                .then(|| Outcome::TerminalTool { id: call.id.clone(), name: call.name.clone() })
        });
        batch.results.insert(at, output);
        if let Some(outcome) = ends {
            let why = match &outcome {
                Outcome::TerminalTool { name, .. } => format!("Not run: {name} ended the turn."),
                _ => "Not run: the run was stopped.".to_owned(),
            };
            for skipped in batch.waiting.drain(..) {
                batch.results.insert(skipped, ToolOutput::error(why.clone()));
            }
            batch.ends.get_or_insert(outcome);
        }
        self.advance(tools)
    }

    /// Starts what may run now; when all is answered, records it and goes on.
    fn advance(&mut self, tools: &dyn Tools) -> Vec<Command> {
        let Some(batch) = &mut self.batch else { return Vec::new() };
        let mut commands = Vec::new();
        while let Some(&next) = batch.waiting.front() {
            let name = &batch.order[next].name;
            let alone = !tools.may_run_in_parallel(name) || tools.is_terminal(name);
            let running_alone = batch.running.iter().any(|at| {
                let name = &batch.order[*at].name;
                !tools.may_run_in_parallel(name) || tools.is_terminal(name)
            });
            if !batch.running.is_empty() && (alone || running_alone) {
                break;
            }
            batch.waiting.pop_front();
            batch.running.push(next);
            commands.push(Command::RunTool(batch.order[next].clone()));
        }
        if !batch.running.is_empty() {
            return commands;
        }
        let Some(batch) = self.batch.take() else { return commands };
        let ends = batch.ends.clone().or_else(|| concluded(&batch, tools));
        self.record(batch, INTERRUPTED);
        self.go_on(ends)
    }

    /// One result per call, in the order of the calls; what has none is closed with `why`.
    fn record(&mut self, mut batch: Batch, why: &str) {
        let results = batch.order.iter().enumerate().map(|(at, call)| {
            let output = batch.results.remove(&at).unwrap_or_else(|| ToolOutput::error(why));
            result_of(call, output)
        });
        let message = Message::new(Role::Tool, results.collect());
        self.transcript.push(message);
        for message in std::mem::take(&mut self.queued) {
            self.transcript.push(message);
        }
    }

    fn go_on(&mut self, ends: Option<Outcome>) -> Vec<Command> {
        let limits = self.policy.limits;
        let ends = ends
            .or_else(|| (self.steps >= limits.max_steps).then_some(Outcome::StepLimit))
            .or_else(|| limits.max_tokens.is_some_and(|most| self.tokens >= most).then_some(Outcome::TokenLimit));
        match ends {
            Some(outcome) => self.finish(outcome),
            None => vec![Command::CallModel],
        }
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Command> {
        let why = match &outcome {
            Outcome::Cancelled => "The tool call was cancelled.",
            Outcome::TimeLimit => "The tool call ran out of time.",
            _ => "Not run: the turn ended before.",
        };
        if let Some(batch) = self.batch.take() {
            self.record(batch, why);
        }
        self.close_open_calls(why);
        for message in std::mem::take(&mut self.queued) {
            self.transcript.push(message);
        }
        self.finished = Some(outcome.clone());
        vec![Command::Finish(outcome)]
    }

    /// Puts a failed result behind each call that has none.
    fn close_open_calls(&mut self, why: &str) {
        let open: Vec<ToolCall> = self.transcript.open_calls().into_iter().cloned().collect();
        for call in open {
            let asked =
                self.transcript.messages.iter().rposition(|message| message.calls().any(|other| other.id == call.id));
            let Some(asked) = asked else { continue };
            let part = result_of(&call, ToolOutput::error(why));
            match self.transcript.messages.get_mut(asked + 1) {
                Some(next) if next.role == Role::Tool => next.parts.push(part),
                _ => self.transcript.messages.insert(asked + 1, Message::new(Role::Tool, vec![part])),
            }
        }
    }
}

/// The end by a tool that concludes, unless some call of the batch failed.
fn concluded(batch: &Batch, tools: &dyn Tools) -> Option<Outcome> {
    if batch.results.values().any(|output| output.is_error) {
        return None;
    }
    let call = batch.order.iter().find(|call| tools.concludes(&call.name))?;
    Some(Outcome::TerminalTool { id: call.id.clone(), name: call.name.clone() })
}

fn result_of(call: &ToolCall, output: ToolOutput) -> Part {
    Part::ToolResult(ToolResult {
        call_id: call.id.clone(),
        name: None,
        output,
        carried: bandstand_transcript::model::Carried::default(),
    })
}

/// Why a call cannot be run, in words for the model.
fn refusal(call: &ToolCall, tools: &dyn Tools) -> Option<String> {
    if !tools.has(&call.name) {
        let known: Vec<String> = tools.names().iter().map(ToString::to_string).collect();
        return Some(format!("Unknown tool: {}. The tools are: {}.", call.name, known.join(", ")));
    }
    match call.input.fields() {
        None => Some(format!(
            "Invalid arguments for {}: they are not a JSON object. Received: {}",
            call.name,
            shortened(&call_text(call))
        )),
        Some(fields) => {
            tools.check(&call.name, fields).err().map(|why| format!("Invalid arguments for {}: {why}", call.name))
        }
    }
}

fn call_text(call: &ToolCall) -> String {
    match &call.input {
        bandstand_transcript::ToolInput::Invalid { raw } => raw.clone(),
        bandstand_transcript::ToolInput::Object { fields, .. } => Value::Object(fields.clone()).to_string(),
    }
}

/// The first 200 characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
