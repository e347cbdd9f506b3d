//! A model as the brain of an agent: any of the three APIs, with the platform's tools and the agent's own.

mod events;
mod memory;
mod prompt;
mod tools;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bandstand_llm::client::{Ask, Model, ModelError};
use bandstand_llm::run::{Finished, RunOptions, Toolset as _, run};
use bandstand_llm::time::SystemTiming;
use bandstand_llm::tool_loop::{Limits, OnDenied, OnLength, Outcome, Policy};
use bandstand_llm::transcript::{Message, Role, Transcript};
use bandstand_wire::ids::RoomId;
use serde_json::Value;

use super::{Adapter, IncomingMessage, TurnError, TurnInput};
use crate::client::model::Me;
use crate::failure::{AgentFailure, FailureReport, INTERNAL_ERROR};
use crate::registry::Stopped;
use crate::tools::{AgentTools, Capabilities};
use crate::trace::{Begun, Ended, Trace, TurnTrace};
use crate::turn::ClosingText;

use memory::Memory;
use tools::RoomTools;

/// Which events about its own work an agent posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// Calls of tools and their results. What an agent does not post, it forgets when it is restarted.
    pub tool_calls: bool,
    /// The model's reasoning, where it gives any.
    pub thoughts: bool,
    /// Tokens, once a turn.
    pub usage: bool,
}

impl Default for Emit {
    fn default() -> Self {
        Self { tool_calls: true, thoughts: true, usage: true }
    }
}

impl Emit {
    /// Nothing.
    pub const SILENT: Self = Self { tool_calls: false, thoughts: false, usage: false };
}

/// How a model lives in rooms.
#[derive(Clone, Debug)]
pub struct LlmSettings {
    /// Who is to blame in a room for a failure of the model. `model`.
    pub provider: String,
    /// Whether the model is told how rooms work. Yes; without, it knows only who it is and what is said below.
    pub base_instructions: bool,
    /// What the developer tells it; it comes last in the system text.
    pub instructions: String,
    /// Groups of tools beyond the chat tools. None.
    pub capabilities: Capabilities,
    /// Events about its own work. All.
    pub emit: Emit,
    /// Whether the text with which the model ends a turn is posted to the sender when nothing answered yet. It is.
    pub closing: ClosingText,
    /// Stop conditions and limits: 50 replies a turn; calls of a reply that hit the token limit are reported to the model;
    /// so are calls that were not allowed.
    pub policy: Policy,
    /// The longest that a turn may take, questions to people included. Without a limit unless set: the runtime has its own.
    pub time_limit: Option<Duration>,
    /// How much of a room's past the model is shown, in tokens (estimated at four characters each). 60,000.
    pub history_tokens: usize,
    /// Where its turns are traced. Nowhere.
    pub trace: Option<Trace>,
}

impl Default for LlmSettings {
    fn default() -> Self {
        Self {
            provider: "model".to_owned(),
            base_instructions: true,
            instructions: String::new(),
            capabilities: Capabilities::none(),
            emit: Emit::default(),
            closing: ClosingText::Relayed,
            policy: Policy {
                on_length: OnLength::ReportError,
                on_denied: OnDenied::ReportError,
                limits: Limits::default(),
            },
            time_limit: None,
            history_tokens: 60_000,
            trace: None,
        }
    }
}

/// An agent whose turns are a model's.
///
/// It remembers each room between turns, and after a restart what the room's history says: texts, and its own calls and
/// results. Tool calls run in the order in which the model made them, those that only read beside one another.
#[derive(Debug)]
pub struct Llm {
    model: Arc<dyn Model>,
    settings: LlmSettings,
    me: OnceLock<Me>,
    memory: Memory,
}

impl Llm {
    /// With the usual settings and these instructions.
    pub fn new(model: impl Model + 'static, instructions: impl Into<String>) -> Self {
        Self::with(model, LlmSettings { instructions: instructions.into(), ..LlmSettings::default() })
    }

