//! One MCP client: what it asks and what it is answered.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::request::Parts;
use bandstand_agent::registry::{Effect, ToolError, ToolOutcome};
use bandstand_wire::ids::RoomId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, Extensions, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{ID_MAX, Kind};
use crate::life::{self, WAIT_MAX, Wait};
use crate::session::Session;
use crate::why::{self, Asker};
use crate::{SERVER_NAME, health, results};

/// How often a client that asked for it is told that a wait goes on.
const PROGRESS: Duration = Duration::from_secs(5);

const INSTRUCTIONS: &str = "You are a participant of rooms in which people and AI agents work together. With an agent's \
    tools, call band_wait_for_message to be given the next message to you, answer it with band_send_message (mention its \
    sender_id), and call band_wait_for_message again. Only those whom a message mentions are sure to notice it. band_why \
    says what became of a message.";

/// The newest revision that is spoken. Later ones have no sessions, and a message that is claimed belongs to one.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// One MCP client. Over stdio its session is there from the start, over HTTP with the request that opens it.
#[derive(Clone, Debug, Default)]
pub struct Door {
    session: OnceLock<Arc<Session>>,
}

/// Why serving ended before it began.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not open the session as the protocol has it, or went away.
    #[error("the client did not open a session: {0}")]
    Opening(String),
    /// Serving broke.
    #[error("serving broke: {0}")]
    Broken(String),
}

/// Serves one client over any two streams until it goes away or `shutdown`.
///
/// # Errors
/// [`ServeError`].
pub async fn serve<R, W>(session: Session, reader: R, writer: W, shutdown: CancellationToken) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let door = Door { session: OnceLock::from(Arc::new(session)) };
    let opened = tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        opened = Box::pin(door.serve_with_ct((reader, writer), shutdown.clone())) => opened,
    };
    let running = opened.map_err(|error| ServeError::Opening(error.to_string()))?;
    running.waiting().await.map_err(|error| ServeError::Broken(error.to_string()))?;
    Ok(())
}

/// [`serve`] over this process' standard input and output.
///
/// # Errors
/// [`ServeError`].
pub async fn serve_stdio(session: Session, shutdown: CancellationToken) -> Result<(), ServeError> {
    serve(session, tokio::io::stdin(), tokio::io::stdout(), shutdown).await
}

/// The session that a request over HTTP was let in with.
fn admitted(extensions: &Extensions) -> Option<&Arc<Session>> {
    extensions.get::<Parts>()?.extensions.get::<Arc<Session>>()
}

