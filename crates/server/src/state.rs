//! What handlers, channels and background jobs share: built once at start, cheap to clone.

use std::ops::Deref;
use std::sync::Arc;

use bandstand_domain::clock::{Clock, IdSource};
use bandstand_store::Store;

use crate::auth::Authenticator;
use crate::health::Draining;
use crate::rates::Rates;
use crate::service::audit::Actor;
use crate::service::bulk_deletions::BulkDeletionsWaker;
use crate::service::delivered::DeliveredMarks;
use crate::service::files::FileStore;
use crate::service::quotas::Quotas;
use crate::service::removals::RemovalsWaker;
use crate::service::sightings::Sightings;
use crate::settings::Limits;
use crate::sign_in::tokens::Tokens;
use crate::signs::Observed;
use crate::socket::hub::Hub;

/// What a use case needs: durable state, time, ids and limits. The command line builds it without a server, too.
#[derive(Clone)]
pub struct Services {
    /// Durable state.
    pub store: Store,
    /// Time of day.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn IdSource>,
    /// What is refused for being too large or too many.
    pub limits: Arc<Limits>,
    /// Files of rooms.
    pub files: FileStore,
    /// Whether anybody has a quota of its own.
    pub quotas: Quotas,
    /// Signs of life that agents give.
    pub observed: Observed,
    /// Wakes the job that ends the deliveries of removed participants.
    pub removals: RemovalsWaker,
    /// Wakes the job that carries out bulk deletions.
    pub bulk_deletions: BulkDeletionsWaker,
    /// On whose behalf administrative acts are done.
    pub actor: Arc<Actor>,
    /// What this server sees of agents.
    pub sightings: Sightings,
}

/// The running server's parts.
#[derive(Clone)]
pub struct AppState {
    /// The use cases.
    pub services: Services,
    /// Live sockets, presence and activity.
    pub hub: Hub,
    /// How many requests each key may make.
    pub rates: Arc<Rates>,
    /// Who shows a key or a token.
    pub auth: Authenticator,
    /// The tokens that this server issues.
    pub tokens: Tokens,
    /// Batches the `delivered` marks of pushed messages.
    pub delivered: DeliveredMarks,
    /// Whether it is going down.
    pub draining: Draining,
}

impl Deref for AppState {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.services
    }
}