    /// With other settings.
    pub fn with(model: impl Model + 'static, settings: LlmSettings) -> Self {
        Self { model: Arc::new(model), settings, me: OnceLock::new(), memory: Memory::default() }
    }

    /// Ends a run as the platform expects it. `ended` notes what the room was told.
    async fn conclude(&self, input: &Turn<'_>, finished: &Finished, ended: &mut Ended) -> Result<(), TurnError> {
        let tools = input.tools;
        if let Some(stopped) = &finished.stopped {
            return Err(TurnError::Stopped(stopped.clone()));
        }
        let steps = finished.steps;
        let report = |text: String| AgentFailure::new(self.settings.provider.as_str(), text);
        let failure = match &finished.outcome {
            Outcome::Answer { text } | Outcome::Refusal { text } => {
                return self.close(input, text, ended).await;
            }
            Outcome::Length { text } | Outcome::Filter { text } if crate::tools::has_visible_content(text) => {
                return self.close(input, text, ended).await;
            }
            Outcome::TerminalTool { .. } => return Ok(()),
            Outcome::Cancelled => return Err(TurnError::Stopped(Stopped { reason: "the turn was cancelled".into() })),
            Outcome::Length { .. } => report("The model's reply hit its token limit before it said anything.".into()),
            Outcome::Filter { .. } => report("The provider's filter withheld the model's reply.".into()),
            Outcome::StepLimit => report(format!("Stopped after {steps} replies of the model without an answer.")),
            Outcome::TokenLimit => report(format!("Stopped after {steps} replies of the model: too many tokens.")),
            Outcome::TimeLimit => report("Stopped: the turn took too long.".into()),
            Outcome::ApprovalDenied { .. } => report("Stopped: a call that the model wanted was not allowed.".into()),
            Outcome::Unrecoverable { name, .. } => {
                report(format!("Stopped: the model made the same invalid call of {name} again and again."))
            }
            Outcome::ModelFailed(error) => self.model_failure(finished.failure.as_ref(), &error.message),
        };
        let mark = failure.message.clone();
        ended.failure = Some(mark.clone());
        match tools.send_failure(&failure).await {
            FailureReport::Posted => Err(TurnError::Reported(mark)),
            FailureReport::Stopped { room } => {
                Err(TurnError::Stopped(Stopped { reason: format!("the agent is stopped in {room}") }))
            }
            FailureReport::NotPosted { reason } => Err(TurnError::failed(format!("{mark} ({reason})"))),
        }
    }

    /// The closing text, to whoever asked, unless something answered already.
    async fn close(&self, input: &Turn<'_>, text: &str, ended: &mut Ended) -> Result<(), TurnError> {
        if !crate::tools::has_visible_content(text) {
            return Ok(());
        }
        let Some(sender) = input.message.sender.id() else {
            ended.withheld = Some("nobody wrote the message");
            return Ok(());
        };
        let answered = input.tools.turn().replied();
        if input.tools.close(self.settings.closing, Some(text), &[sender.to_string()]).await? {
            ended.said = Some(text.to_owned());
        } else {
            ended.withheld = Some(if answered { "the turn had answered already" } else { "closing text stays here" });
        }
        Ok(())
    }

    /// Begins to trace a turn, where turns are traced.
    fn traced(
        &self,
        input: &TurnInput,
        rows: Vec<Value>,
        client: Transcript,
        normalised: &Transcript,
    ) -> Option<Arc<TurnTrace>> {
        let trace = self.settings.trace.as_ref()?;
        let begun = Begun {
            room: input.message.room,
            message: input.message.id,
            now: input.tools.client().options().clock.now(),
            me: input.tools.agent_id(),
            rows,
            client,
            normalised,
        };
        Some(Arc::new(TurnTrace::begin(trace, begun)))
    }