impl ServerHandler for Door {
    fn get_info(&self) -> InitializeResult {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_protocol_version(NEWEST)
            .with_server_info(Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let Some(session) = admitted(&context.extensions) {
            // A session has one opening; a second one changes nothing.
            let _ = self.session.set(Arc::clone(session));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.session()?.catalogue.offers().to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session()?;
        let Ok(_place) = session.calls.try_acquire() else {
            return Ok(results::failure("Too many calls of this session are under way; wait for one to end.").into());
        };
        let arguments = request.arguments.unwrap_or_default();
        // Dropping the work is safe wherever it is, and a client that gave up reads no answer.
        let ended = context.ct.clone();
        let work = Box::pin(session.call(&request.name, arguments, &context));
        let result = match session.catalogue.kind(&request.name) {
            // It heeds the end itself.
            Some(Kind::Wait) => work.await,
            _ => tokio::select! {
                result = work => result,
                () = ended.cancelled() => results::failure("The call was cancelled."),
            },
        };
        Ok(result.into())
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        let agent = self.session.get().and_then(|session| session.agent.as_ref());
        if let (Some(agent), Some(call)) = (agent, notification.request_id) {
            // It may have been answered at the same moment, which the client does not look at any more.
            agent.life.unread(&call);
        }
    }
}

impl Door {
    fn session(&self) -> Result<&Arc<Session>, ErrorData> {
        self.session.get().ok_or_else(|| ErrorData::invalid_request("the session is not open", None))
    }
}

impl Session {
    async fn call(
        &self,
        name: &str,
        mut arguments: serde_json::Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        match self.catalogue.kind(name) {
            None => results::failure(format!("Unknown tool: {name}")),
            Some(Kind::Health) => {
                results::of(Ok(ToolOutcome::success(health::check(self).await.into(), Effect::Observe)))
            }
            Some(Kind::Agent { room_bound }) => {
                let Some(agent) = &self.agent else { return results::failure(format!("Unknown tool: {name}")) };
                let room = if room_bound { self.take_room(name, &mut arguments).map(Some) } else { Ok(None) };
                match room {
                    Ok(room) => results::of(agent.call(name, room, Value::Object(arguments)).await),
                    Err(why) => results::failure(why),
                }
            }
            Some(Kind::Human { room_bound }) => {
                let Some(human) = &self.human else { return results::failure(format!("Unknown tool: {name}")) };
                if room_bound {
                    self.pin(&mut arguments);
                }
                results::of(crate::human::registry().call(human.clone(), name, Value::Object(arguments)).await)
            }
            Some(Kind::Why) => {
                self.pin(&mut arguments);
                let agent = self.agent.as_ref().map(|agent| agent.client().clone());
                let asker = Asker { agent, human: self.human.clone() };
                results::of(why::tool().call(asker, Value::Object(arguments)).await)
            }
            Some(Kind::Wait) => self.wait(arguments, context).await,
            Some(Kind::Finish) => {
                let Some(agent) = &self.agent else { return results::failure(format!("Unknown tool: {name}")) };
                let it = match read(life::finish_tool(), arguments) {
                    Ok(it) => it,
                    Err(why) => return results::failure(why),
                };
                results::of(ToolOutcome::of(name, Effect::Act, agent.life.finish(&it).await))
            }
        }
    }

    /// The pinned room wins, whatever the client says.
    fn pin(&self, arguments: &mut serde_json::Map<String, Value>) {
        if let Some(room) = &self.room {
            arguments.shift_remove("room_id");
            arguments.insert("chat_id".to_owned(), Value::String(room.clone()));
        }
    }

    /// Which room a call is about, under the argument's name of today or of old.
    fn take_room(&self, tool: &str, arguments: &mut serde_json::Map<String, Value>) -> Result<RoomId, String> {
        self.pin(arguments);
        let old = arguments.shift_remove("room_id");
        let room = arguments.shift_remove("chat_id").or(old);
        let fault = |what: &str| Err(format!("Invalid arguments for {tool}: chat_id: {what}"));
        let Some(room) = room else { return fault("Field required") };
        let Value::String(room) = room else { return fault("Input should be a valid string") };
        if room.chars().count() > ID_MAX {
            return fault("String should have at most 255 characters");
        }
        room.parse().or_else(|_| fault("Value error, this is not the ID of a chat room"))
    }

    async fn wait(
        &self,
        arguments: serde_json::Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        const NAME: &str = "band_wait_for_message";
        let Some(agent) = &self.agent else { return results::failure(format!("Unknown tool: {NAME}")) };
        let it: Wait = match read(life::wait_tool(), arguments) {
            Ok(it) => it,
            Err(why) => return results::failure(why),
        };
        let work = async {
            let me = agent.me().await.map_err(|error| ToolError::failed(error.to_string()))?;
            agent.life.wait(me.id, &context.id, &it, &context.ct).await
        };
        let mut work = std::pin::pin!(work);
        let started = Instant::now();
        let total = it.timeout_s.min(WAIT_MAX);
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first is at once.
        ticks.tick().await;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                _ = ticks.tick() => {
                    let Some(token) = context.meta.get_progress_token() else { continue };
                    let waited = started.elapsed().as_secs();
                    let progress = u32::try_from(waited).map_or(f64::MAX, f64::from);
                    let note = ProgressNotificationParam::new(token, progress)
                        .with_total(u32::try_from(total).map_or(f64::MAX, f64::from))
                        .with_message(format!("waited {waited} s of {total} s for a message"));
                    // Whoever cannot be told will not read the answer either, which shows soon enough.
                    let _ = context.peer.notify_progress(note).await;
                }
            }
        };
        results::of(ToolOutcome::of(NAME, Effect::Observe, result))
    }
}

/// Checks arguments as every tool's are checked.
fn read<T: DeserializeOwned>(
    tool: &bandstand_agent::registry::Tool<()>,
    arguments: serde_json::Map<String, Value>,
) -> Result<T, String> {
    let checked = tool.validate(Value::Object(arguments)).map_err(|faults| faults.to_string())?;
    serde_json::from_value(checked).map_err(|error| format!("Invalid arguments for {}: {error}", tool.spec().name()))
}
