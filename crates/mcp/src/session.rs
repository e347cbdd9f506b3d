//! One client's session: its keys, and what they let it do.

use std::fmt;
use std::sync::Arc;

use bandstand_agent::client::{ApiKey, ClientError, ClientOptions, HumanClient};
use tokio::sync::Semaphore;

use crate::agent::Agent;
use crate::catalogue::Catalogue;
use crate::choices::{Choices, Scope};

/// Calls that a session may have under way at once; a further one is refused, so that a client in a loop costs little.
const CALLS: usize = 32;

/// The keys of a session, one for each scope.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// An agent's.
    pub agent: Option<ApiKey>,
    /// A person's.
    pub user: Option<ApiKey>,
}

/// How the server is reached.
#[derive(Clone)]
pub struct SessionOptions {
    /// Where.
    pub base_url: String,
    /// What the health check calls it, when that is not `base_url`.
    pub shown_url: Option<String>,
    /// TLS that is made once for many sessions. Each makes its own otherwise.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether proxies of the environment are used.
    pub proxies: bool,
}

impl SessionOptions {
    /// The usual ones.
    pub fn new(base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), shown_url: None, tls: None, proxies: true }
    }

    pub(crate) fn client(&self, key: &ApiKey) -> ClientOptions {
        let mut options = ClientOptions::new(&self.base_url, key.clone());
        options.tls = self.tls.clone();
        options.proxies = self.proxies;
        options
    }
}

/// One client's session. It ends with its last clone; what it had claimed and not settled then is served again.
pub struct Session {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The room that is pinned.
    pub(crate) room: Option<String>,
    pub(crate) agent: Option<Agent>,
    pub(crate) human: Option<HumanClient>,
    pub(crate) shown_url: String,
    pub(crate) calls: Semaphore,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("tools", &self.catalogue.len()).finish_non_exhaustive()
    }
}

impl Session {
    /// A session with these keys. Nothing is sent yet.
    ///
    /// # Errors
    /// When a scope has no key, the address is none, or a key cannot be sent.
    pub fn new(options: &SessionOptions, keys: &Keys, choices: &Choices) -> Result<Self, ClientError> {
        let missing = |what: &str| ClientError::Options(what.to_owned());
        let mut problems = Vec::new();
        if choices.scopes.contains(&Scope::Human) && keys.user.is_none() {
            problems.push("human scope requested but no user credential available (set --user-key / BAND_USER_KEY)");
        }
        if choices.scopes.contains(&Scope::Agent) && keys.agent.is_none() {
            problems.push("agent scope requested but no agent credential available (set --agent-key / BAND_AGENT_KEY)");
        }
        if !problems.is_empty() {
            return Err(missing(&problems.join("; ")));
        }
        let wanted = |scope: Scope| choices.scopes.contains(&scope);
        let agent = match keys.agent.as_ref().filter(|_| wanted(Scope::Agent)) {
            Some(key) => {
                let room = choices.room.as_deref().map(str::parse).transpose();
                let room =
                    room.map_err(|_| missing("the room to be pinned (--room-id / BAND_MCP_ROOM_ID) is no id"))?;
                Some(Agent::new(options.client(key).build()?, room))
            }
            None => None,
        };
        let human = match keys.user.as_ref().filter(|_| wanted(Scope::Human)) {
            Some(key) => Some(options.client(key).build_human()?),
            None => None,
        };
        let base_url =
            agent.as_ref().map(|agent| agent.client().base_url()).or(human.as_ref().map(HumanClient::base_url));
        let shown_url = options.shown_url.clone().or(base_url.map(str::to_owned)).unwrap_or_default();
        let (catalogue, room) = (Catalogue::of(choices), choices.room.clone());
        Ok(Self { catalogue, room, agent, human, shown_url, calls: Semaphore::new(CALLS) })
    }
}