    /// A refusal of the provider is told with its status and words; of everything else only the log knows more.
    fn model_failure(&self, failure: Option<&ModelError>, message: &str) -> AgentFailure {
        let provider = self.settings.provider.as_str();
        let Some(failure) = failure else { return AgentFailure::new(provider, message) };
        tracing::error!(error = %failure, kind = failure.kind(), "the model failed");
        match failure {
            ModelError::Options(_) | ModelError::Lint { .. } => AgentFailure::new(provider, INTERNAL_ERROR),
            failure => {
                let mut told = AgentFailure::new(provider, failure.to_string());
                if let Some(status) = failure.status() {
                    told = told.code(status.to_string());
                }
                match failure.provider() {
                    Some(said) => told.detail(said.message.chars().take(1000).collect::<String>()),
                    None => told,
                }
            }
        }
    }
}

/// What the end of a turn needs.
struct Turn<'a> {
    message: &'a IncomingMessage,
    tools: &'a AgentTools,
}

#[async_trait]
impl Adapter for Llm {
    fn capabilities(&self) -> Capabilities {
        self.settings.capabilities.clone()
    }

    async fn on_started(
        &self,
        me: &Me,
        _capabilities: &Capabilities,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // A second start is of the same agent.
        let _ = self.me.set(me.clone());
        Ok(())
    }

    async fn on_message(&self, input: TurnInput) -> Result<(), TurnError> {
        let (room, message) = (input.message.room, &input.message);
        let begins = input.is_session_start
            && self.memory.begin(room, &input.history, input.tools.agent_id(), self.settings.history_tokens);
        let remembered = self.memory.recall(room);
        let mut transcript = remembered.transcript;
        let remembered_messages = transcript.messages.len();
        // A message that is served again after an interruption is in it already.
        if remembered.heard != Some(message.id) || message.is_contact_event() {
            transcript.push(prompt::heard(message, input.participants.as_deref(), input.contacts.as_deref()));
        }
        // Rows that the memory was made of just now are traced as they came; only the message is not among them.
        let (rows, client) = match (&self.settings.trace, begins) {
            (None, _) => (Vec::new(), Transcript::default()),
            (Some(_), true) => {
                let heard = transcript.messages[remembered_messages..].to_vec();
                (memory::rows_of(&input.history), Transcript::new(heard))
            }
            (Some(_), false) => (Vec::new(), transcript.clone()),
        };
        let tools = RoomTools::new(&input.tools);
        let system = prompt::system(&self.settings, self.me.get(), &input.tools);
        if !system.is_empty() {
            transcript.messages.insert(0, Message::text(Role::System, system));
        }
        let options = RunOptions {
            policy: self.settings.policy,
            time_limit: self.settings.time_limit,
            cancel: input.cancel.clone(),
            timing: Arc::new(SystemTiming),
        };
        let trace = self.traced(&input, rows, client, &transcript);
        let mut observer = events::Reporter {
            tools: &input.tools,
            emit: self.settings.emit,
            keep: |transcript: &_| self.memory.keep(room, message.id, transcript, self.settings.history_tokens),
            trace: trace.clone(),
        };
        let finished = run(self.model.as_ref(), &tools, transcript, options, &mut observer).await;
        if self.settings.emit.usage {
            events::report_usage(&input.tools, &finished.usage).await;
        }
        // A message that the model never answered is forgotten with its turn: it is marked as failed, and may come again.
        if !matches!(finished.outcome, Outcome::ModelFailed(_) | Outcome::Cancelled) {
            self.memory.keep(room, message.id, &finished.transcript, self.settings.history_tokens);
        }
        tracing::debug!(outcome = finished.outcome.name(), steps = finished.steps, "the model's turn ended");
        let mut ended = Ended { outcome: finished.outcome.name(), ..Ended::default() };
        let concluded = self.conclude(&Turn { message, tools: &input.tools }, &finished, &mut ended).await;
        if let Some(trace) = trace {
            let specs = tools.specs();
            let again = Ask { transcript: &finished.transcript, tools: &specs, cancel: &input.cancel };
            ended.replayed = self.model.body(again);
            trace.end(ended);
        }
        concluded
    }

    async fn on_room_closed(&self, room: RoomId) {
        self.memory.forget(room);
    }
}
